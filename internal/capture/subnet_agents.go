package capture

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/mad"
)

// agentPath is the entry of the counters of a performance management agent, by LID and port.
func agentPath(device string, port int, a *host.Agent) string {
	return fmt.Sprintf("subnet/%s/%d/agent/%d-%d", device, port, a.LID, a.Port)
}

// portFECPath is the entry of the FEC of a port, by the LID of its agent and the port.
func portFECPath(device string, port int, a *host.Agent) string {
	return fmt.Sprintf("subnet/%s/%d/fec/%d-%d", device, port, a.LID, a.Port)
}

// settingsPath is the entry of the settings of a port.
func settingsPath(device string, port int) string {
	return fmt.Sprintf("subnet/%s/%d/settings", device, port)
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

// encodePortFEC writes the mode, which has no ": ", and the counters as NAME or NAME/laneN.
func encodePortFEC(f host.IBFEC) []byte {
	var b bytes.Buffer
	if f.Mode != "" {
		fmt.Fprintf(&b, "mode: %s\n", f.Mode)
	}
	for _, c := range f.Counts {
		if c.Lane >= 0 {
			fmt.Fprintf(&b, "%s/lane%d: %d\n", c.Name, c.Lane, c.Value)
		} else {
			fmt.Fprintf(&b, "%s: %d\n", c.Name, c.Value)
		}
	}
	return b.Bytes()
}

func decodePortFEC(path string, data []byte) (f host.IBFEC, err error) {
	err = lines(path, data, func(name, value string) error {
		if name == "mode" {
			f.Mode = value
			return nil
		}
		c := host.FECCount{Name: name, Lane: -1}
		if of, lane, ok := strings.Cut(name, "/lane"); ok {
			n, err := strconv.ParseUint(lane, 10, 8)
			if err != nil {
				return err
			}
			c.Name, c.Lane = of, int(n)
		}
		n, err := strconv.ParseUint(value, 10, 64)
		c.Value = n
		f.Counts = append(f.Counts, c)
		return err
	})
	return f, err
}

// PortFEC records the answer.
func (r *Recorder) PortFEC(ctx context.Context, device string, port int, a *host.Agent) (host.IBFEC, error) {
	f, err := r.inner.Subnet.PortFEC(ctx, device, port, a)
	r.answer(portFECPath(device, port, a), encodePortFEC(f), err)
	return f, err
}

// PortFEC returns the recorded answer.
func (p *Player) PortFEC(_ context.Context, device string, port int, a *host.Agent) (host.IBFEC, error) {
	name := portFECPath(device, port, a)
	b, err := p.Read(name, nil)
	if err != nil {
		return host.IBFEC{}, err
	}
	return decodePortFEC(name, b)
}

func settingsFields(s *host.IBPortSettings) []field {
	return []field{{"mtu", &s.MTU, false}, {"data_vls", &s.DataVLs, false}}
}

// encodeSettings writes the virtual lanes of the service levels in one line.
func encodeSettings(s host.IBPortSettings) []byte {
	var b bytes.Buffer
	encodeFields(&b, settingsFields(&s))
	if s.VLs != nil {
		fmt.Fprintf(&b, "vls: %s\n", strings.Trim(fmt.Sprint(s.VLs), "[]"))
	}
	return b.Bytes()
}

func decodeSettings(path string, data []byte) (s host.IBPortSettings, err error) {
	bad := false
	err = decodeFields(path, data, settingsFields(&s), func(name, value string) {
		if name != "vls" {
			return
		}
		s.VLs = nil
		for word := range strings.FieldsSeq(value) {
			vl, err := strconv.ParseUint(word, 10, 4)
			bad = bad || err != nil
			s.VLs = append(s.VLs, uint8(vl))
		}
		bad = bad || len(s.VLs) != mad.ServiceLevels
	})
	if err == nil && bad {
		err = host.ErrGarbled(path, data)
	}
	return s, err
}

// PortSettings records the answer.
func (r *Recorder) PortSettings(ctx context.Context, device string, port int) (host.IBPortSettings, error) {
	s, err := r.inner.Subnet.PortSettings(ctx, device, port)
	r.answer(settingsPath(device, port), encodeSettings(s), err)
	return s, err
}

// PortSettings returns the recorded answer.
func (p *Player) PortSettings(_ context.Context, device string, port int) (host.IBPortSettings, error) {
	name := settingsPath(device, port)
	b, err := p.Read(name, nil)
	if err != nil {
		return host.IBPortSettings{}, err
	}
	return decodeSettings(name, b)
}
