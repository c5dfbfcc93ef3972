//go:build e2e

package kernel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/port"
)

// notReplayed are the series that may differ between the guest's scrape and the replay of its capture, and why.
var notReplayed = map[string]string{
	"rdma_host_uptime_seconds{":         "time goes on",
	"rdma_device_data_age_seconds{":     "time goes on",
	"rdma_transceiver_age_seconds{":     "time goes on",
	"rdma_device_registrations_total{":  "events: a replay hears none",
	"rdma_port_link_transitions_total{": "counted since the exporter began",
	"rdma_gdr_trace_":                   "observed since the exporter began",
	"rdma_gdr_registered_bytes{":        "observed since the exporter began",
	"rdma_device_async_events_total{":   "observed since the exporter began",
	"rdma_device_qp_fatal_events_total": "observed since the exporter began",
	"rdma_port_pfc_sampled_":            "sampled since the exporter began",
	"rdma_port_pfc_stalled_":            "sampled since the exporter began",
	"rdma_port_pfc_paused_sample_ratio": "sampled since the exporter began",
}

// testCapture takes a capture in the guest, with a saturated counter and a module, and reads it on this machine:
// formatting it again is lossless, check finds the counter, and a replay exposes the same as the exporter in the guest.
func testCapture(t *testing.T, g *guest, exporter string) {
	g.plug(t, "mlx5_1", "qsfp28-sr4")
	g.flap(t)
	// An exporter with an operator's settings.
	g.must(t, "/tmp/rdma_exporter --no-alerting --collect.no-budget --state.dir=/tmp/captured --web.listen-address=:"+
		modulesPort+" >"+shareMount+"/captured.log 2>&1 & echo $! >/tmp/captured.pid")
	defer g.must(t, "kill $(cat /tmp/captured.pid)")
	capture := filepath.Join(g.share, "guest.txtar")
	within(t, 3*patienceOfGuest, func() error { // on a busy machine slow reads are not in it
		g.must(t,
			"/tmp/rdma_exporter capture -o - >"+shareMount+"/guest.txtar 2>/tmp/capture.log || { cat /tmp/capture.log; false; }")
		original, err := os.ReadFile(capture)
		if err != nil {
			return err
		}
		if again := tool(t, exporter, "--replay", capture, "capture", "-o", "-"); again != strings.TrimSpace(
			string(original),
		) {
			return fmt.Errorf("the capture of the replayed capture differs:\n%s", firstDifference(string(original), again))
		}
		replayed, err := replay(t, exporter, capture)
		if err != nil {
			return err
		}
		live, err := scrape(t.Context(), g.modules)
		if err != nil {
			return err
		}
		return alike(live, replayed)
	})

	out, err := exec.CommandContext(t.Context(), exporter, "--replay", capture, "check", "--json").Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() > 2) {
		t.Fatalf("check: %v\n%s", err, out)
	}
	if !json.Valid(out) {
		t.Errorf("check --json: %s", out)
	}
	if !bytes.Contains(out, []byte("mlx5_0")) {
		t.Errorf("check does not name mlx5_0: %s", out)
	}
}

// firstDifference returns the first line in which two texts differ.
func firstDifference(a, b string) string {
	lines := strings.Split(b, "\n")
	for i, line := range strings.Split(a, "\n") {
		if i >= len(lines) {
			return line
		}
		if line != lines[i] {
			return line + "\n" + lines[i]
		}
	}
	return ""
}

// replay returns the samples that a replay of a capture serves.
func replay(t *testing.T, exporter, capture string) (s samples, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), exporter, "serve", "--replay="+capture, "--no-alerting",
		"--state.dir="+t.TempDir(), "--web.listen-address="+port.Any)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill() // it has no state to store
		_ = cmd.Wait()
	}()
	url := "http://" + port.Of(t, cmd.Process.Pid)
	eventually(t, func() error {
		s, err = scrape(t.Context(), url)
		if err == nil && s[rxeState] == 0 {
			err = errors.New("no reading yet")
		}
		return err
	})
	return s, nil
}

// alike returns an error with the differences of two scrapes.
func alike(live, replayed samples) error {
	var differ []string
	both := maps.Clone(live)
	maps.Copy(both, replayed)
	for key := range both {
		if isOwn(key) || slices.ContainsFunc(slices.Collect(maps.Keys(notReplayed)), func(p string) bool {
			return strings.HasPrefix(key, p)
		}) {
			continue
		}
		l, isLive := live[key]
		r, isReplayed := replayed[key]
		switch {
		case !isLive:
			differ = append(differ, key+" is in the replay only")
		case !isReplayed:
			differ = append(differ, key+" is in the guest only")
		case l != r:
			differ = append(differ, fmt.Sprintf("%s is %v, in the replay %v", key, l, r))
		}
	}
	if len(differ) == 0 {
		return nil
	}
	slices.Sort(differ)
	return fmt.Errorf("%d of %d series differ:\n%s", len(differ), len(both), strings.Join(differ, "\n"))
}
