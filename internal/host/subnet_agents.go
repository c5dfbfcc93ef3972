package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rdma_exporter/internal/mad"
)

// agentTimeout is for one answer of an agent of performance management or of a subnet manager. The own port's takes a firmware command, and
// its counters are waited for in a round.
const agentTimeout = 100 * time.Millisecond

// Agent is an agent of performance management, and a port of its node.
type Agent struct {
	LID  uint16 // where it is reached
	Port int    // whose counters are asked for
	// TransmitWait: PortCounters has it, though the agent does not say so.
	TransmitWait bool

	info *mad.PerformanceInfo // what it has; nil until it is asked
}

// Requests is how many datagrams a question is, at most, where none gets lost.
func (a *Agent) Requests() int {
	switch {
	case a.info == nil:
		return 3
	case a.info.Extended && !a.info.ExtendedErrors:
		return 2
	}
	return 1
}

// IBCounters are the counters of a port that an agent has: others are not there.
type IBCounters struct {
	Stats []Stat // by their names in sysfs, ports/N/counters
	Wide  bool   // errors and waiting have 64 bits, and do not stop
}

// counterFiles are the names that the kernel gives the counters in ports/N/counters (drivers/infiniband/core/sysfs.c).
var counterFiles = [mad.NumCounters]string{
	mad.SymbolErrors:                 "symbol_error",
	mad.LinkErrorRecoveries:          "link_error_recovery",
	mad.LinkDowned:                   "link_downed",
	mad.ReceiveErrors:                "port_rcv_errors",
	mad.ReceiveRemotePhysicalErrors:  "port_rcv_remote_physical_errors",
	mad.ReceiveSwitchRelayErrors:     "port_rcv_switch_relay_errors",
	mad.TransmitDiscards:             "port_xmit_discards",
	mad.TransmitConstraintErrors:     "port_xmit_constraint_errors",
	mad.ReceiveConstraintErrors:      "port_rcv_constraint_errors",
	mad.LocalLinkIntegrityErrors:     "local_link_integrity_errors",
	mad.ExcessiveBufferOverrunErrors: "excessive_buffer_overrun_errors",
	mad.VL15Dropped:                  "VL15_dropped",
	mad.TransmitWait:                 "port_xmit_wait",
	mad.TransmitData:                 "port_xmit_data",
	mad.ReceiveData:                  "port_rcv_data",
	mad.TransmitPackets:              "port_xmit_packets",
	mad.ReceivePackets:               "port_rcv_packets",
	mad.TransmitUnicast:              "unicast_xmit_packets",
	mad.ReceiveUnicast:               "unicast_rcv_packets",
	mad.TransmitMulticast:            "multicast_xmit_packets",
	mad.ReceiveMulticast:             "multicast_rcv_packets",
}

// Counters asks an agent; the first time also for what it has.
func (s subnetAsker) Counters(ctx context.Context, device string, port int, a *Agent) (out IBCounters, err error) {
	err = s.ask(device, port, mad.ClassPerformance, fmt.Sprintf("LID %d for the counters of port %d", a.LID, a.Port), func(c *mad.Client) error {
		out, err = askCounters(ctx, c, a)
		return err
	})
	return out, err
}

func askCounters(ctx context.Context, c *mad.Client, a *Agent) (out IBCounters, err error) {
	to := mad.ToLID(a.LID)
	if a.info == nil {
		info, err := c.PerformanceInfo(ctx, to)
		if err != nil {
			return out, err
		}
		info.TransmitWait = info.TransmitWait || a.TransmitWait
		a.info = &info
	}
	counters, err := c.Counters(ctx, to, a.Port, *a.info)
	if err != nil {
		return out, err
	}
	out.Wide = a.info.ExtendedErrors
	for k, file := range counterFiles {
		if v, ok := counters.Get(mad.Counter(k)); ok {
			out.Stats = append(out.Stats, Stat{Name: file, Value: v})
		}
	}
	return out, nil
}

// IBManager is a subnet manager, as its SMInfo tells (IBA 14.2.5.13).
type IBManager struct {
	GUID     string  // of its port, xxxx:xxxx:xxxx:xxxx
	State    *uint64 // 0 not active, 1 discovering, 2 standby, 3 master
	Priority *uint64 // of 15: the highest becomes the master
	Activity *uint64 // rises with what it sends, its answers too
}

// Manager asks a subnet manager.
func (s subnetAsker) Manager(ctx context.Context, device string, port int, lid uint16) (m IBManager, err error) {
	err = s.ask(device, port, mad.ClassSubnetLID, fmt.Sprintf("the subnet manager at LID %d", lid), func(c *mad.Client) error {
		info, err := c.SMInfo(ctx, mad.ToLID(lid))
		if err != nil {
			return err
		}
		state, priority, activity := uint64(info.State), uint64(info.Priority), uint64(info.Activity)
		m = IBManager{GUID: guidText(info.GUID), State: &state, Priority: &priority, Activity: &activity}
		return nil
	})
	return m, err
}

// ask opens a port for a class of datagrams, one at a time, and lets question use it.
func (s subnetAsker) ask(device string, port int, class uint8, what string, question func(*mad.Client) error) error {
	t, err := s.open(device, port, class)
	if err != nil {
		return err
	}
	c := mad.NewClient(t, mad.Options{InFlight: 1, Timeout: agentTimeout, Retries: subnetRetries})
	err = question(c)
	if err = errors.Join(err, c.Close()); err != nil {
		return &Error{"ask", fmt.Sprintf("%s from %s/%d", what, device, port), err}
	}
	return nil
}

func guidText(g uint64) string {
	return fmt.Sprintf("%04x:%04x:%04x:%04x", g>>48, g>>32&0xffff, g>>16&0xffff, g&0xffff)
}
