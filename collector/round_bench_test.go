package collector

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/hwcounters"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/snapshot"
)

// BenchmarkRound is a round of all collectors but those of the host, of eight InfiniBand devices as regular files.
func BenchmarkRound(b *testing.B) {
	dir := b.TempDir()
	put := func(name, text string) {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	link := func(name, target string) {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.Symlink(target, name); err != nil {
			b.Fatal(err)
		}
	}
	for d := range 8 {
		address := fmt.Sprintf("0000:%02x:00.0", 0x18+d)
		function := fmt.Sprintf("sys/devices/pci0000:%02x/%s/", 0x17+d, address)
		device := fmt.Sprintf("%sinfiniband/mlx5_%d/", function, d)
		link(fmt.Sprintf("sys/class/infiniband/mlx5_%d", d), fmt.Sprintf("../../%s", device[len("sys/"):len(device)-1]))
		link("sys/bus/pci/devices/"+address, "../../../../"+function[:len(function)-1])
		link(device+"device", "../..")
		for name, text := range map[string]string{
			function + "vendor": "0x15b3",
			function + "device": "0x1021", function + "class": "0x020700", function + "numa_node": "0",
			device + "node_type": "1: CA", device + "node_guid": fmt.Sprintf("b83f:d203:0050:a1c%d", d),
			device + "sys_image_guid": "b83f:d203:0050:a1c0",
			device + "hca_type":       "MT4129", device + "board_id": "MT_0000000838", device + "fw_ver": "28.39.3004",
		} {
			put(name, text)
		}
		port := device + "ports/1/"
		for name, text := range map[string]string{
			"state": "4: ACTIVE", "phys_state": "5: LinkUp", "link_layer": "InfiniBand", "lid": "0x11", "sm_lid": "0x1",
			"lid_mask_count": "0", "cap_mask": "0x2651e848", "rate": "400 Gb/sec (4X NDR)",
			"gids/0": "fe80:0000:0000:0000:b83f:d203:0050:a1c0", "gid_attrs/types/0": "IB/RoCE v1", "pkeys/0": "0xffff",
		} {
			put(port+name, text)
		}
		for i := range counters.PMACounters {
			put(port+"counters/"+counters.PMACounters[i].File, "123456789")
		}
		for name := range hwcounters.Common {
			put(port+"hw_counters/"+name, "123456")
		}
	}
	put("proc/uptime", "1000.00 2000.00")
	opened, err := live.Open(rooted.Paths{
		RootFS: dir, Sys: filepath.Join(dir, "sys"), Proc: filepath.Join(dir, "proc"),
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := opened.Close(); err != nil {
			b.Error(err)
		}
	}()
	all := All(shared.Options{})
	b.ReportAllocs()
	for b.Loop() {
		h := opened.ForRound()
		var n snapshot.Node
		for _, c := range all {
			switch c.Name {
			case "infiniband", "hwcounters", "ethernet", "qos", "pcie", "sensors", "transceiver", "neighbour":
				c.Read(b.Context(), h, &n, func(err error) {
					if err != nil {
						b.Fatal(err)
					}
				})
			}
		}
		if len(n.InfiniBand.Devices) != 8 || len(n.HWCounters.Devices) != 8 {
			b.Fatal("not all devices were read")
		}
	}
}
