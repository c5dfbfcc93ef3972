package gpudirect

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/gdr"
)

// amdBoard is board with an MI300X in place of the H100, on a kernel without NVIDIA driver.
func amdBoard(extra string) string {
	b := strings.NewReplacer("0x10de", "0x1002", "0x2330", "0x74a1", "0x030200", "0x120000", "proc/driver/nvidia/",
		"proc/driver/other/").Replace(board(false, ""))
	node := sysfs.KFDNodesDir + "/1"
	return b + collectortest.Files(
		sysfs.KFDNodesDir+"/0/properties", "cpu_cores_count 96\nsimd_count 0\nvendor_id 0\nlocation_id 0\ndomain 0",
		node+"/properties", "cpu_cores_count 0\nsimd_count 1216\ngfx_target_version 90402\nvendor_id 4098\ndevice_id 29857\nlocation_id 6400\ndomain 0\nhive_id 99\nunique_id 8143231908134927361",
		node+"/mem_banks/0/properties", "heap_type 1\nsize_in_bytes 206141652992",
	) + extra
}

// kernelConfig returns the configuration of the kernel with these lines.
func kernelConfig(options ...string) string {
	return collectortest.Files(
		"boot/config-6.12.48",
		"# CONFIG_PCI_P2PDMA is not set by default\n"+strings.Join(options, "\n"),
	)
}

const (
	p2p    = "CONFIG_PCI_P2PDMA=y"
	notify = "CONFIG_DMABUF_MOVE_NOTIFY=y"
)

func TestROCmSection(t *testing.T) {
	symbols := func(names ...string) string {
		text := ""
		for _, n := range names {
			text += "0000000000000000 T " + n + "\t[x]\n"
		}
		return collectortest.Files("proc/kallsyms", text)
	}
	both := kernelConfig(p2p, notify)
	for _, c := range []struct {
		name, extra, receive, reason, client, mechanism string
	}{
		{"peer memory client by symbols", symbols("ib_umem_dmabuf_get", "ib_register_peer_memory_client", "kfd_init_peer_direct"), "direct", "direct", "amdkfd", ""},
		{"peer memory client in the list of ib_peer_mem", collectortest.Files("sys/kernel/memory_peers/amdkfd/version", "1.0"), "direct", "direct", "amdkfd", ""},
		{"in-tree amdgpu with MLNX_OFED", symbols("ib_umem_dmabuf_get", "ib_register_peer_memory_client") + both, "direct", "direct", "", "dmabuf"},
		{"kernel without one option", symbols("ib_umem_dmabuf_get") + kernelConfig(p2p, "# CONFIG_DMABUF_MOVE_NOTIFY is not set"), "staging", "kernel_without_p2pdma", "", "none"},
		{"no configuration", symbols("ib_umem_dmabuf_get"), "unknown", "kernel_config_unknown", "", ""},
		{"nothing readable", "", "unknown", "kernel_config_unknown", "unknown", ""},
		{"no symbols, kernel without the options", kernelConfig(), "unknown", "rocm_peer_unknown", "unknown", ""},
		{"small BAR", symbols("ib_umem_dmabuf_get") + both + collectortest.Files(sysfs.KFDNodesDir+"/1/mem_banks/1/properties", "heap_type 2\nsize_in_bytes 1"), "staging", "gpu_bar_small", "", "dmabuf"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, issues := readSection(t, amdBoard(c.extra), gdr.Job{})
			if len(got.GPUs) != 1 || len(issues) != 0 {
				t.Fatalf("%+v %v", got, issues)
			}
			g := got.GPUs[0]
			if g.Best.Receive != c.receive || g.Best.Reason != c.reason || got.PeerClient != c.client ||
				g.Best.Mechanism != c.mechanism {
				t.Errorf("%+v, client %q", g.Best, got.PeerClient)
			}
			if g.UUID != "7102924698023c01" || g.Model != "AMD gfx942" || g.Index != "0" {
				t.Errorf("%+v", g)
			}
		})
	}
}

// TestROCmFiles: product and driver where they have names, and files that the device cgroup denies.
func TestROCmFiles(t *testing.T) {
	const gpu = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0"
	got, issues := readSection(
		t,
		amdBoard(collectortest.Files(gpu+"/product_name", "AMD Instinct MI300X OAM", "sys/module/amdgpu/initstate",
			"live", "sys/module/amdgpu/version", "6.12.12")),
		gdr.Job{},
	)
	if got.GPUs[0].Model != "AMD Instinct MI300X OAM" || got.Driver != "amdgpu 6.12.12" || len(issues) != 0 {
		t.Errorf("%+v %q %v", got.GPUs[0], got.Driver, issues)
	}
	denied := strings.Replace(amdBoard(""), "-- "+sysfs.KFDNodesDir+"/1/properties --",
		"-- "+sysfs.KFDNodesDir+"/1/properties !EPERM --\n-- sys/other --", 1)
	got, issues = readSection(t, denied, gdr.Job{})
	if got.GPUs[0].UUID != "" || got.GPUs[0].Model != "" || len(issues) != 0 {
		t.Errorf("%+v %v", got.GPUs[0], issues)
	}
}

func TestParseKFDNode(t *testing.T) {
	for _, c := range []struct {
		name, text, address, gfx string
		ok                       bool
	}{
		{"MI300X", "simd_count 1216\ngfx_target_version 90402\nvendor_id 4098\nlocation_id 52224\ndomain 0\n", "0000:cc:00.0", "gfx942", true},
		{"MI250X, second die", "simd_count 440\ngfx_target_version 90010\nvendor_id 4098\nlocation_id 50689\ndomain 1\n", "0001:c6:00.1", "gfx90a", true},
		{"processor", "cpu_cores_count 96\nsimd_count 0\nvendor_id 0\n", "", "", false},
		{"nothing", "", "", "", false},
		{"no numbers", "vendor_id 4098\nsimd_count many\n", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, ok := sysfs.ParseKFDNode(c.text)
			if ok != c.ok || ok && (n.Address != c.address || n.Gfx != c.gfx) {
				t.Errorf("%+v %v", n, ok)
			}
		})
	}
}

func TestUnzipped(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(p2p + "\n" + notify + "\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if got := string(unzipped(b.String())); got != p2p+"\n"+notify+"\n" {
		t.Errorf("%q", got)
	}
	for _, bad := range []string{"", "no gzip", b.String()[:b.Len()-9]} {
		if got := unzipped(bad); got != nil {
			t.Errorf("%q", got)
		}
	}
}

func FuzzKFD(f *testing.F) {
	f.Add("simd_count 1216\nvendor_id 4098\nlocation_id 52224\n")
	f.Fuzz(func(_ *testing.T, text string) {
		sysfs.ParseKFDNode(text)
		unzipped(text)
	})
}
