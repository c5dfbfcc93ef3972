//go:build e2e

package alerting

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/port"
	"rdma_exporter/test/program"
)

// TestBacktest: a port of one of three hosts was down for 20 minutes, one hour ago. The history is in a Prometheus
// without rules, and the backtest reports what would have fired.
func TestBacktest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begin := time.Now().Add(-3 * time.Hour).Truncate(time.Minute)
	var text strings.Builder
	series := func(name, labels string, value func(minute int) int) {
		fmt.Fprintf(&text, "# TYPE %s gauge\n", name)
		for host := range 3 {
			for s := 0; s < 2*3600; s += 15 {
				v := value(s / 60)
				if host != 1 && name == "rdma_port_state_id" {
					v = 4
				}
				fmt.Fprintf(&text, "%s{instance=\"gpu-%d:10879\",job=\"rdma_exporter\"%s} %d %d\n",
					name, host, labels, v, begin.Unix()+int64(s))
			}
		}
	}
	one := func(int) int { return 1 }
	const link = `,device="mlx5_0",port="1"`
	series("up", "", one)
	series("rdma_exporter_build_info", `,version="1"`, one)
	series("rdma_port_was_active", link, one)
	series("rdma_port_info", link+`,role="compute",link_layer="InfiniBand"`, one)
	series("rdma_port_state_id", link, func(minute int) int {
		if minute >= 50 && minute < 70 {
			return 1
		}
		return 4
	})
	text.WriteString("# EOF\n")
	samples := filepath.Join(dir, "samples.txt")
	must(t, os.WriteFile(samples, []byte(text.String()), 0o600))
	data := filepath.Join(dir, "data")
	if out, err := exec.CommandContext(t.Context(), program.Installed(t, "promtool", "test/alerting/packages.sh"), "tsdb",
		"create-blocks-from", "openmetrics", samples, data).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	config := filepath.Join(dir, "prometheus.yml")
	must(t, os.WriteFile(config, []byte("global: {}\n"), 0o600))
	server := start(t, port.Any, program.Installed(t, "prometheus", "test/alerting/packages.sh"), "--config.file="+config,
		"--storage.tsdb.path="+data)

	run := func(args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program.Exporter(t),
			append([]string{"backtest", "--prometheus=http://" + server.address, "--since=4h"}, args...)...)
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, errs.String())
		}
		return out
	}
	var report struct {
		Hosts  int
		Alerts []struct {
			Alert, Severity, Drain string
			Fired, Hosts           int
			Longest                float64 `json:"longest_seconds"`
			Example                struct {
				Labels map[string]string
				From   time.Time
			}
		}
	}
	must(t, json.Unmarshal(run("--json", "--only=RDMAPortDown", "--step=30s"), &report))
	if report.Hosts != 3 || len(report.Alerts) != 1 {
		t.Fatalf("%+v", report)
	}
	a := report.Alerts[0]
	// Down for 20 minutes, fires after 2 and is kept for 5; tolerance is one step.
	if a.Severity != "critical" || a.Drain != "evict" || a.Fired != 1 || a.Hosts != 1 || a.Longest < 22*60 ||
		a.Longest > 24*60 || a.Example.Labels["instance"] != "gpu-1:10879" ||
		a.Example.From.Sub(begin.Add(52*time.Minute)).Abs() > time.Minute {
		t.Errorf("%+v", a)
	}
	if out := string(run("--tune.severity=RDMAPortDown=warning")); !strings.Contains(out, "warning   RDMAPortDown") &&
		!strings.Contains(out, "warning  RDMAPortDown") {
		t.Error(out)
	}
}
