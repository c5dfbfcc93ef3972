package umad

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/mad"
)

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
func NewSubnet(open func(device string, port int, classes ...uint8) (mad.Transport, error)) host.Subnet {
	return subnetClient{open}
}

func (s subnetClient) Ends(ctx context.Context, device string, port int) (host.IBLink, error) {
	t, err := s.open(device, port, mad.ClassSubnetDirected)
	if err != nil {
		return host.IBLink{}, err
	}
	c := mad.NewClient(t, mad.Options{InFlight: 1, Timeout: subnetTimeout, Retries: subnetRetries})
	l, err := queryLink(ctx, c, port)
	if err = errors.Join(err, c.Close()); err != nil {
		return host.IBLink{
			Requests: l.Requests,
		}, &access.Error{
			Op:   "query",
			Path: fmt.Sprintf("both ends of the link of %s/%d", device, port),
			Err:  err,
		}
	}
	return l, nil
}

// queryLink queries the local port, and if its link is up the far end.
func queryLink(ctx context.Context, c *mad.Client, port int) (l host.IBLink, err error) {
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

func endOf(p *mad.PortInfo) host.IBEnd {
	e := host.IBEnd{Supported: setsOf(p.Supported), Enabled: setsOf(p.Enabled)}
	if p.Up() {
		e.Active = setsOf(p.Active)
	}
	return e
}

func setsOf(l mad.Link) host.IBSets {
	return host.IBSets{Widths: new(uint64(l.Widths)), Speeds: new(uint64(l.Speeds))}
}
