package host

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"rdma_exporter/internal/mad"
)

// Subnet asks over an InfiniBand port by management datagrams, all of them Get, through the port's umad, which is root's.
type Subnet interface {
	// Ends asks both ends of a port's link for attributes of subnet management (IBA 14.2.5), a directed hop away at most: four datagrams,
	// and one more of a switch. Of a link that is down the far end is not there, which is no error.
	Ends(ctx context.Context, device string, port int) (IBLink, error)
	// Counters asks an agent of performance management (IBA 16.1): one datagram where it has all in 64 bits, else two, and the first time
	// one more.
	Counters(ctx context.Context, device string, port int, a *Agent) (IBCounters, error)
	// Manager asks the subnet manager at a LID for SMInfo (IBA 14.2.5.13): one datagram.
	Manager(ctx context.Context, device string, port int, lid uint16) (IBManager, error)
}

// IBLink is what the ends of a link say; nil or empty where there is no far end.
type IBLink struct {
	Own, Far       IBEnd
	SMLID          *uint64 // of the master subnet manager, PortInfo of the own port
	FarType        *uint64 // NodeInfo.NodeType: 1 channel adapter, 2 switch, 3 router
	FarPort        *uint64 // NodeInfo.LocalPortNum
	FarLID         *uint64 // PortInfo.LID, of a switch that of its port 0
	FarGUID        string  // NodeInfo.NodeGUID, xxxx:xxxx:xxxx:xxxx
	FarDescription string  // NodeDescription
	Requests       int     // datagrams that were sent for this, answered or not
}

// IBEnd is what the PortInfo of one end says of its link.
type IBEnd struct {
	Supported, Enabled IBSets
	Active             IBSets // nil of a link that is down
}

// IBSets are sets as mad.Widths and mad.Speeds have them; nil where they were not told.
type IBSets struct{ Widths, Speeds *uint64 }

// Link is none where one of them was not told.
func (s IBSets) Link() mad.Link {
	if s.Widths == nil || s.Speeds == nil {
		return mad.Link{}
	}
	return mad.Link{Widths: mad.Widths(*s.Widths), Speeds: mad.Speeds(*s.Speeds)}
}

// managed is how a switch of NVIDIA that has a management system describes itself: MF0;NAME:MODEL/UNIT.
var managed = regexp.MustCompile(`^MF0;([^:]+):`)

// System is what the far node is called. Switches without a management system are all described by their kind: those by their GUID as well.
func (l *IBLink) System() string {
	if m := managed.FindStringSubmatch(l.FarDescription); m != nil {
		return m[1]
	}
	if l.FarDescription == "" || strings.HasSuffix(l.FarDescription, "Mellanox Technologies") {
		return strings.TrimSpace(l.FarDescription + " " + l.FarGUID)
	}
	return l.FarDescription
}

// Common is what both ends have enabled.
func (l *IBLink) Common() mad.Link { return l.Own.Enabled.Link().And(l.Far.Enabled.Link()) }

// subnetTimeout is for one answer: a switch gives it in microseconds, one whose processor is busy in milliseconds.
const subnetTimeout = 200 * time.Millisecond

// subnetRetries are for datagrams that get lost: nobody repeats those of management. What somebody has not answered twice it does not answer.
const subnetRetries = 1

// subnetAsker asks through the ports that open opens.
type subnetAsker struct {
	open openSubnet
}

// openSubnet opens a port for some classes of datagrams.
type openSubnet func(device string, port int, classes ...uint8) (mad.Transport, error)

// NewSubnet asks through ports that open opens, one for each question: nothing is held between them, so that drivers can be unloaded.
func NewSubnet(open func(device string, port int, classes ...uint8) (mad.Transport, error)) Subnet {
	return subnetAsker{open}
}

func (s subnetAsker) Ends(ctx context.Context, device string, port int) (IBLink, error) {
	t, err := s.open(device, port, mad.ClassSubnetDirected)
	if err != nil {
		return IBLink{}, err
	}
	c := mad.NewClient(t, mad.Options{InFlight: 1, Timeout: subnetTimeout, Retries: subnetRetries})
	l, err := askLink(ctx, c, port)
	if err = errors.Join(err, c.Close()); err != nil {
		return IBLink{Requests: l.Requests}, &Error{"ask", fmt.Sprintf("the link of %s/%d", device, port), err}
	}
	return l, nil
}

// askLink asks the own port, and if its link is up the far one.
func askLink(ctx context.Context, c *mad.Client, port int) (l IBLink, err error) {
	defer func() { l.Requests = int(c.Stats().Sent) }()
	own, err := c.PortInfo(ctx, mad.Local(), port)
	if err != nil {
		return l, err
	}
	l.Own = endOf(&own)
	manager := uint64(own.SMLID)
	l.SMLID = &manager
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
	if node.Type == mad.Switch { // its other ports have no LID
		whole, err := c.PortInfo(ctx, far, 0)
		if err != nil {
			return l, err
		}
		info.LID = whole.LID
	}
	l.Far = endOf(&info)
	kind, number, lid := uint64(node.Type), uint64(node.LocalPort), uint64(info.LID)
	l.FarType, l.FarPort, l.FarLID = &kind, &number, &lid
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

func setsOf(l mad.Link) IBSets {
	widths, speeds := uint64(l.Widths), uint64(l.Speeds)
	return IBSets{&widths, &speeds}
}
