// Package fabric looks at a whole InfiniBand subnet from one port of it: it finds the switches and adapters, the links between them, what
// each link can and does, and its counters. A node sees its own ports only; that the far end of a cable is a slow switch, or which of two
// ends is at fault, needs the sight of both.
//
// It only asks. What it finds is a Fabric, one for each sweep; what was found in the past is a Memory, by which links that are gone are told.
package fabric

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"rdma_exporter/internal/mad"
)

// GUID identifies a node (IBA 14.2.5.3, NodeGUID).
type GUID uint64

// String writes it as sysfs does, so that it joins with node_guid of rdma_device_info.
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

// Fabric is what one sweep has found. It does not change afterwards.
type Fabric struct {
	At       time.Time     // of the beginning
	Took     time.Duration // until its end
	Full     bool          // nothing was taken from the sweep before
	Nodes    map[GUID]*Node
	Links    map[End]End // each from both ends
	Managers []Manager
	// Unanswered counts what did not answer, by what was asked for.
	Unanswered map[Question]int

	start End // the own port
}

// Question is what a sweep asks for.
type Question string

// The questions.
const (
	AskNode     Question = "node"           // behind a port that has a link, or its description
	AskPort     Question = "port"           // of a node that answers
	AskCounters Question = "counters"       // of a port
	AskManager  Question = "subnet_manager" // at a port that names itself one, or that the own port has for one
)

var questions = []Question{AskNode, AskPort, AskCounters, AskManager}

// Node is a switch, an adapter or a router.
type Node struct {
	GUID        GUID
	Type        mad.NodeType
	Description string
	NumPorts    int
	Ports       map[int]*Port // that have answered; of an adapter those that a link was found to

	route       mad.Route
	named       bool // it has told its description
	changed     bool // SwitchInfo: a port has changed
	vendor      bool // its ports may be asked for the vendor's attribute
	performance *mad.PerformanceInfo
}

// Port is a port that has answered.
type Port struct {
	Info     mad.PortInfo
	Counters *mad.Counters // nil: not read, or no response
	Read     time.Time     // of Counters
}

// Manager is a subnet manager that has answered.
type Manager struct {
	Node GUID // 0 where its port is not known
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

// lid is where performance management and the subnet manager of a port are reached; 0 before the subnet manager has been there.
func (n *Node) lid(port int) uint16 {
	if n.Type == mad.Switch {
		port = 0
	}
	if p := n.Ports[port]; p != nil {
		return p.Info.LID
	}
	return 0
}

// Start is the port that the sweep has looked from.
func (f *Fabric) Start() End { return f.start }

// Common says what both ends of a link support, and what of it both have enabled; false where one has not answered.
func (f *Fabric) Common(e End) (supported, enabled mad.Link, ok bool) {
	a, b := f.Port(e), f.Port(f.Links[e])
	if a == nil || b == nil || !a.Info.Up() {
		return mad.Link{}, mad.Link{}, false
	}
	supported = a.Info.Supported.And(b.Info.Supported)
	return supported, a.Info.Enabled.And(b.Info.Enabled).And(supported), true
}

// Differs says whether one end of a link is set lower than the other, while both could do more.
func (f *Fabric) Differs(e End) bool {
	supported, enabled, ok := f.Common(e)
	if !ok {
		return false
	}
	a, b := f.Port(e).Info.Enabled, f.Port(f.Links[e]).Info.Enabled
	either := mad.Link{Widths: a.Widths | b.Widths, Speeds: a.Speeds | b.Speeds}.And(supported)
	return either.Widths.Lanes() > enabled.Widths.Lanes() || either.Speeds.LaneRate() > enabled.Speeds.LaneRate()
}

// FDR10 says whether a link is one of FDR10; not told of links that are not and where one end has it not enabled.
func (f *Fabric) FDR10(e End) (is, told bool) {
	_, enabled, ok := f.Common(e)
	if !ok {
		return false, false
	}
	active := f.Port(e).Info.Active.Speeds
	is = active&mad.FDR10 != 0
	return is, is || enabled.Speeds&mad.FDR10 != 0 && active == mad.QDR
}

// Degraded says whether a link does less than both ends have enabled: fewer lanes, a lower rate, or QDR in the place of FDR10.
func (f *Fabric) Degraded(e End) bool {
	_, enabled, ok := f.Common(e)
	if !ok {
		return false
	}
	if is, told := f.FDR10(e); told && !is {
		return true
	}
	active := f.Port(e).Info.Active
	return active.Rate() > 0 && active.Rate() < enabled.Rate() || active.Widths != 0 && active.Widths.Lanes() < enabled.Widths.Lanes()
}

func sortedNodes[T any](m map[GUID]T) []GUID { return slices.Sorted(maps.Keys(m)) }
