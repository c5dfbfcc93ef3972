package capture

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/host"
)

// agentPath is the entry of the counters of a performance management agent, by LID and port.
func agentPath(device string, port int, a *host.Agent) string {
	return fmt.Sprintf("subnet/%s/%d/agent/%d-%d", device, port, a.LID, a.Port)
}

// managerPath is the entry of the answer of a subnet manager, by LID.
func managerPath(device string, port int, lid uint16) string {
	return fmt.Sprintf("subnet/%s/%d/manager/%d", device, port, lid)
}

func isManager(name string) bool {
	return strings.HasPrefix(name, "subnet/") && strings.Contains(name, "/manager/")
}

// wide is the line that marks 64-bit error counters.
const wide = "wide"

func encodeCounters(c host.IBCounters) []byte {
	b := encodeStats(c.Stats)
	if c.Wide {
		b = fmt.Appendf(b, "%s: 1\n", wide)
	}
	return b
}

// countersOf separates the line about the width from the counters.
func countersOf(stats []host.Stat) (c host.IBCounters) {
	is := func(s host.Stat) bool { return s.Name == wide }
	c.Wide = slices.ContainsFunc(stats, is)
	c.Stats = slices.DeleteFunc(stats, is)
	return c
}

// Counters records the answer.
func (r *Recorder) Counters(ctx context.Context, device string, port int, a *host.Agent) (host.IBCounters, error) {
	c, err := r.inner.Subnet.Counters(ctx, device, port, a)
	r.answer(agentPath(device, port, a), encodeCounters(c), err)
	return c, err
}

// Counters returns the recorded answer.
func (p *Player) Counters(_ context.Context, device string, port int, a *host.Agent) (host.IBCounters, error) {
	name := agentPath(device, port, a)
	stats, err := p.stats(name, nil)
	if err != nil {
		return host.IBCounters{}, err
	}
	return countersOf(stats), nil
}

func managerFields(m *host.IBManager) []field {
	return []field{{"state", &m.State, false}, {"priority", &m.Priority, false}, {"activity", &m.Activity, false}}
}

func encodeManager(m host.IBManager) []byte {
	var b bytes.Buffer
	encodeFields(&b, managerFields(&m))
	fmt.Fprintf(&b, "guid: %s\n", m.GUID)
	return b.Bytes()
}

func decodeManager(path string, data []byte) (m host.IBManager, err error) {
	err = decodeFields(path, data, managerFields(&m), func(name, value string) {
		if name == "guid" {
			m.GUID = value
		}
	})
	return m, err
}

// Manager records the answer.
func (r *Recorder) Manager(ctx context.Context, device string, port int, lid uint16) (host.IBManager, error) {
	m, err := r.inner.Subnet.Manager(ctx, device, port, lid)
	r.answer(managerPath(device, port, lid), encodeManager(m), err)
	return m, err
}

// Manager returns the recorded answer.
func (p *Player) Manager(_ context.Context, device string, port int, lid uint16) (host.IBManager, error) {
	name := managerPath(device, port, lid)
	b, err := p.Read(name, nil)
	if err != nil {
		return host.IBManager{}, err
	}
	return decodeManager(name, b)
}
