//go:build e2e

package kernel

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	stallSeconds = 30
	backOff      = `rdma_scrape_rtnl_back_off{}`
	rxeAge       = `rdma_device_data_age_seconds{device="rxe0"}`
)

// testEthtoolStall makes the driver hold rtnl for half a minute during a call of the exporter. Everything that takes no
// rtnl is in every scrape, and no second call is made.
func testEthtoolStall(t *testing.T, g *guest) {
	const calls = "/sys/kernel/debug/fakerdma/mlx5_1/ethtool_calls"
	before := g.number(t, calls)
	g.expect(t, samples{backOff: 0})
	g.set(t, "mlx5_1", map[string]int{"ethtool_stall": stallSeconds})
	g.set(t, "mlx5_1", map[string]int{"carrier": 0}) // so that the link modes are read
	eventually(t, func() error {
		if n := g.number(t, calls); n != before+1 {
			return fmt.Errorf("%v calls, want %v", n, before+1)
		}
		return nil
	})
	start := time.Now()
	g.set(t, "mlx5_1", map[string]int{"ethtool_stall": 0}) // for later calls

	tick := time.NewTicker(3 * pollInterval)
	defer tick.Stop()
	requests, scrapes, age := -1.0, 0, 0.0
	for ended := false; !ended; <-tick.C {
		s, err := scrape(t.Context(), g.url)
		if err != nil {
			t.Fatal(err)
		}
		scrapes++
		if d := missing(s, "rdma_port_symbol_errors_total", "mlx5_0", "mlx5_1") +
			missing(s, "rdma_port_out_of_sequence_total", "mlx5_0", "mlx5_1") +
			missing(s, "rdma_port_transmit_packets_total", "rxe0") + missing(s, "rdma_port_state_id", "mlx5_0",
			"mlx5_1", "rxe0"); d != "" {
			t.Errorf("after %s a scrape lacks %s", time.Since(start), d)
		}
		n := rtnlRequests(s)
		if requests < 0 {
			requests = n
		}
		if n != requests {
			t.Errorf("after %s: %v requests that take rtnl, %v at the start", time.Since(start), n, requests)
			requests = n
		}
		age = max(age, s[rxeAge])
		if ended = s[backOff] == 1; !ended && time.Since(start) > 2*stallSeconds*time.Second {
			t.Fatal("there is no back-off")
		}
	}
	took := time.Since(start)
	t.Logf("%d scrapes in %s; the state of rxe0 was up to %.0f s old", scrapes, took.Round(time.Second), age)
	if took < stallSeconds/2*time.Second || scrapes < 20 {
		t.Errorf("%d scrapes in %s show nothing", scrapes, took)
	}
	if age < stallSeconds/2 {
		t.Errorf("rxe0, whose state takes rtnl, is %v s old at most", age)
	}
	if n := g.number(t, calls); n != before+1 {
		t.Errorf("%v calls in all, want %v", n, before+1)
	}
	g.set(t, "mlx5_1", map[string]int{"carrier": 1})
	g.expect(t, samples{
		`rdma_port_state_id{device="mlx5_1",port="1"}`:              4,
		`rdma_port_rate_bytes_per_second{device="mlx5_1",port="1"}`: 5e10, // from sysfs, without rtnl here
	})
}

// testBackOffEnds waits for the first request after the back-off.
func testBackOffEnds(t *testing.T, g *guest) {
	g.expect(t, samples{backOff: 0, rxeAge: 0})
}

// testRefusingDevice makes every query of a device fail: it is queried twice, and not again before it registers anew.
func testRefusingDevice(t *testing.T, g *guest) {
	const queries = "/sys/kernel/debug/fakerdma/mlx5_0/queries"
	g.register(t, "mlx5_0")                              // the steps before have used up the budget of its reads
	g.set(t, "mlx5_0", map[string]int{"query_errno": 5}) // EIO
	scrapes := func(n int) (asked float64, last samples) {
		before := g.number(t, queries)
		for range n {
			s, err := scrape(t.Context(), g.url)
			if err != nil {
				t.Fatal(err)
			}
			last = s
		}
		return g.number(t, queries) - before, last
	}
	eventually(t, func() error {
		if n, _ := scrapes(3); n != 0 {
			return fmt.Errorf("%v queries in 3 scrapes", n)
		}
		return nil
	})
	n, s := scrapes(50)
	if n != 0 {
		t.Errorf("%v queries in 50 scrapes of a device that refuses all", n)
	}
	for _, collector := range []string{"infiniband", "hwcounters"} {
		key := fmt.Sprintf(`rdma_scrape_quarantined_items{collector=%q,device="mlx5_0"}`, collector)
		if s[key] < 1 {
			t.Errorf("%s is %v", key, s[key])
		}
	}
	if d := missing(s, "rdma_port_state_id", "mlx5_1", "rxe0"); d != "" {
		t.Errorf("lacks %s", d)
	}

	g.register(t, "mlx5_0")
	g.expect(t, samples{`rdma_port_symbol_errors_total{device="mlx5_0",port="1"}`: 0})
	if n, _ := scrapes(3); n == 0 {
		t.Error("it is not asked again")
	}
}

// register unregisters and registers a device.
func (g *guest) register(t *testing.T, device string) {
	t.Helper()
	state := fmt.Sprintf(`rdma_port_state_id{device=%q,port="1"}`, device)
	address := filepath.Base(g.must(t, "readlink /sys/class/infiniband/"+device+"/device"))
	g.must(t, "echo "+address+" >/sys/bus/pci/drivers/mlx5_core/unbind")
	g.expectGone(t, state)
	g.must(t, "echo "+address+" >/sys/bus/pci/drivers/mlx5_core/bind")
	g.expect(t, samples{state: 4})
}

// missing returns the devices whose first port lacks a metric.
func missing(s samples, metric string, devices ...string) (out string) {
	for _, d := range devices {
		key := fmt.Sprintf(`%s{device=%q,port="1"}`, metric, d)
		if _, ok := s[key]; !ok {
			out += key + "\n"
		}
	}
	return out
}

// rtnlRequests returns the number of the exporter's requests that take rtnl.
func rtnlRequests(s samples) (sum float64) {
	for key, n := range s {
		if strings.HasPrefix(key, "rdma_scrape_source_requests_total{") && strings.Contains(key, `lock="rtnl"`) {
			sum += n
		}
	}
	return sum
}
