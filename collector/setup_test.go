package collector

import (
	"maps"
	"slices"
	"testing"
	"time"

	"rdma_exporter/internal/snapshot"
)

// TestSetupFiles: a * is each name of a directory, an @ each netdev of an RDMA device, once.
func TestSetupFiles(t *testing.T) {
	h := machine(t, aPort("pci/0000:18:00.0", "mlx5_0")+aPort("pci/0000:18:00.1", "mlx5_1")+`-- sys/devices/pci/0000:18:00.0/net/eth0 @files --
mtu: 9000
-- sys/devices/pci/0000:18:00.1/net/ib0 @files --
mode: datagram
-- proc/sys/net/ipv4/conf/all @files --
arp_ignore: 0
-- proc/sys/net/ipv4/conf/eth0 @files --
arp_ignore: 1
-- proc/sys/net/ipv4/conf/veth7 @files --
arp_ignore: 2
`)
	for pattern, want := range map[string][]string{
		"sys/class/infiniband/*/device/net/*/mode": {"sys/class/infiniband/mlx5_1/device/net/ib0/mode"},
		"proc/sys/net/ipv4/conf/@/arp_ignore":      {"proc/sys/net/ipv4/conf/eth0/arp_ignore"},
		"proc/sys/net/ipv4/conf/*/arp_ignore":      {"proc/sys/net/ipv4/conf/all/arp_ignore", "proc/sys/net/ipv4/conf/eth0/arp_ignore", "proc/sys/net/ipv4/conf/veth7/arp_ignore"},
		"proc/sys/net/ipv4/conf/":                  {"proc/sys/net/ipv4/conf"},
		"proc/sys/net/ipv4/*/none/arp_ignore":      nil,
	} {
		r, files := &reader{ctx: t.Context(), h: h, since: time.Now()}, map[string]snapshot.SetupFile{}
		r.setupFiles(pattern, files)
		if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}
