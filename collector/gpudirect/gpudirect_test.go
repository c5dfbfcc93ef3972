package gpudirect

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/infiniband"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/test/played"
)

func TestGPUDriver(t *testing.T) {
	const open, closed = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.133.20  Release Build  (dvs-builder@U22)",
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.06  Wed Jun 26 06:46:07 UTC 2024"
	for _, c := range []struct {
		name, entries, version, flavour string
	}{
		{"open", collectortest.Files("proc/driver/nvidia/version", open+"\nGCC version:  gcc version 12.3.0"), "570.133.20", "open"},
		{"proprietary", collectortest.Files("proc/driver/nvidia/version", closed), "535.183.06", "proprietary"},
		{"by its taint", collectortest.Files("sys/module/nvidia/version", "570.133.20", "sys/module/nvidia/taint", "OE"), "570.133.20", "open"},
		{"by its taint, proprietary", collectortest.Files("sys/module/nvidia/version", "570.133.20", "sys/module/nvidia/taint", "POE"), "570.133.20", "proprietary"},
		{"another text", collectortest.Files("proc/driver/nvidia/version", "NVRM version: unknown"), "", ""},
		{"none", collectortest.Files("proc/uptime", "1 1"), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := readGPUDriver(collectortest.ReadsOf(t, c.entries))
			if d.Version != c.version || flavourOf(d.Open) != c.flavour {
				t.Errorf("%s %s, want %s %s", d.Version, flavourOf(d.Open), c.version, c.flavour)
			}
		})
	}
}

func TestPeermem(t *testing.T) {
	const symbols = "0000000000000000 T ib_umem_dmabuf_get\t[ib_uverbs]\n0000000000000000 T ib_register_peer_memory_client\t[ib_core]"
	for _, c := range []struct {
		name, entries     string
		module            string
		clients           []string
		supported, dmabuf string
	}{
		{"loaded, old MLNX_OFED", collectortest.Files("sys/module/nvidia_peermem/initstate", "live", "sys/kernel/mm/memory_peers/nv_mem/version", "1", "proc/kallsyms", symbols), "nvidia_peermem", []string{"nv_mem"}, "true", "true"},
		{"the older module", collectortest.Files("sys/module/nv_peer_mem/initstate", "live", "proc/kallsyms", symbols), "nv_peer_mem", nil, "true", "true"},
		{"not loaded", collectortest.Files("sys/module/mlx_compat/initstate", "live"), "", nil, "true", "none"},
		{"going", collectortest.Files("sys/module/nvidia_peermem/initstate", "going", "proc/kallsyms", "0000000000000000 T ib_umem_dmabuf_get_pinned\t[ib_uverbs]"), "", nil, "false", "false"},
		{"nothing reported", collectortest.Files("proc/uptime", "1 1"), "", nil, "none", "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := collectortest.ReadsOf(t, c.entries)
			dmabuf, peers, _ := readSymbols(r)
			p := readPeermem(r, peers)
			if p.Module != c.module || !slices.Equal(p.Clients, c.clients) || tell(p.Supported) != c.supported ||
				tell(dmabuf) != c.dmabuf {
				t.Errorf("%+v, supported %s, DMA-BUF %s", p, tell(p.Supported), tell(dmabuf))
			}
		})
	}
}

func tell(b *bool) string {
	if b == nil {
		return "none"
	}
	return fmt.Sprint(*b)
}

// config is configuration space with the PCIe capability, and ACS at 0x100.
func config(redirect bool) string {
	b := make([]byte, 0x108)
	b[0x34], b[0x40], b[0x48], b[0x49] = 0x40, 0x10, 0x37, 0x59
	b[0x100], b[0x102] = 0x0d, 1
	if redirect {
		b[0x106] = 0x1d
	}
	var out strings.Builder
	for i := 0; i < len(b); i += 16 {
		fmt.Fprintf(&out, "%x\n", b[i:min(i+16, len(b))])
	}
	return out.String()
}

// board has a NIC and a GPU behind one switch. With acs one port redirects.
func board(acs bool, extra string) string {
	const bridge = "0000:15:01.0/0000:16:00.0/"
	var b strings.Builder
	put := func(under, address, vendor, device, class string, redirect bool) {
		dir := "sys/devices/pci0000:15/" + under + address
		b.WriteString(
			collectortest.Files(dir+"/vendor", vendor, dir+"/device", device, dir+"/class", class, dir+"/numa_node", "0",
				dir+"/current_link_speed", "32.0 GT/s PCIe", dir+"/current_link_width", "16"),
		)
		fmt.Fprintf(&b, "-- sys/bus/pci/devices/%s -> ../../../devices/pci0000:15/%s%s --\n-- %s/config @hex --\n%s",
			address, under, address, dir, config(redirect))
	}
	put("", "0000:15:01.0", "0x8086", "0x352a", "0x060400", true)
	put("0000:15:01.0/", "0000:16:00.0", "0x1000", "0xc030", "0x060400", false)
	put(bridge, "0000:17:00.0", "0x1000", "0xc030", "0x060400", acs)
	put(bridge, "0000:17:01.0", "0x1000", "0xc030", "0x060400", false)
	put(bridge+"0000:17:00.0/", "0000:18:00.0", "0x15b3", "0x1021", "0x020700", false)
	put(bridge+"0000:17:01.0/", "0000:19:00.0", "0x10de", "0x2330", "0x030200", false)
	nic := "sys/devices/pci0000:15/" + bridge + "0000:17:00.0/0000:18:00.0"
	b.WriteString(
		collectortest.Files(nic+"/local_cpulist", "0-55", nic+"/infiniband/mlx5_0/node_guid", "b83f:d203:0050:a1c0",
			nic+"/infiniband/mlx5_0/ports/1/state", "4: ACTIVE"),
	)
	fmt.Fprintf(
		&b,
		"-- %s/driver -> ../../../../../../bus/pci/drivers/mlx5_core --\n-- %s/infiniband/mlx5_0/device -> ../.. --\n",
		nic,
		nic,
	)
	fmt.Fprintf(&b, "-- sys/class/infiniband/mlx5_0 -> ../../devices/%s/infiniband/mlx5_0 --\n",
		strings.TrimPrefix(nic, "sys/devices/"))
	fmt.Fprintf(&b, "-- %s/iommu_group -> ../../../../../../kernel/iommu_groups/7 --\n", nic)
	b.WriteString(collectortest.Files("sys/kernel/iommu_groups/7/type", "DMA-FQ", "proc/sys/kernel/osrelease", "6.12.48",
		"proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.133.20  Release Build",
		"proc/driver/nvidia/gpus/0000:19:00.0/information",
		"Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 234\nGPU UUID: \t GPU-5e3a1c0d-0000-4c11-9a00-000000000001"))
	return b.String() + extra
}

// readSection returns the section of a machine, with its issues.
func readSection(t *testing.T, entries string, job gdr.Job) (*accel.GDR, []snapshot.Issue) {
	t.Helper()
	h := played.Machine(t, entries)
	with := shared.NewState(shared.Options{NCCL: job})
	var n snapshot.Node
	for _, c := range []*shared.Collector{infiniband.New(with), New(with)} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		c.Read(ctx, h, &n, func(err error) {
			if err != nil {
				t.Error(err)
			}
		})
		cancel()
	}
	if n.GDR == nil {
		t.Fatal("no section")
	}
	return n.GDR, slices.DeleteFunc(n.Issues, func(i snapshot.Issue) bool {
		return i.Source == "port_files" || i.Source == "identity" || i.Source == ""
	})
}

func TestGDRSection(t *testing.T) {
	const nvidia = "proc/driver/nvidia/version"
	for _, c := range []struct {
		name, entries   string
		job             gdr.Job
		redirect        string
		receive, reason string
	}{
		{"direct", board(false, ""), gdr.Job{}, "false", "direct", "direct"},
		{"a port redirects", board(true, ""), gdr.Job{}, "true", "direct", "direct"},
		{"nccl.conf of the machine", board(false, collectortest.Files("etc/nccl.conf", "NCCL_NET_GDR_LEVEL=LOC")), gdr.Job{}, "false", "staging", "gdr_level_set"},
		{"a job's own setting stands above it", board(false, collectortest.Files("etc/nccl.conf", "NCCL_NET_GDR_LEVEL=LOC")), gdr.Job{Env: nccl.Env{"NCCL_NET_GDR_LEVEL": "PIX"}}, "false", "direct", "direct"},
		{"a virtual machine", board(false, collectortest.Files("sys/class/dmi/id/sys_vendor", "QEMU", "sys/class/dmi/id/product_name", "Standard PC")), gdr.Job{}, "false", "unknown", "vm_topology"},
		{"one with its topology", board(false, collectortest.Files("sys/class/dmi/id/sys_vendor", "QEMU", "var/run/nvidia-topologyd/virtualTopology.xml", `<system><cpu numaid="0"><pci busid="ffff:ff:01.0"><pci busid="0000:18:00.0"/><pci busid="0000:19:00.0"/></pci></cpu></system>`)), gdr.Job{}, "false", "direct", "direct"},
		{"one that the job names", board(false, collectortest.Files("sys/class/dmi/id/sys_vendor", "QEMU", "opt/topo.xml", `<system><cpu numaid="0"><pci busid="0000:18:00.0"/><pci busid="0000:19:00.0"/></cpu></system>`)), gdr.Job{Env: nccl.Env{"NCCL_TOPO_FILE": "/opt/topo.xml"}}, "false", "staging", "beyond_host_bridge"},
		{"without the driver's files", strings.Replace(board(false, ""), nvidia, "proc/driver/other", 1), gdr.Job{}, "false", "unknown", "gpu_driver_unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, issues := readSection(t, c.entries, c.job)
			if len(got.GPUs) != 1 || len(got.NICs) != 1 || len(got.Pairs) != 1 || len(issues) != 0 {
				t.Fatalf("%+v %v", got, issues)
			}
			g, n := got.GPUs[0], got.NICs[0]
			if tell(n.Redirect) != c.redirect || g.Best.Receive != c.receive || g.Best.Reason != c.reason {
				t.Errorf("redirect %s, %s %s", tell(n.Redirect), g.Best.Receive, g.Best.Reason)
			}
			if g.Model != "NVIDIA H100 80GB HBM3" || g.UUID != "GPU-5e3a1c0d-0000-4c11-9a00-000000000001" || g.Index != "0" ||
				len(g.Hops) != 4 || g.Hops[3].Width != 16 {
				t.Errorf("%+v", g)
			}
			if n.Settings == nil ||
				*n.Settings != (accel.PCIeSettings{MaxPayload: 256, MaxReadRequest: 4096, RelaxedOrdering: true}) ||
				n.IOMMU != "DMA-FQ" || n.CPUs != "0-55" || !n.Active {
				t.Errorf("%+v %+v", n, n.Settings)
			}
		})
	}
}

// TestGPUOfVirtualMachine: a GPU without a port above it (cloud-hypervisor, Firecracker), or below a port of QEMU.
func TestGPUOfVirtualMachine(t *testing.T) {
	gpu := func(dir string) string {
		return collectortest.Files(
			dir+"/vendor",
			"0x10de",
			dir+"/device",
			"0x2335",
			dir+"/class",
			"0x030200",
			dir+"/numa_node",
			"-1",
		)
	}
	const flat, below = "sys/devices/pci0000:00/0000:00:06.0", "sys/devices/pci0000:00/0000:00:03.0/0000:01:00.0"
	port := func(vendor string) string {
		return collectortest.Files("sys/bus/pci/devices/0000:00:03.0/vendor", vendor)
	}
	for _, c := range []struct {
		name, dir, entries string
		want               bool
	}{
		{"flat", flat, gpu(flat), true},
		{"QEMU", below, gpu(below) + port("0x1b36"), true},
		{"Intel", below, gpu(below) + port("0x8086"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := readGDRGPU(collectortest.ReadsOf(t, c.entries), c.dir, 0); got.emulated != c.want ||
				got.Place.NUMA != -1 ||
				got.Device != 0x2335 {
				t.Errorf("%v, %+v", got.emulated, got.GPU)
			}
		})
	}
}

func TestGDRCannotRead(t *testing.T) {
	unprivileged := strings.ReplaceAll(board(true, ""), config(true), config(true)[:4*33])
	unprivileged = strings.ReplaceAll(unprivileged, config(false), config(false)[:4*33])
	got, _ := readSection(t, unprivileged, gdr.Job{})
	if n := got.NICs[0]; n.Settings != nil || n.Redirect != nil || n.IOMMU != "DMA-FQ" {
		t.Errorf("%+v", n)
	}
	_, issues := readSection(
		t,
		board(
			false,
			"-- etc/nccl.conf !EACCES --\n"+collectortest.Files("run/nvidia-topologyd/virtualTopology.xml", "no XML"),
		),
		gdr.Job{Env: nccl.Env{}},
	)
	if len(issues) != 2 {
		t.Errorf("%+v", issues)
	}
}

// TestNoNIC: a host without an RDMA device differs from one whose device has no place in the PCI tree.
func TestNoNIC(t *testing.T) {
	whole := board(false, "")
	for _, c := range []struct{ name, machine, reason string }{
		{"a NIC", whole, "direct"},
		{"one that is nowhere", strings.Replace(whole, "infiniband/mlx5_0/device -> ../..", "infiniband/mlx5_0/device -> ../../gone", 1), "no_active_nic"},
		{"none", regexp.MustCompile(`(?m)^-- \S*infiniband/mlx5_0.* --\n(?:[^-].*\n)*`).ReplaceAllString(whole, ""), "no_nic"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _ := readSection(t, c.machine, gdr.Job{})
			if best := got.GPUs[0].Best; best.Reason != c.reason {
				t.Errorf("%+v", best)
			}
		})
	}
}

func FuzzParseNVRM(f *testing.F) {
	for _, s := range []string{"4: ACTIVE", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if version, open, ok := parseNVRM(s); ok != (version != "") || open && !ok {
			t.Errorf("%q: %q, %v, %v", s, version, open, ok)
		}
	})
}
