package setup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/gdr/transport"
	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
)

// computeDevices returns the names of the devices with an ACTIVE compute port.
func (m *machine) computeDevices() (out []string) {
	for _, d := range m.devices {
		if slices.ContainsFunc(d.Ports, func(p snapshot.Port) bool { return p.Role == "compute" && active(&p) }) {
			out = append(out, d.Name)
		}
	}
	return out
}

func (m *machine) hcas(j jobProcess, _ string) finding {
	compute := m.computeDevices()
	if m.InfiniBand == nil || len(m.InfiniBand.Devices) == 0 {
		return finding{}
	}
	items, excluded, exact := j.env.HCAs()
	v := finding{want: "=" + strings.Join(compute, ","), basis: hostdata.SetupMachine}
	var problems, others []string
	for _, item := range items {
		name, number := nccl.HCA(item)
		any, up := false, false
		for d, p := range snapshot.PortsOf(m.InfiniBand.Devices) {
			if (d.Name == name || !exact && strings.HasPrefix(d.Name, name)) &&
				(number == "" || number == strconv.Itoa(p.Number)) {
				any, up = true, up || active(p)
			}
		}
		switch {
		case excluded:
		case !any:
			problems = append(problems, "no device "+item)
		case !up:
			problems = append(problems, item+" has no ACTIVE port")
		}
	}
	used := 0
	for d, p := range snapshot.PortsOf(m.InfiniBand.Devices) {
		if !j.env.AllowsPort(d.Name, p.Number) {
			continue
		}
		used++
		if p.Role == "other" && active(p) && len(compute) > 0 {
			others = append(others, d.Name)
		}
	}
	// Certain only where the list names no port at all: with one that is down the job waits, or was started before.
	v.contradicts = used == 0 && len(items) > 0
	if len(others) > 0 {
		problems = append(problems, strings.Join(slices.Compact(others), ", ")+" not of the compute network")
	}
	if left := m.leftOut(j); left != "" && used > 0 {
		problems = append(problems, left)
	}
	v.meets, v.evidence = len(problems) == 0, strings.Join(problems, "; ")
	if len(compute) == 0 {
		v.want, v.remedy = "an existing device", "unset NCCL_IB_HCA # of the job, or in nccl.conf"
	}
	return v
}

// near is a GPU of a job, with its nearest devices of ACTIVE compute ports.
type near struct {
	gpu     string
	level   string // distance
	devices []string
}

// nearest returns the nearest devices of the GPUs of a process.
func (m *machine) nearest(j jobProcess) (out []near) {
	compute := m.computeDevices()
	for g := range m.GDR.GPUs {
		if p := m.GDR.GPUs[g].Process; p == nil || p.PID != j.PID {
			continue
		}
		one := near{gpu: m.GDR.GPUs[g].Index}
		for _, p := range m.GDR.Pairs {
			if p.GPU != g || p.NIC < 0 || p.NIC >= len(m.GDR.NICs) || p.Distance == "" ||
				!slices.Contains(compute, m.GDR.NICs[p.NIC].Device) {
				continue
			}
			device := m.GDR.NICs[p.NIC].Device
			switch distance := nccl.Level(pci.Distance(p.Distance)) - nccl.Level(pci.Distance(one.level)); {
			case one.level == "" || distance < 0:
				one.level, one.devices = p.Distance, []string{device}
			case distance == 0:
				one.devices = append(one.devices, device)
			}
		}
		if len(one.devices) > 0 {
			out = append(out, one)
		}
	}
	return out
}

// leftOut returns the GPUs of a job for which its settings exclude all of the nearest devices.
func (m *machine) leftOut(j jobProcess) string {
	var out []string
	for _, n := range m.nearest(j) {
		if !slices.ContainsFunc(n.devices, func(d string) bool { return m.allowed(j, d) }) {
			out = append(out, fmt.Sprintf("GPU %s without its nearest device %s", n.gpu, strings.Join(n.devices, " or ")))
		}
	}
	return strings.Join(out, "; ")
}

// allowed reports whether a job may use a port of a device.
func (m *machine) allowed(j jobProcess, device string) bool {
	return slices.ContainsFunc(m.devices, func(d *snapshot.Device) bool {
		return d.Name == device &&
			slices.ContainsFunc(d.Ports, func(p snapshot.Port) bool { return j.env.AllowsPort(d.Name, p.Number) })
	})
}

func findLevel(m *machine) (out []finding) {
	const now, former = "NCCL_NET_GDR_LEVEL", "NCCL_IB_GDR_LEVEL"
	for _, j := range m.jobs {
		if !j.HasNCCL {
			continue
		}
		value := j.env[now]
		if value == "" {
			if old := j.env[former]; old != "" {
				out = append(out,
					finding{want: "not set", evidence: former + " has no effect since NCCL 2.4"}.ofJob(j, former+"="+old))
			}
			continue
		}
		v := finding{want: "not set", meets: true, basis: hostdata.SetupMachine}
		limit, ok := j.env.GDRLevel()
		if !ok {
			v.meets, v.evidence = false, "no distance of NCCL: the setting has no effect"
		}
		for _, n := range m.nearest(j) {
			// By default NCCL uses GPUDirect RDMA below a PCIe switch, and not across a host bridge.
			if level := nccl.Level(pci.Distance(n.level)); ok && level > limit && level <= nccl.Level(pci.PXB) {
				v.meets, v.contradicts, v.want, v.evidence = false, true, n.level, fmt.Sprintf("GPU %s and %s are at %s",
					n.gpu, strings.Join(n.devices, ", "), n.level)
				break
			}
		}
		out = append(out, v.ofJob(j, value))
	}
	return joined(out)
}

func (m *machine) ibDisabled(j jobProcess, _ string) finding {
	if len(m.computeDevices()) == 0 {
		return finding{}
	}
	v := finding{want: "0", basis: hostdata.SetupMachine, meets: j.env.Integer("NCCL_IB_DISABLE", 0) == 0}
	if j.env.Nodes() < 2 {
		v.evidence = "the job runs on one node, or on an unknown number"
		return v
	}
	// In an NVLink domain of several hosts the data may take NVLink.
	inDomain := slices.ContainsFunc(m.GDR.GPUs, func(g accel.GDRGPU) bool {
		return g.Transport != nil &&
			(g.Transport.Reason == string(transport.InDomain) || g.Transport.Reason == string(transport.DomainUnknown))
	})
	v.contradicts, v.evidence = !inDomain, "the job spans several nodes, and this host has ACTIVE compute ports"
	return v
}

// layer reports whether an ACTIVE compute port has a link layer.
func (m *machine) layer(name string) bool {
	return slices.ContainsFunc(m.devices, func(d *snapshot.Device) bool {
		return slices.ContainsFunc(d.Ports,
			func(p snapshot.Port) bool { return p.LinkLayer == name && p.Role == "compute" && active(&p) })
	})
}

func (m *machine) topologyFile(j jobProcess, value string) finding {
	v := finding{want: "a topology of this host", basis: hostdata.SetupMachine}
	if j.Conf == nil {
		v.unknown = "the files of the job are not readable"
		return v
	}
	if j.Topology == "" {
		v.evidence = value + " does not exist as the job sees it"
		return v
	}
	t, err := nccl.ParseTopology(strings.NewReader(j.Topology))
	if err != nil {
		v.evidence = value + " is not a topology file of NCCL"
		return v
	}
	var missing []string
	for _, g := range m.GDR.GPUs {
		if g.PCIAddress != "" && !t.Has(g.PCIAddress) {
			missing = append(missing, "GPU "+g.Index+" ("+g.PCIAddress+")")
		}
	}
	for _, n := range m.GDR.NICs {
		if n.Role == "compute" && n.PCIAddress != "" && !t.Has(n.PCIAddress) {
			missing = append(missing, n.Device+" ("+n.PCIAddress+")")
		}
	}
	if v.meets = len(missing) == 0; !v.meets {
		v.evidence = "not in the file: " + strings.Join(missing, ", ")
	} else if far := m.farByFile(j); far != "" {
		v.meets, v.contradicts, v.want, v.evidence = false, true, "not set", far
	}
	return v
}

// farByFile returns the first GPU of a job that the topology file puts too far from a device for GPUDirect RDMA, where
// the PCI tree has them near enough.
func (m *machine) farByFile(j jobProcess) string {
	limit := nccl.Level(pci.PXB)
	for _, p := range m.GDR.Pairs {
		if g := &m.GDR.GPUs[p.GPU]; g.Process != nil && g.Process.PID == j.PID && p.Tree != "" &&
			nccl.Level(pci.Distance(p.Tree)) <= limit && nccl.Level(pci.Distance(p.Distance)) > limit {
			return fmt.Sprintf("GPU %s and %s are at %s in the file, at %s in the PCI tree",
				g.Index, m.GDR.NICs[p.NIC].Device, p.Distance, p.Tree)
		}
	}
	return ""
}
