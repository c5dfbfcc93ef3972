// Package fabric sweeps an InfiniBand subnet through one local port: it discovers the switches and adapters, the links
// between them, what each link supports and runs at, and its counters. A host exposes its own ports only. Whether the
// far end of a cable is a slow switch, or which of two ends is at fault, requires data of both ends.
//
// It only reads. The result of a sweep is a Fabric. A Memory holds the results of earlier sweeps: links that are gone
// are found by comparison with it.
package fabric

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/mad/perf"
)

// GUID identifies a node (IBA 14.2.5.3, NodeGUID).
type GUID uint64

// String formats a GUID as sysfs does, so that it joins with node_guid of rdma_device_info.
func (g GUID) String() string {
	return fmt.Sprintf("%04x:%04x:%04x:%04x", uint16(g>>48), uint16(g>>32), uint16(g>>16), uint16(g))
}

// End is a port of a node.
type End struct {
	GUID GUID `json:"guid"`
	Port int  `json:"port"`
}

func (e End) compare(other End) int {
	return cmp.Or(cmp.Compare(e.GUID, other.GUID), cmp.Compare(e.Port, other.Port))
}

// Fabric is the result of one sweep. It is immutable.
type Fabric struct {
	At       time.Time     // start of the sweep
	Took     time.Duration // duration of the sweep
	Full     bool          // nothing was taken from the previous sweep
	Nodes    map[GUID]*Node
	Links    map[End]End // each from both ends
	Managers []Manager
	// Unanswered counts queries without an answer.
	Unanswered map[Question]int

	start End // the local port
}

// Question is what a sweep queries.
type Question string

const (
	AskNode     Question = "node"     // NodeInfo or NodeDescription behind a port with a link
	AskPort     Question = "port"     // PortInfo of a node that answers
	AskCounters Question = "counters" // counters of a port
	// SMInfo at a port that announces a subnet manager, or at the one of the local port.
	AskManager Question = "subnet_manager"
)

var questions = []Question{AskNode, AskPort, AskCounters, AskManager}

// Node is a switch, an adapter or a router.
type Node struct {
	GUID        GUID
	Type        mad.NodeType
	Description string
	VendorID    uint32 // 0: unknown
	DeviceID    uint16 // that of PCI
	NumPorts    int
	Ports       map[int]*Port // that have answered; of an adapter those at the end of a link

	route       mad.Route
	named       bool // NodeDescription has answered
	changed     bool // SwitchInfo: the state of a port has changed
	vendor      bool // its ports may be queried for the vendor's attribute
	performance *perf.Info
	plain       bool // its ports have no PortRcvErrorDetails
	tick        perf.Tick
	ticked      bool // queried for it
}

// Port is a port that has answered.
type Port struct {
	Info     mad.PortInfo
	Counters *perf.Counters // nil: not read, or no response
	Read     time.Time      // of Counters
	FEC      *FEC           // nil: not read, or not supported
	// Details are the receive errors by cause; nil: there are none, or not supported.
	Details *perf.ReceiveErrorDetails
	// TickBytes is the data that the port can send in a tick of TransmitWait; 0: unknown.
	TickBytes float64
}

// FEC is the FEC of a port and its errors.
type FEC struct {
	Mode   mad.FECMode
	Counts []mad.FECCount // of the port, and of the lanes in use
}

// Manager is a subnet manager that has answered.
type Manager struct {
	Node GUID // 0: node unknown
	Info mad.SMInfo
}

func newFabric(at time.Time) *Fabric {
	return &Fabric{At: at, Nodes: map[GUID]*Node{}, Links: map[End]End{}, Unanswered: map[Question]int{}}
}

// Port is nil where it has not answered.
func (f *Fabric) Port(e End) *Port {
	if n := f.Nodes[e.GUID]; n != nil {
		return n.Ports[e.Port]
	}
	return nil
}

func (f *Fabric) connect(a, b End) { f.Links[a], f.Links[b] = b, a }

// lid returns the address of performance management and the subnet manager of a port; 0 before a subnet manager has
// assigned one.
func (n *Node) lid(port int) uint16 {
	if n.Type == mad.Switch {
		port = 0
	}
	if p := n.Ports[port]; p != nil {
		return p.Info.LID
	}
	return 0
}

// Common returns what both ends of a link support, and what both also have enabled. ok is false if one end has not
// answered.
func (f *Fabric) Common(e End) (supported, enabled mad.Link, ok bool) {
	a, b := f.Port(e), f.Port(f.Links[e])
	if a == nil || b == nil || !a.Info.Up() {
		return mad.Link{}, mad.Link{}, false
	}
	supported = a.Info.Supported.And(b.Info.Supported)
	return supported, a.Info.Enabled.And(b.Info.Enabled).And(supported), true
}

// Differs reports whether one end of a link is configured lower than the other although both support more.
func (f *Fabric) Differs(e End) bool {
	supported, enabled, ok := f.Common(e)
	if !ok {
		return false
	}
	a, b := f.Port(e).Info.Enabled, f.Port(f.Links[e]).Info.Enabled
	either := mad.Link{Widths: a.Widths | b.Widths, Speeds: a.Speeds | b.Speeds}.And(supported)
	return either.Widths.Lanes() > enabled.Widths.Lanes() || either.Speeds.LaneRate() > enabled.Speeds.LaneRate()
}

// FDR10 reports whether a link runs at FDR10. It is unknown for a link that does not and has FDR10 disabled at one end.
func (f *Fabric) FDR10(e End) (is, known bool) {
	_, enabled, ok := f.Common(e)
	if !ok {
		return false, false
	}
	active := f.Port(e).Info.Active.Speeds
	is = active&mad.FDR10 != 0
	return is, is || enabled.Speeds&mad.FDR10 != 0 && active == mad.QDR
}

// Degraded reports whether a link runs below what both ends have enabled: fewer lanes, a lower rate, or QDR instead of
// FDR10.
func (f *Fabric) Degraded(e End) bool {
	_, enabled, ok := f.Common(e)
	if !ok {
		return false
	}
	if is, known := f.FDR10(e); known && !is {
		return true
	}
	active := f.Port(e).Info.Active
	return active.Rate() > 0 && active.Rate() < enabled.Rate() ||
		active.Widths != 0 && active.Widths.Lanes() < enabled.Widths.Lanes()
}

func sortedNodes[T any](m map[GUID]T) []GUID { return slices.Sorted(maps.Keys(m)) }
