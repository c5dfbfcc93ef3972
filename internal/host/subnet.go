package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"rdma_exporter/internal/lazy"
	"rdma_exporter/internal/mad"
)

// Subnet sends management datagrams through an InfiniBand port. All have the method Get. The port's umad is accessible
// by root only.
type Subnet interface {
	// Ends queries both ends of a port's link for attributes of subnet management (IBA 14.2.5), at most one directed hop
	// away: four datagrams, and one more for a switch. If the link is down the result has no far end, which is not an
	// error.
	Ends(ctx context.Context, device string, port int) (IBLink, error)
	// Counters queries an agent of performance management (IBA 16.1): one datagram if all counters are 64-bit, otherwise
	// two, and one more the first time.
	Counters(ctx context.Context, device string, port int, a *Agent) (IBCounters, error)
	// PortFEC queries a port for the FEC in use, and its agent for the errors before and after FEC, if both have the
	// capability: up to two datagrams, and up to two more the first time. Without link and without capability the answer
	// is empty.
	PortFEC(ctx context.Context, device string, port int, a *Agent) (IBFEC, error)
	// PortSettings queries a local port for what the subnet manager has set (IBA 14.2.5.6, 14.2.5.9): two datagrams.
	PortSettings(ctx context.Context, device string, port int) (IBPortSettings, error)
	// Manager queries the subnet manager at a LID for SMInfo (IBA 14.2.5.13): one datagram.
	Manager(ctx context.Context, device string, port int, lid uint16) (IBManager, error)
}

// IBLink is the answers of both ends of a link; nil or empty without a far end.
type IBLink struct {
	Own            IBEnd
	SMLID          *uint64 // of the master subnet manager, PortInfo of the local port
	Far            IBEnd
	FarType        *uint64 // NodeInfo.NodeType: 1 channel adapter, 2 switch, 3 router
	FarPort        *uint64 // NodeInfo.LocalPortNum
	FarLID         *uint64 // PortInfo.LID; of a switch, that of its port 0
	FarGUID        string  // NodeInfo.NodeGUID, xxxx:xxxx:xxxx:xxxx
	FarDescription string  // NodeDescription
	Requests       int     // datagrams sent, answered or not
}

// IBEnd is the link as in the PortInfo of one end.
type IBEnd struct {
	Enabled   IBSets
	Supported IBSets
	Active    IBSets // nil if the link is down
}

// IBSets are sets of mad.Widths and mad.Speeds; nil: unknown.
type IBSets struct {
	Widths *uint64
	Speeds *uint64
}

// Link is empty if one of them is unknown.
func (s IBSets) Link() mad.Link {
	if s.Widths == nil || s.Speeds == nil {
		return mad.Link{}
	}
	return mad.Link{Widths: mad.Widths(*s.Widths), Speeds: mad.Speeds(*s.Speeds)}
}

// managed matches the description of a managed NVIDIA switch: MF0;NAME:MODEL/UNIT.
var managed = lazy.Regexp(`^MF0;([^:]+):`)

// System is the name of the far node. Unmanaged switches of a model all have the same description: their name includes
// the GUID.
func (l *IBLink) System() string {
	if m := managed().FindStringSubmatch(l.FarDescription); m != nil {
		return m[1]
	}
	if l.FarDescription == "" || strings.HasSuffix(l.FarDescription, "Mellanox Technologies") {
		return strings.TrimSpace(l.FarDescription + " " + l.FarGUID)
	}
	return l.FarDescription
}

// Common is what both ends have enabled.
func (l *IBLink) Common() mad.Link { return l.Own.Enabled.Link().And(l.Far.Enabled.Link()) }

// subnetTimeout is the timeout of one answer: a switch answers in microseconds, with a busy processor in milliseconds.
const subnetTimeout = 200 * time.Millisecond

// subnetRetries is for lost datagrams: management datagrams are not retransmitted.
const subnetRetries = 1

// subnetClient sends through the ports that open opens.
type subnetClient struct {
	open openSubnet
}

// openSubnet opens a port for some classes of datagrams.
type openSubnet func(device string, port int, classes ...uint8) (mad.Transport, error)

// NewSubnet sends through ports that open opens, one per query: nothing is held in between, so that drivers can be
// unloaded.
func NewSubnet(open func(device string, port int, classes ...uint8) (mad.Transport, error)) Subnet {
	return subnetClient{open}
}

func (s subnetClient) Ends(ctx context.Context, device string, port int) (IBLink, error) {
	t, err := s.open(device, port, mad.ClassSubnetDirected)
	if err != nil {
		return IBLink{}, err
	}
	c := mad.NewClient(t, mad.Options{InFlight: 1, Timeout: subnetTimeout, Retries: subnetRetries})
	l, err := queryLink(ctx, c, port)
	if err = errors.Join(err, c.Close()); err != nil {
		return IBLink{Requests: l.Requests}, &Error{"query", fmt.Sprintf("both ends of the link of %s/%d", device, port), err}
	}
	return l, nil
}

// queryLink queries the local port, and if its link is up the far end.
func queryLink(ctx context.Context, c *mad.Client, port int) (l IBLink, err error) {
	defer func() { l.Requests = int(c.Stats().Sent) }()
	own, err := c.PortInfo(ctx, mad.Local(), port)
	if err != nil {
		return l, err
	}
	l.Own = endOf(&own)
	l.SMLID = new(uint64(own.SMLID))
	far, ok := mad.Local().Hop(uint8(port))
	if !ok || !own.Up() {
		return l, nil
	}
	node, err := c.NodeInfo(ctx, far)
	if err != nil {
		return l, err
	}
	if l.FarDescription, err = c.NodeDescription(ctx, far); err != nil {
		return l, err
	}
	info, err := c.PortInfo(ctx, far, node.LocalPort)
	if err != nil {
		return l, err
	}
	if node.Type == mad.Switch { // other ports of a switch have no LID
		whole, err := c.PortInfo(ctx, far, 0)
		if err != nil {
			return l, err
		}
		info.LID = whole.LID
	}
	l.Far = endOf(&info)
	l.FarType, l.FarPort, l.FarLID = new(uint64(node.Type)), new(uint64(node.LocalPort)), new(uint64(info.LID))
	l.FarGUID = guidText(node.GUID)
	return l, nil
}

func endOf(p *mad.PortInfo) IBEnd {
	e := IBEnd{Supported: setsOf(p.Supported), Enabled: setsOf(p.Enabled)}
	if p.Up() {
		e.Active = setsOf(p.Active)
	}
	return e
}

func setsOf(l mad.Link) IBSets { return IBSets{new(uint64(l.Widths)), new(uint64(l.Speeds))} }
