package neighbours

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
)

// subnetAnswer is the data received over an InfiniBand port. Immutable.
type subnetAnswer struct {
	end      *farEnd // nil where there is none
	guid     string  // of the node there
	agent    host.Agent
	counters []wire.Stat
	fec      *snapshot.IBFEC
	lanes    *uint64 // of the link; nil: unknown
	manager  *snapshot.SubnetManager
	settings []snapshot.LinkSetting
}

// subnetEnds queries both ends of an InfiniBand link, if permitted: node, supported and enabled modes, counters of the
// far end, and the subnet manager.
func (c *neighbours) subnetEnds(
	reader *reading.Reader, maxRate float64, port int, last subnetAnswer,
) (out subnetAnswer) {
	if !c.askSubnet || reader.Host.Subnet == nil {
		return out
	}
	r := reader.From(source.Subnet)
	l, err := overSubnet(r, port,
		&host.Agent{}, func(s host.Subnet, ctx context.Context, device string, port int, _ *host.Agent) (host.IBLink, error) {
			return s.Ends(ctx, device, port)
		})
	r.Ask(max(1, l.Requests)) // unknown for a query that has not returned
	if err == nil {
		out.settings = settingsOf(&l)
	}
	if err == nil && l.SMLID != nil && shared.IsLID(*l.SMLID) {
		out.manager = askManager(r, port, uint16(*l.SMLID))
	}
	if err != nil || l.FarPort == nil {
		c.common.Set(r.Device, port, shared.CommonLink{})
		return out
	}
	out.end, out.guid = answeredEnd(&l), l.FarGUID
	c.common.Set(r.Device, port, shared.CommonOf(l.Common(), maxRate))
	if l.FarLID != nil && shared.IsLID(*l.FarLID) {
		out.agent = host.Agent{LID: uint16(*l.FarLID), Port: int(*l.FarPort), Far: true}
		if last.guid == out.guid && last.agent.LID == out.agent.LID && last.agent.Port == out.agent.Port {
			out.agent = last.agent // its capabilities are known
		}
		out.counters = askFar(r, port, &out.agent)
		out.fec = askFarFEC(r, port, &out.agent)
		if n := uint64(l.Own.Active.Link().Widths.Lanes()); n > 0 {
			out.lanes = &n
		}
	}
	return out
}

func askFar(r reading.Reads, port int, a *host.Agent) []wire.Stat {
	r.Ask(a.Requests())
	answer, _ := overSubnet(r, port, a, host.Subnet.Counters)
	return answer.Stats
}

// askFarFEC queries the FEC at the far end; nil without an answer.
func askFarFEC(r reading.Reads, port int, a *host.Agent) *snapshot.IBFEC {
	r.Ask(a.FECRequests())
	answer, err := overSubnet(r, port, a, host.Subnet.PortFEC)
	if err != nil {
		return nil
	}
	return &answer
}

func askManager(r reading.Reads, port int, lid uint16) *snapshot.SubnetManager {
	r.Ask(1)
	m, err := overSubnet(r, port, &host.Agent{},
		func(s host.Subnet, ctx context.Context, device string, port int, _ *host.Agent) (host.IBManager, error) {
			return s.Manager(ctx, device, port, lid)
		})
	if err != nil {
		return nil
	}
	return &snapshot.SubnetManager{GUID: m.GUID, State: m.State, Priority: m.Priority, Activity: m.Activity}
}

// subnetTimeout bounds all answers to a query: those of both ends of a link, 200 ms each, with one retry.
const subnetTimeout = time.Second

// overSubnet queries over a port, and records failures, except that no node is there.
func overSubnet[T any](r reading.Reads, port int, a *host.Agent, query shared.AgentQuery[T]) (T, error) {
	got, err := shared.AskAgent(r.Reader, fmt.Sprintf("subnet/%s/%d", r.Device, port), subnetTimeout, port, a, query)
	r.IssueUnless(err, access.Absent)
	return got, err
}

// answeredEnd returns the far end that has answered.
func answeredEnd(l *host.IBLink) *farEnd {
	number := strconv.FormatUint(*l.FarPort, 10)
	return &farEnd{
		End:     snapshot.End{System: l.System(), Port: number},
		systems: []string{l.System(), l.FarDescription, l.FarGUID}, ports: []string{number},
	}
}

// settingsOf lists the settings reported by the ends.
func settingsOf(l *host.IBLink) (out []snapshot.LinkSetting) {
	for _, end := range []struct {
		name string
		host.IBEnd
	}{{"own", l.Own}, {"neighbour", l.Far}} {
		for _, s := range []struct {
			name string
			sets host.IBSets
		}{{"supported", end.Supported}, {"enabled", end.Enabled}, {"active", end.Active}} {
			if link := s.sets.Link(); link.Rate() > 0 {
				out = append(out,
					snapshot.LinkSetting{End: end.name, Setting: s.name, Rate: link.Rate(), Lanes: link.Widths.Lanes()})
			}
		}
	}
	return out
}
