package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/check"
)

// TestGPURelease: an operator pauses GPU monitoring on the host. Page, check, metrics and alerts say so, and who did
// it, until it ends.
func TestGPURelease(t *testing.T) {
	t.Setenv("SUDO_USER", "ada <b>")
	stateDir := filepath.Join(t.TempDir(), "state")
	runs := func(t *testing.T, want string, code int, args ...string) {
		t.Helper()
		got, out, errs := runProgram(t, append([]string{"--state.dir=" + stateDir}, args...)...)
		if got != code || !strings.HasPrefix(out+errs, want) {
			t.Errorf("%v: exit %d\n%s%swant\n%s", args, got, out, errs, want)
		}
	}
	const lasts, by = "GPU monitoring paused until ", "UTC (released by ada &lt;b&gt;)"
	runs(t, "rdma_exporter gpu release: no running rdma_exporter in --state.dir="+stateDir, 2, "gpu",
		"release", "--for=30m")
	runs(t, "rdma_exporter gpu status: --replay: a replay has no running exporter\n", 2, "--replay=demo", "gpu", "status")
	s := startProgram(t, "--state.dir="+stateDir, "--collect.min-interval=0s", "--alerting.interval=1s")
	runs(t, "The GPUs are not released.\n", 0, "gpu", "status")
	runs(t, "The GPUs are not released.\n", 0, "gpu", "resume")
	for _, bad := range []string{"soon", "0s", "25h", "2d"} {
		runs(t, "rdma_exporter gpu release: --for="+bad+": must be a duration up to 24h, such as 30m\n", 2, "gpu",
			"release", "--for="+bad)
	}
	if got := valueOf(t, s, "rdma_gpu_released_seconds"); got != "" {
		t.Errorf("after what was refused: %q", got)
	}
	s.await(t, "/api/v1/findings", `RDMAGPUXid`)
	runs(t, lasts, 0, "gpu", "release", "--for=1d")
	runs(t, "rdma_exporter gpu release: release too long: must end within 24h of its start", 2, "gpu",
		"release", "--for=1d")
	runs(t, lasts, 0, "gpu", "status")
	for _, name := range []string{"rdma_gpu_released_seconds", "rdma_gpu_release_start_timestamp_seconds"} {
		if valueOf(t, s, name) == "" {
			t.Errorf("no %s", name)
		}
	}
	s.await(t, "/", by)
	s.await(t, "/api/v1/node", `"gpus_released"`)
	s.await(t, "/metrics", `rdma_detection_unavailable{alert="RDMAGPUXid",fault="recovery_action",reason="paused"} 1`)
	_, body, _ := s.get(t, "/api/v1/findings")
	var r check.Report
	must(t, json.Unmarshal([]byte(body), &r))
	if r.GPUsReleased == nil || r.GPUsReleased.By != "ada <b>" || time.Until(r.GPUsReleased.Until) < 23*time.Hour {
		t.Errorf("findings: %+v", r.GPUsReleased)
	}
	_, table, _ := runProgram(t, "--state.dir="+stateDir, "check", "--daemon="+s.url)
	if n := strings.Count(table, lasts); n != 2 || !strings.Contains(table, "UTC (released by ada <b>)") {
		t.Errorf("check names it %d times, want above the findings and below \"Not evaluated\":\n%s", n, table)
	}
	runs(t, "Ended: "+lasts, 0, "gpu", "resume")
	if got := valueOf(t, s, "rdma_gpu_released_seconds"); got != "" {
		t.Errorf("after its end: %q", got)
	}
	if log := s.log.String(); !strings.Contains(log, `msg="GPUs released"`) ||
		!strings.Contains(log, `msg="release of GPUs ended"`) {
		t.Errorf("log:\n%s", log)
	}
}
