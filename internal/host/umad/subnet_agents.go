package umad

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/mad/perf"
)

// agentTimeout is the timeout of one answer of an agent of performance management or a subnet manager. The local port's
// takes a firmware command, and a round waits for its counters.
const agentTimeout = 100 * time.Millisecond

// counterFiles are the names of the counters in ports/N/counters (drivers/infiniband/core/sysfs.c).
var counterFiles = [perf.NumCounters]string{
	perf.SymbolErrors:                 "symbol_error",
	perf.LinkErrorRecoveries:          "link_error_recovery",
	perf.LinkDowned:                   "link_downed",
	perf.ReceiveErrors:                "port_rcv_errors",
	perf.ReceiveRemotePhysicalErrors:  "port_rcv_remote_physical_errors",
	perf.ReceiveSwitchRelayErrors:     "port_rcv_switch_relay_errors",
	perf.TransmitDiscards:             "port_xmit_discards",
	perf.TransmitConstraintErrors:     "port_xmit_constraint_errors",
	perf.ReceiveConstraintErrors:      "port_rcv_constraint_errors",
	perf.LocalLinkIntegrityErrors:     "local_link_integrity_errors",
	perf.ExcessiveBufferOverrunErrors: "excessive_buffer_overrun_errors",
	perf.VL15Dropped:                  "VL15_dropped",
	perf.TransmitWait:                 "port_xmit_wait",
	perf.TransmitData:                 "port_xmit_data",
	perf.ReceiveData:                  "port_rcv_data",
	perf.TransmitPackets:              "port_xmit_packets",
	perf.ReceivePackets:               "port_rcv_packets",
	perf.TransmitUnicast:              "unicast_xmit_packets",
	perf.ReceiveUnicast:               "unicast_rcv_packets",
	perf.TransmitMulticast:            "multicast_xmit_packets",
	perf.ReceiveMulticast:             "multicast_rcv_packets",
}

// queryInfo queries for the counters that the agent has, the first time.
func queryInfo(ctx context.Context, a *host.Agent, c *mad.Client) error {
	if a.Info != nil {
		return nil
	}
	info, err := c.PerformanceInfo(ctx, mad.ToLID(a.LID))
	if err != nil {
		return err
	}
	info.TransmitWait = info.TransmitWait || a.TransmitWait
	a.Info = &info
	return nil
}

// Counters queries an agent; the first time also for the counters that it has.
func (s subnetClient) Counters(ctx context.Context, device string, port int, a *host.Agent) (host.IBCounters, error) {
	return querySubnet(s, device, port, fmt.Sprintf("the counters of port %d at LID %d", a.Port, a.LID),
		func(c *mad.Client) (host.IBCounters, error) { return queryCounters(ctx, c, a) }, mad.ClassPerformance)
}

func queryCounters(ctx context.Context, c *mad.Client, a *host.Agent) (out host.IBCounters, err error) {
	if err := queryInfo(ctx, a, c); err != nil {
		return out, err
	}
	counters, err := c.Counters(ctx, mad.ToLID(a.LID), a.Port, *a.Info)
	if err != nil {
		return out, err
	}
	out.Wide = a.Info.ExtendedErrors
	for k, file := range counterFiles {
		if v, ok := counters.Get(perf.Counter(k)); ok {
			out.Stats = append(out.Stats, host.Stat{Name: file, Value: v})
		}
	}
	return out, nil
}

// Manager queries a subnet manager.
func (s subnetClient) Manager(ctx context.Context, device string, port int, lid uint16) (host.IBManager, error) {
	return querySubnet(s, device, port, fmt.Sprintf("the subnet manager at LID %d", lid),
		func(c *mad.Client) (m host.IBManager, err error) {
			info, err := c.SMInfo(ctx, mad.ToLID(lid))
			if err != nil {
				return m, err
			}
			return host.IBManager{
				State: new(
					uint64(info.State),
				), Priority: new(uint64(info.Priority)), Activity: new(uint64(info.Activity)), GUID: guidText(info.GUID),
			}, nil
		}, mad.ClassSubnetLID)
}

// querySubnet opens a port for some classes of datagrams, one at a time, and asks question with it. An error comes
// without an answer.
func querySubnet[T any](
	s subnetClient, device string, port int, what string, question func(*mad.Client) (T, error), classes ...uint8,
) (answer T, err error) {
	t, err := s.open(device, port, classes...)
	if err != nil {
		return answer, err
	}
	c := mad.NewClient(t, mad.Options{InFlight: 1, Timeout: agentTimeout, Retries: subnetRetries})
	got, err := question(c)
	if err = errors.Join(err, c.Close()); err != nil {
		return answer, &access.Error{Op: "query", Path: fmt.Sprintf("%s through %s/%d", what, device, port), Err: err}
	}
	return got, nil
}

func guidText(g uint64) string {
	return fmt.Sprintf("%04x:%04x:%04x:%04x", g>>48, g>>32&0xffff, g>>16&0xffff, g&0xffff)
}

// PortFEC queries subnet management by a directed route, which needs no LID, and the agent by its LID.
func (s subnetClient) PortFEC(ctx context.Context, device string, port int, a *host.Agent) (host.IBFEC, error) {
	if a.Fec != nil && !*a.Fec {
		return host.IBFEC{}, nil
	}
	return querySubnet(s, device, port, fmt.Sprintf("the FEC of port %d at LID %d", a.Port, a.LID),
		func(c *mad.Client) (host.IBFEC, error) { return queryFEC(ctx, c, port, a) },
		mad.ClassSubnetDirected, mad.ClassPerformance)
}

func queryFEC(ctx context.Context, c *mad.Client, port int, a *host.Agent) (out host.IBFEC, err error) {
	route := mad.Local()
	if a.Far {
		far, ok := route.Hop(uint8(port))
		if !ok {
			return out, nil
		}
		route = far
	}
	if a.Fec == nil {
		has, err := hasPortInfoExtended(ctx, c, route, a.Port)
		if err != nil {
			return out, err
		}
		a.Fec = &has
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
	if err := queryInfo(ctx, a, c); err != nil {
		return out, err
	}
	if !a.Info.FEC {
		return out, nil
	}
	counts, err := c.FECCounts(ctx, mad.ToLID(a.LID), a.Port, extended.FEC)
	for _, n := range counts {
		out.Counts = append(out.Counts, host.FECCount(n))
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

// PortSettings queries the local port by a directed route, which needs no LID.
func (s subnetClient) PortSettings(ctx context.Context, device string, port int) (host.IBPortSettings, error) {
	return querySubnet(s, device, port, fmt.Sprintf("the settings of port %d", port),
		func(c *mad.Client) (host.IBPortSettings, error) { return queryPortSettings(ctx, c, port) }, mad.ClassSubnetDirected)
}

func queryPortSettings(ctx context.Context, c *mad.Client, port int) (out host.IBPortSettings, err error) {
	info, err := c.PortInfo(ctx, mad.Local(), port)
	if err != nil {
		return out, err
	}
	if !info.Up() { // the values are those of the last link
		return out, nil
	}
	out.MTU, out.DataVLs = positive(info.MTU), positive(info.DataVLs)
	vls, err := c.SLToVL(ctx, mad.Local(), port)
	var status mad.StatusError
	if errors.As(err, &status) { // optional with one virtual lane
		return out, nil
	}
	if err == nil {
		out.VLs = vls[:]
	}
	return out, err
}

func positive(n int) *uint64 {
	if n <= 0 {
		return nil
	}
	return new(uint64(n))
}
