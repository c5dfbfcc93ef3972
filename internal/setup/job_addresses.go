package setup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

// ownInterfaces reports whether a job has network interfaces of its own: those of a pod are not the host's.
func (j jobProcess) ownInterfaces() bool { return strings.HasPrefix(j.Job, "kubernetes/") }

func (m *machine) socketInterfaces(j jobProcess, value string) finding {
	v := finding{want: "interfaces that are up", basis: hostdata.SetupMachine}
	names := m.files.Names(netDir)
	switch {
	case j.ownInterfaces():
		v.unknown = "the interfaces of the container are not visible"
	case m.files.Unread(netDir) != "" || len(names) == 0:
		v.unknown = "/sys/class/net of the host is not readable"
	}
	if v.unknown != "" {
		return v
	}
	list, not := strings.CutPrefix(value, "^")
	if not { // NCCL uses what is left
		return finding{}
	}
	list, exact := strings.CutPrefix(list, "=")
	var problems []string
	for item := range strings.SplitSeq(list, ",") {
		var matching []string
		for _, n := range names {
			if n == item || !exact && item != "" && strings.HasPrefix(n, item) {
				matching = append(matching, n)
			}
		}
		if len(matching) == 0 && item != "" {
			problems = append(problems, "no interface "+item)
		}
		for _, n := range matching {
			if n != item { // a prefix takes the interfaces that are up
				continue
			}
			if flags, ok := m.files.Text(netDir + "/" + n + "/flags"); ok {
				if bits, err := strconv.ParseUint(flags, 0, 32); err == nil && bits&1 == 0 {
					problems = append(problems, n+" is down")
				}
			}
			if p := m.withoutAddress(n); p != "" {
				problems = append(problems, n+" of "+p+" has no IP address")
			}
		}
	}
	v.meets, v.evidence = len(problems) == 0, strings.Join(problems, ", ")
	return v
}

// withoutAddress returns the port of an interface without an IP address: its GID table has no entry for one. Empty if
// the interface has an address, or does not belong to an Ethernet port.
func (m *machine) withoutAddress(netdev string) string {
	for _, p := range m.ports() {
		named := slices.ContainsFunc(p.Netdev, func(n snapshot.Netdev) bool { return n.Name == netdev })
		if !named || p.LinkLayer != "Ethernet" || len(p.RoCEv2) == 0 {
			continue
		}
		if p.RoCEv2["ipv4"].Entries == 0 && p.RoCEv2["ipv6"].Entries == 0 {
			return p.object().String()
		}
	}
	return ""
}

func (m *machine) gidIndex(j jobProcess, value string) finding {
	if j.env.Integer("NCCL_IB_GID_INDEX", -1) < 0 {
		return finding{want: "-1", meets: true}
	}
	v := finding{}
	for i := range m.GDR.JobGIDs {
		g := &m.GDR.JobGIDs[i]
		if g.Process == nil || g.Process.Job != j.Job || g.Process.Job == "" && g.Process.PID != j.PID {
			continue
		}
		if v.want == "" {
			v = finding{want: "RoCE v2 entry", meets: true, basis: hostdata.SetupMachine}
		}
		if g.Mismatch() && v.meets {
			kind := "empty"
			if g.Type == "roce_v1" {
				kind = "RoCE v1"
			}
			v.meets, v.contradicts, v.evidence = false, true, fmt.Sprintf("entry %s of %s/%d is %s",
				value, g.Device, g.Port, kind)
			if first, ok := m.firstV2(g.Device, g.Port); ok {
				v.want = strconv.FormatUint(first, 10)
			}
		}
	}
	return v
}

// firstV2 returns the lowest index of an IPv4 entry of RoCE v2.
func (m *machine) firstV2(device string, port int) (index uint64, ok bool) {
	for _, p := range m.ports() {
		if f := p.RoCEv2["ipv4"]; p.Name == device && p.Number == port && f.Entries > 0 {
			return f.First, true
		}
	}
	return 0, false
}
