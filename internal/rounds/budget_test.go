package rounds

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot"
)

// TestDevicesOverTheirBudget: exactly the devices whose reads exceed their share are exposed.
func TestDevicesOverTheirBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{do: func(_ context.Context, n *snapshot.Node) error {
			n.Devices = []snapshot.DeviceRead{{Device: "slow"}, {Device: "fast"}}
			return nil
		}}
		h := &host.Host{Now: time.Now, Budget: access.NewBudget(time.Now)}
		s := New(context.WithoutCancel(t.Context()),
			Options{Host: h, Collectors: []*collector.Collector{c.collector("reads")}, Timeout: 10 * time.Second})
		h.Budget.Spend("slow", 5*time.Second)
		h.Budget.Spend("fast", time.Millisecond)
		p, err := s.Collect(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := textOf(p)
		if !strings.Contains(got, `rdma_scrape_over_budget{device="slow"} 1`) ||
			strings.Contains(got, `rdma_scrape_over_budget{device="fast"}`) {
			t.Error(got)
		}
	})
}
