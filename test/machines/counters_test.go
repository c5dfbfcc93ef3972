//go:build !race

package machines_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/verdict"
	"rdma_exporter/test/machines"
)

// TestCountersThatStartAgain: what a counter says is served as it is, to its end; one that wraps, or that stays at its
// most, is no storm of errors to the rules, and one that rises after a reset is.
func TestCountersThatStartAgain(t *testing.T) {
	rising := []uint64{65_000}
	for n := range uint64(25) {
		rising = append(rising, 1000*n)
	}
	cases := map[string]struct { // by device
		what   string
		values []uint64 // each minute; the last goes on
		want   []string // alerts
	}{
		"mlx5_0": {"wrapped at 32 bits", []uint64{1<<32 - 2, 1<<32 - 1, 0, 1}, nil},
		"mlx5_3": {"wrapped at 64 bits", []uint64{1<<64 - 2, 1<<64 - 2, 0, 1}, nil},
		"mlx5_4": {"saturated", []uint64{1<<16 - 1}, nil},
		"mlx5_5": {"reset, then in real need", rising, []string{"RDMALinkErrors"}},
	}
	dir := machines.Tree(t, "dgx-h100-ib")
	s := machines.Live(t, dir, 10*time.Second)
	j, err := verdict.New(&machine.Machine{Host: s.Host}, s, machines.Builtin(t), slog.New(slog.DiscardHandler))
	must(t, err)
	defer func() { must(t, j.Close()) }()
	start := time.Now()
	var ahead atomic.Int64 // of the clock
	s.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	fired := map[string][]string{}
	for i := range rising {
		for device, c := range cases {
			v := c.values[min(i, len(c.values)-1)]
			file := filepath.Join(dir, "sys/class/infiniband", device, "ports/1/counters/symbol_error")
			must(t, os.WriteFile(file, fmt.Appendf(nil, "%d\n", v), 0o644))
		}
		at := start.Add(time.Duration(i) * time.Minute)
		ahead.Store(int64(time.Until(at)))
		got := machines.Collect(t, s)
		for device, c := range cases {
			v := float64(c.values[min(i, len(c.values)-1)])
			if text := got[fmt.Sprintf(`rdma_port_symbol_errors_total{device=%q,port="1"}`,
				device)]; text != strconv.FormatFloat(v, 'g', -1, 64) {
				t.Errorf("%s, minute %d: %s is served, want %g", c.what, i, text, v)
			}
		}
		must(t, j.Round(t.Context(), at))
		for _, a := range j.Engine.Alerts() {
			if device := a.Labels["device"]; a.State == alerting.StateFiring && !slices.Contains(fired[device], a.Name) {
				fired[device] = append(fired[device], a.Name)
			}
		}
	}
	for device, c := range cases {
		if !slices.Equal(fired[device], c.want) {
			t.Errorf("%s: %v fires, want %v", c.what, fired[device], c.want)
		}
	}
}
