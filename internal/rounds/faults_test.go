package rounds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot"
)

// TestLastingFaultIsLoggedTwice: a lasting fault is logged at its start and its end, and counted every time.
func TestLastingFaultIsLoggedTwice(t *testing.T) {
	var logged bytes.Buffer
	broken := true
	c := &counting{do: func(_ context.Context, n *snapshot.Node) error {
		if broken {
			n.Issues = []snapshot.Issue{
				{Device: "mlx5_0", Reason: string(access.Invalid), Err: errors.New("read symbol_error")},
				{Device: "mlx5_0", Reason: string(access.Invalid), Err: errors.New("read link_downed")},
			}
		}
		return nil
	}}
	s := scheduler(t, 0, c.collector("c"))
	s.faults.log = slog.New(slog.NewTextHandler(&logged, nil))
	var last *Picture
	for i := range 5 {
		broken = i > 0 && i < 4
		var err error
		if last, err = s.Collect(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(logged.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "read failed") || !strings.Contains(lines[0], "symbol_error") ||
		!strings.Contains(lines[1], "read works again") {
		t.Errorf("logged %d lines:\n%s", len(lines), logged.String())
	}
	if want := `rdma_scrape_errors_total{collector="c",device="mlx5_0",reason="invalid"} 6`; !strings.Contains(
		textOf(last), want,
	) {
		t.Errorf("lacks %s\n%s", want, textOf(last))
	}
}

// TestFailures: failures of the last collection have the first error of each reason; data that the hardware does not
// support is not a failure.
func TestFailures(t *testing.T) {
	c := &counting{do: func(_ context.Context, n *snapshot.Node) error {
		n.Issues = []snapshot.Issue{
			{Device: "mlx5_1", Reason: string(access.IO), Err: errors.New("read state")},
			{Device: "mlx5_1", Reason: string(access.IO), Err: errors.New("read rate")},
			{Device: "mlx5_0", Reason: string(access.Invalid), Err: errors.New("read link_downed")},
			{Device: "mlx5_0", Reason: string(access.Permission), Source: "vpd", Err: errors.New("read vpd")},
		}
		return nil
	}}
	fails := &counting{do: func(context.Context, *snapshot.Node) error { return errors.New("no class") }}
	s := scheduler(t, 0, c.collector("c"), fails.collector("b"))
	for range 2 {
		p, err := s.Collect(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(p.Failures), "[collector b: no class collector c, mlx5_1: read state]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestDroppedIsExplained: a dropped sample has an error although no read failed.
func TestDroppedIsExplained(t *testing.T) {
	var logged bytes.Buffer
	f := newFaults(slog.New(slog.NewTextHandler(&logged, nil)))
	f.add("c", &result{}, map[string]int{"duplicate": 2})
	if want := `reason=duplicate first="2 samples dropped: another sample has the same name and labels"`; !strings.Contains(logged.String(), want) {
		t.Errorf("%s, want %s", logged.String(), want)
	}
}

// TestDenialEnds: a source that is read once a minute stays denied between two readings; the end is logged.
func TestDenialEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		round := 0
		c := &counting{do: func(_ context.Context, n *snapshot.Node) error {
			if round < 20 && round%4 == 0 {
				n.Issues = []snapshot.Issue{
					{Device: "mlx5_0", Source: "vpd", Needs: "root", Reason: string(access.Permission), Err: errors.New("read 0000:18:00.0/vpd")},
					{Device: "mlx5_1", Source: "vpd", Needs: "root", Reason: string(access.Permission), Err: errors.New("read 0000:40:00.0/vpd")},
				}
			}
			return nil
		}}
		s := scheduler(t, 0, c.collector("c"))
		s.faults.log = slog.New(slog.NewTextHandler(&logged, nil))
		for round = range 60 {
			p, err := s.Collect(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			want, needs := "1", "root"
			if round > 16+20 { // 5 minutes after it last occurred
				want, needs = "0", ""
			}
			if p.Needs["vpd"] != needs {
				t.Errorf("round %d: needs %q, want %q", round, p.Needs["vpd"], needs)
			}
			if line := `rdma_scrape_permission_denied{source="vpd"} ` + want; !strings.Contains(textOf(p), line) {
				t.Errorf("round %d lacks %s", round, line)
			}
			if line := `rdma_scrape_errors_total{collector="c",device="mlx5_1",reason="permission"} 1`; !strings.Contains(
				textOf(p), line,
			) {
				t.Errorf("round %d lacks %s", round, line)
			}
			time.Sleep(15 * time.Second)
		}
		lines := strings.Split(strings.TrimSpace(logged.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "0000:18:00.0/vpd") || !strings.Contains(lines[0], "needs=root") ||
			!strings.Contains(lines[1], "permission granted") {
			t.Errorf("logged:\n%s", logged.String())
		}
	})
}

// TestFailedCollector: an error of a collector affects only that collector.
func TestFailedCollector(t *testing.T) {
	bad := &counting{do: func(context.Context, *snapshot.Node) error { return errors.New("no class") }}
	good := &counting{}
	p, err := scheduler(t, 0, bad.collector("bad"), good.collector("good")).Collect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`rdma_scrape_collector_success{collector="bad"} 0`, `rdma_scrape_collector_success{collector="good"} 1`,
		`rdma_scrape_errors_total{collector="bad",reason="failed"} 1`,
	} {
		if !strings.Contains(textOf(p), want) {
			t.Errorf("lacks %s\n%s", want, textOf(p))
		}
	}
}
