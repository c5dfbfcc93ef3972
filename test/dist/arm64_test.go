//go:build e2e

package dist

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"rdma_exporter/test/port"
)

// patience is the time limit for an emulated processor.
const patience = 90 * time.Second

// machine has GPUs and a finding, and is small enough to be evaluated quickly by an emulated processor.
const machine = "../../fixtures/sysfs/gpus-apart.txtar"

// TestCheckIsTheSame: all flavours have the same findings on a recorded machine.
func TestCheckIsTheSame(t *testing.T) {
	want := flavours(t)[0].check(t)
	if len(want.Findings) == 0 {
		t.Fatal("nothing is found")
	}
	each(t, func(t *testing.T, f flavour) {
		if got := f.check(t); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
	})
}

// report is the part that does not depend on the time of the run.
type report struct {
	Verdict  string `json:"verdict"`
	ExitCode int    `json:"exit_code"`
	Findings []struct {
		Alert    string            `json:"alert"`
		Severity string            `json:"severity"`
		State    string            `json:"state"`
		Labels   map[string]string `json:"labels"`
	} `json:"findings"`
	Evaluated    any `json:"evaluated"`
	NotEvaluated any `json:"not_evaluated"`
}

func (f flavour) check(t *testing.T) (r report) {
	t.Helper()
	cmd := f.command(t, "--replay="+machine, "--collect.timeout=60s", "check", "--json", "--timeout=60s")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	must(t, json.Unmarshal(out, &r))
	if cmd.ProcessState.ExitCode() != r.ExitCode {
		t.Errorf("exit %d, want %d", cmd.ProcessState.ExitCode(), r.ExitCode)
	}
	return r
}

// TestMetricsAreTheSame: all flavours have the same series, with equal values except for elapsed times. The demo node
// has most metrics.
func TestMetricsAreTheSame(t *testing.T) {
	for _, args := range [][]string{{"--replay=" + machine}, {"--replay=demo", "--no-alerting"}} {
		want := flavours(t)[0].scrape(t, args...)
		if len(want) < 100 {
			t.Fatalf("%q: %d series", args, len(want))
		}
		each(t, func(t *testing.T, f flavour) {
			got := f.scrape(t, args...)
			for again := 0; got == nil && again < 3; again++ {
				got = f.scrape(t, args...)
			}
			if got == nil {
				t.Fatal("each time a request took so long that the exporter held others back: the machine is too slow for this test")
			}
			for series, value := range want {
				if other, ok := got[series]; !ok || math.Abs(other-value) > rounding*math.Abs(value) {
					t.Errorf("%s: got %v (there: %v), want %v", series, other, ok, value)
				}
			}
			for series := range got {
				if _, ok := want[series]; !ok {
					t.Errorf("%s is not served by %s", series, flavours(t)[0].name)
				}
			}
		})
	}
}

// rounding is the tolerance of figures: arm64 has fused multiply-add.
const rounding = 1e-12

// ofTheRun reports whether the values or series of a family depend on the process.
func ofTheRun(name string) bool {
	return slices.ContainsFunc([]string{
		"go_", "process_", "promhttp_", "rdma_exporter_build_info", "rdma_exporter_connections",
		"rdma_alerting_", "rdma_scrape_",
	}, func(p string) bool { return strings.HasPrefix(name, p) })
}

// countsOn reports whether a gauge is an elapsed time.
func countsOn(name string) bool {
	return strings.HasSuffix(name, "_age_seconds") || name == "rdma_host_uptime_seconds"
}

// scrape serves a recorded machine and returns its series with their values, 0 for elapsed times. It returns nil if the
// exporter is backing off after a request of more than a second, which happens on a slow emulated processor.
func (f flavour) scrape(t *testing.T, args ...string) map[string]float64 {
	t.Helper()
	cmd := f.command(t,
		append(args, "--collect.timeout=60s", "--web.listen-address="+port.Any, "--state.dir="+t.TempDir())...)
	var log bytes.Buffer
	cmd.Stderr = &log
	must(t, cmd.Start())
	defer func() {
		must(t, cmd.Process.Signal(os.Interrupt))
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, log.String())
		}
	}()
	address := port.Of(t, cmd.Process.Pid)
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		if resp, err := http.Get("http://" + address + "/-/ready"); err == nil {
			must(t, resp.Body.Close())
			if resp.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(end) {
			t.Fatalf("is not ready\n%s", log.String())
		}
	}
	resp, err := http.Get("http://" + address + "/metrics")
	must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	must(t, err)
	for _, m := range families["rdma_scrape_rtnl_back_off"].GetMetric() {
		if m.GetGauge().GetValue() != 0 {
			return nil
		}
	}
	out := map[string]float64{}
	for name, family := range families {
		if ofTheRun(name) {
			continue
		}
		for _, m := range family.Metric {
			value := m.GetGauge().GetValue()
			if countsOn(name) {
				value = 0
			}
			out[name+fmt.Sprint(m.Label)] = value
		}
	}
	return out
}
