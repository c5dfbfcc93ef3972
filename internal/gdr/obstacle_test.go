package gdr

import (
	"strings"
	"testing"

	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/pci"
)

// apart puts NICs at root ports of the socket without the GPU, of which one is left.
func apart(m *Machine) {
	m.GPUs = m.GPUs[:1]
	for i := range m.NICs {
		bus := string("89"[i])
		m.NICs[i].Place = pci.PlaceOf("sys/devices/pci0000:"+bus+"0/0000:"+bus+"0:01.0/0000:"+bus+"1:00.0", 1)
	}
}

// bare puts the first GPU directly below a root port.
func bare(m *Machine) {
	m.GPUs[0].Place = pci.PlaceOf("sys/devices/pci0000:70/0000:70:01.0/0000:71:00.0", 0)
}

func noModule(m *Machine) { m.Driver.Open = new(false) }

// TestObstacles: all obstacles of the first GPU in the order of removal with the path after each, and the path that its
// hardware can have (receive, send).
func TestObstacles(t *testing.T) {
	job := func(settings ...string) Job {
		j := Job{Env: nccl.Env{}}
		for _, s := range settings {
			name, value, _ := strings.Cut(s, "=")
			j.Env[name] = value
		}
		return j
	}
	filed := job("NCCL_NET_GDR_LEVEL=PXB")
	filed.Topology = flat(hopper())
	five := job("NCCL_NET_GDR_LEVEL=LOC", "NCCL_IB_HCA==mlx5_1", "NCCL_NET_GDR_READ=0")
	five.Topology = filed.Topology
	below := &nccl.Topology{Places: map[string]pci.NCCLPlace{}}
	for _, address := range []string{hopper().GPUs[0].Address, "0000:81:00.0"} {
		below.Places[address] = pci.NCCLPlace{Switches: []string{"0000:01:00.0"}}
	}
	for _, c := range []struct {
		name   string
		base   func() *Machine
		change []func(*Machine)
		job    Job
		want   string // KIND REASON > STATE REASON, ...
		can    string
	}{
		{"direct", hopper, nil, Job{}, "", "direct direct"},
		{"direct over a host bridge that the job allows", hopper, []func(*Machine){apart}, job("NCCL_NET_GDR_LEVEL=SYS"), "", "direct direct"},
		{"no mechanism", hopper, []func(*Machine){noModule}, Job{}, "mechanism gpu_driver_proprietary > direct direct", "direct direct"},
		{"far, below a switch, a NIC near no GPU", hopper, []func(*Machine){apart}, Job{}, "place other_numa_node > direct direct", "direct direct"},
		{"far and no mechanism", hopper, []func(*Machine){apart, noModule}, Job{}, "mechanism gpu_driver_proprietary > staging other_numa_node, place other_numa_node > direct direct", "direct direct"},
		{"far and no mechanism, no switch", hopper, []func(*Machine){apart, bare, noModule}, Job{}, "mechanism gpu_driver_proprietary > staging other_numa_node, place other_numa_node > direct direct", "staging staging"},
		{"far, no mechanism, but the job allows the distance", hopper, []func(*Machine){apart, bare, noModule}, job("NCCL_NET_GDR_LEVEL=SYS"), "mechanism gpu_driver_proprietary > direct direct", "direct direct"},
		{"host bridge of the same node, as for all GPUs", hopper, []func(*Machine){apart, func(m *Machine) { m.NICs[0].Place.NUMA, m.NICs[1].Place.NUMA = 0, 0 }}, Job{}, "place beyond_host_bridge > direct direct", "staging staging"},
		{"the NIC of one GPU in another slot", hopper, []func(*Machine){func(m *Machine) { m.NICs[0].Place = pci.PlaceOf("sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0", 0) }}, Job{}, "place beyond_host_bridge > direct direct", "direct direct"},
		{"fewer NICs than GPUs", hopper, []func(*Machine){func(m *Machine) { m.NICs = m.NICs[1:] }}, Job{}, "place other_numa_node > direct direct", "staging staging"},
		{"the NIC of one of three GPUs is gone", hopper, []func(*Machine){func(m *Machine) {
			third, _ := plane(3, 1)
			m.GPUs, m.NICs = append(m.GPUs, m.GPUs[1]), append(m.NICs[1:], m.NICs[1])
			m.GPUs[2].Place, m.GPUs[2].Address = third, third.Chain[3]
			_, m.NICs[1].Place = plane(3, 1)
		}}, Job{}, "place other_numa_node > direct direct", "direct direct"},
		{"nearest port down", hopper, []func(*Machine){func(m *Machine) { m.NICs[0].Ports[0].Active = false }}, Job{}, "port nearest_port_down > direct direct", "direct direct"},
		{"nearest port down and no mechanism", hopper, []func(*Machine){noModule, func(m *Machine) { m.NICs[0].Ports[0].Active = false }}, Job{}, "port nearest_port_down > staging gpu_driver_proprietary, mechanism gpu_driver_proprietary > direct direct", "direct direct"},
		{"no port up", hopper, []func(*Machine){func(m *Machine) { m.NICs[0].Ports[0].Active, m.NICs[1].Ports[0].Active = false, false }}, Job{}, "port no_active_nic > direct direct", "direct direct"},
		{"no NIC", hopper, []func(*Machine){func(m *Machine) { m.NICs = nil }}, Job{}, "", "unknown unknown"},
		{"topology file of the job", hopper, nil, filed, "settings topology_file > direct direct", "direct direct"},
		{"topology file of the job, no mechanism", hopper, []func(*Machine){noModule}, filed, "settings topology_file > staging gpu_driver_proprietary, mechanism gpu_driver_proprietary > direct direct", "direct direct"},
		{"topology file in a virtual machine", hopper, []func(*Machine){func(m *Machine) { m.Virtual = true }}, filed, "place beyond_host_bridge > direct direct", "staging staging"},
		{"topology file that puts the NIC near: it stays", hopper, []func(*Machine){apart, noModule, func(m *Machine) { m.Topology = below }}, Job{}, "mechanism gpu_driver_proprietary > direct direct", "direct direct"},
		{"level", hopper, nil, job("NCCL_NET_GDR_LEVEL=LOC"), "settings gdr_level_set > direct direct", "direct direct"},
		{"level and a far NIC", hopper, []func(*Machine){apart}, job("NCCL_NET_GDR_LEVEL=LOC"), "settings gdr_level_set > staging other_numa_node, place other_numa_node > direct direct", "direct direct"},
		{"NCCL_IB_HCA without the nearest", hopper, nil, job("NCCL_IB_HCA==mlx5_1"), "settings nearest_not_chosen > direct direct", "direct direct"},
		{"NCCL_IB_HCA of no device", hopper, nil, job("NCCL_IB_HCA=bnxt"), "settings no_chosen_nic > direct direct", "direct direct"},
		{"NCCL_IB_HCA of a port that is down", hopper, []func(*Machine){func(m *Machine) { m.NICs[0].Ports[0].Active = false }}, job("NCCL_IB_HCA==mlx5_0"), "port no_chosen_nic > direct direct", "direct direct"},
		{"five settings at once", hopper, []func(*Machine){noModule}, five, "settings nearest_not_chosen > staging beyond_host_bridge, settings gdr_level_set > staging topology_file, settings topology_file > staging gpu_driver_proprietary, settings gdr_read_disabled > staging gpu_driver_proprietary, mechanism gpu_driver_proprietary > direct direct", "direct direct"},
		{"DMA-BUF disabled", hopper, nil, job("NCCL_DMABUF_ENABLE=0"), "settings dmabuf_disabled > direct direct", "direct direct"},
		{"DMA-BUF disabled where it is not available", hopper, []func(*Machine){noModule}, job("NCCL_DMABUF_ENABLE=0"), "mechanism gpu_driver_proprietary > direct direct", "direct direct"},
		{"sending disabled", hopper, nil, job("NCCL_NET_GDR_READ=0"), "settings gdr_read_disabled > direct direct", "direct direct"},
		{"sending disabled and no mechanism", hopper, []func(*Machine){noModule}, job("NCCL_NET_GDR_READ=0"), "settings gdr_read_disabled > staging gpu_driver_proprietary, mechanism gpu_driver_proprietary > direct direct", "direct direct"},
		{"sending of a GPU before Ampere, disabled as well", hopper, []func(*Machine){func(m *Machine) { m.GPUs[0].Compute, m.GPUs[0].Linked = 75, new(false) }}, job("NCCL_NET_GDR_READ=0"), "", "direct staging"},
		{"GeForce, no mechanism", hopper, []func(*Machine){noModule, func(m *Machine) { m.GPUs[0].Model = "NVIDIA GeForce RTX 4090" }}, Job{}, "", "staging staging"},
		{"net plugin", hopper, []func(*Machine){noModule}, Job{Plugin: true}, "", "unknown unknown"},
		{"nearest port down, mechanism unknown", hopper, []func(*Machine){func(m *Machine) { m.Driver, m.NICs[0].Ports[0].Active = Driver{}, false }}, Job{}, "port nearest_port_down > unknown gpu_driver_unknown", "unknown unknown"},
		{"far, mechanism unknown", hopper, []func(*Machine){apart, func(m *Machine) { m.Driver = Driver{} }}, Job{}, "place other_numa_node > unknown gpu_driver_unknown", "unknown unknown"},
		{"Grace, NCCL 2.25, peermem not visible to it", grace, []func(*Machine){noModule, func(m *Machine) { m.Peermem.Module = "nvidia_peermem" }}, Job{NCCL: "2.22.3"}, "settings c2c_not_used > staging peermem_invisible_to_nccl, mechanism peermem_invisible_to_nccl > direct direct_c2c", "direct direct"},
		{"Grace, the NIC on the other CPU", grace, []func(*Machine){func(m *Machine) { m.GPUs = m.GPUs[:1]; m.NICs = m.NICs[1:] }}, Job{}, "place other_cpu > direct direct_c2c", "direct direct"},
		{"AMD, BAR and mechanism", instinct, []func(*Machine){func(m *Machine) { m.GPUs[0].SmallBAR = new(true) }}, Job{}, "mechanism gpu_bar_small > direct direct", "direct direct"},
		{"AMD, other host bridge, no mechanism", instinct, []func(*Machine){apart, func(m *Machine) { m.NICs[0].Place.NUMA, m.ROCm = 0, ROCm{new(false), new(false)} }}, Job{}, "mechanism kernel_without_p2pdma > unknown rccl_host_bridge", "unknown unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := c.base()
			for _, change := range c.change {
				change(m)
			}
			b := m.Decide(c.job).Best[0]
			var got []string
			for _, o := range b.Obstacles {
				v := o.After.Verdict()
				got = append(got, o.Kind+" "+string(o.Reason)+" > "+string(v.State)+" "+string(v.Reason))
			}
			if got := strings.Join(got, ", "); got != c.want {
				t.Errorf("\n%s, want\n%s", got, c.want)
			}
			if got := string(b.CanReceive + " " + b.CanSend); got != c.can {
				t.Errorf("hardware: %s, want %s", got, c.can)
			}
		})
	}
}
