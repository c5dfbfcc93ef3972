package infiniband

import (
	"context"
	"syscall"
	"testing"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
)

// refusing counts the requests that it rejects.
type refusing struct {
	host.Ethtool
	asked int
}

func (r *refusing) LinkModes(context.Context, string) (host.LinkModes, error) {
	r.asked++
	return host.LinkModes{}, &access.Error{Op: "ask", Path: "ethtool/eth0/linkmodes", Err: syscall.EIO}
}

// TestRefusedEthtool: a request that failed twice is not repeated until the link changes, because each takes rtnl.
func TestRefusedEthtool(t *testing.T) {
	r := collectortest.ReaderOf(t, "-- sys/class/net/eth0/flags --\n0x1003\n")
	driver := &refusing{}
	r.Host.Ethtool = driver
	var q reading.Quarantine
	r.Quarantine = &q
	ask := func(times, want int) {
		t.Helper()
		for range times {
			shared.AskEthtool(r, source.LinkModes, r.Host.Ethtool.LinkModes, "eth0")
		}
		if driver.asked != want {
			t.Errorf("asked %d times, want %d", driver.asked, want)
		}
	}
	ask(10, 2)
	q.Release(sysfs.EthtoolDir("eth0"))
	ask(10, 4)
	if len(r.Issues) != 4 {
		t.Errorf("%d issues", len(r.Issues))
	}
}
