//go:build bench

package bench

import (
	"os"
	"path/filepath"
	"testing"

	"rdma_exporter/test/machine"
)

func roce() machine.Model { return machine.RoCE(*repository) }

// infiniBand returns a ConnectX-7 of a recorded DGX H100. Neither program reads data of its netdev in each scrape: both
// read the same files.
func infiniBand() machine.Model {
	return machine.Model{
		File: file("fixtures/sysfs/dgx-h100-ib.txtar"), Root: "/pci0000:15/", Except: "/0000:17:01.0/",
		Names: []string{
			"mlx5_0=mlx5_%d", "ibp24s0=ibP%dp24s0", "umad0=umad%d", "issm0=issm%d", "uverbs0=uverbs%d", "0050:a1c0=0050:%04x",
			"50:a1:c0=50:%02x:c0",
		},
	}
}

// tree is a machine with a number of HCAs with one port each.
type tree struct {
	dir     string
	ports   int
	traffic *machine.Traffic
}

func newTree(t *testing.T, hca machine.Model, ports int) *tree {
	t.Helper()
	x := &tree{dir: t.TempDir(), ports: ports}
	must(t, hca.Grow(ports, x.dir))
	// node_exporter finds sensors by class, as in the kernel's tree.
	sensors, err := filepath.Glob(filepath.Join(x.dir, "sys/class/infiniband/*/device/hwmon/*"))
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(x.dir, "sys/class/hwmon"), 0o755))
	for _, s := range sensors {
		to, err := filepath.EvalSymlinks(s)
		must(t, err)
		must(t, os.Symlink(to, filepath.Join(x.dir, "sys/class/hwmon", filepath.Base(s))))
		must(t, os.Symlink("../..", filepath.Join(to, "device")))
	}
	if devices, err := filepath.Glob(
		filepath.Join(x.dir, "sys/class/infiniband/*/ports/1/counters/port_rcv_data"),
	); err != nil || len(devices) != ports {
		t.Fatalf("%d devices, want %d: %v", len(devices), ports, err)
	}
	x.traffic, err = machine.NewTraffic(x.dir)
	must(t, err)
	return x
}
