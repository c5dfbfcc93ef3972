package host

import (
	"context"
	"fmt"

	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/snapshot"
)

// IBFEC is the answer to Subnet.PortFEC.
type (
	IBFEC    = snapshot.IBFEC
	FECCount = snapshot.FECCount
)

// FECRequests is the maximum number of datagrams of a query without losses.
func (a *Agent) FECRequests() (n int) {
	switch {
	case a.fec == nil:
		n = 2
	case !*a.fec:
		return 0
	default:
		n = 1
	}
	switch {
	case a.info == nil:
		n += 2
	case a.info.FEC:
		n++
	}
	return n
}

// PortFEC queries subnet management by a directed route, which needs no LID, and the agent by its LID.
func (s subnetClient) PortFEC(ctx context.Context, device string, port int, a *Agent) (IBFEC, error) {
	if a.fec != nil && !*a.fec {
		return IBFEC{}, nil
	}
	return querySubnet(s, device, port, fmt.Sprintf("the FEC of port %d at LID %d", a.Port, a.LID),
		func(c *mad.Client) (IBFEC, error) { return queryFEC(ctx, c, port, a) },
		mad.ClassSubnetDirected, mad.ClassPerformance)
}

func queryFEC(ctx context.Context, c *mad.Client, port int, a *Agent) (out IBFEC, err error) {
	route := mad.Local()
	if a.Far {
		far, ok := route.Hop(uint8(port))
		if !ok {
			return out, nil
		}
		route = far
	}
	if a.fec == nil {
		has, err := hasPortInfoExtended(ctx, c, route, a.Port)
		if err != nil {
			return out, err
		}
		a.fec = &has
		if !has {
			return out, nil
		}
	}
	extended, err := c.PortInfoExtended(ctx, route, a.Port)
	if err != nil {
		return out, err
	}
	if !extended.Known || extended.FEC.String() == "" {
		return out, nil // the layout of the counters is unknown too
	}
	out.Mode = extended.FEC.String()
	if err := a.queryInfo(ctx, c); err != nil {
		return out, err
	}
	if !a.info.FEC {
		return out, nil
	}
	counts, err := c.FECCounts(ctx, mad.ToLID(a.LID), a.Port, extended.FEC)
	for _, n := range counts {
		out.Counts = append(out.Counts, FECCount(n))
	}
	return out, err
}

// hasPortInfoExtended: a switch has its capabilities at port 0, other nodes at the port.
func hasPortInfoExtended(ctx context.Context, c *mad.Client, route mad.Route, port int) (bool, error) {
	p, err := c.PortInfo(ctx, route, port)
	if err == nil && p.Capabilities == 0 {
		p, err = c.PortInfo(ctx, route, 0)
	}
	return p.Extended, err
}
