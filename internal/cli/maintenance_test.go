package cli

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/maintenance"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/machines"
)

// TestMaintenance: an operator announces it to the running exporter; metrics, alert, page and check have it, and a
// restart keeps it.
func TestMaintenance(t *testing.T) {
	stateDir := filepath.Join(t.TempDir(), "state")
	live := liveArgs(machines.Tree(t, "hdr100-ok"), stateDir)
	runs := func(t *testing.T, want string, code int, args ...string) {
		t.Helper()
		got, out, errs := runProgram(t, append(live, args...)...)
		if got != code || !strings.HasPrefix(out+errs, want) {
			t.Errorf("%v: exit %d\n%s%swant\n%s", args, got, out, errs, want)
		}
	}
	t.Run("announced", func(t *testing.T) {
		runs(t, "rdma_exporter maintenance status: no running rdma_exporter in --state.dir=", 2, "maintenance", "status")
		s := startProgram(t, append(live, "--collect.min-interval=0s", "--alerting.interval=1s")...)
		if got := valueOf(t, s, "rdma_host_maintenance"); got != "0" {
			t.Errorf("before: %q", got)
		}
		if got := valueOf(t, s, "rdma_host_maintenance_end_timestamp_seconds"); got != "" {
			t.Errorf("end before: %q", got)
		}
		runs(t, "No maintenance is announced.\n", 0, "maintenance", "status")
		runs(t, "No maintenance is announced.\n", 0, "maintenance", "end")
		runs(t, "rdma_exporter maintenance start: --for: must be from 1m to 7d\n", 2, "maintenance", "start", "--for=8d")
		runs(t, "rdma_exporter maintenance start: --for: must be from 1m to 7d\n", 2, "maintenance", "start", "--for=59s")
		runs(t, "rdma_exporter maintenance start: --for=soon: must be a duration from 1m to 7d, such as 30m, 2h or 1d\n",
			2, "maintenance", "start", "--for=soon")
		runs(t, "rdma_exporter maintenance start: --reason: must not contain line breaks or other control characters\n", 2,
			"maintenance", "start", "--for=1h", "--reason=a\nb")
		runs(t, "rdma_exporter maintenance status: --replay: a replay has no running exporter\n",
			2, "--replay=demo", "maintenance", "status")
		if got := valueOf(t, s, "rdma_host_maintenance"); got != "0" {
			t.Errorf("after what was refused: %q", got)
		}
		runs(t, "Maintenance until ", 0, "maintenance", "start", "--for=1d", "--reason=firmware <b>")
		if got := valueOf(t, s, "rdma_host_maintenance"); got != "1" {
			t.Errorf("announced: %q", got)
		}
		if got := valueOf(t, s, "rdma_host_maintenance_end_timestamp_seconds"); got == "" {
			t.Error("no end")
		}
		s.await(t, "/api/v1/alerts", "RDMAMaintenance")
		s.await(t, "/", "UTC: firmware &lt;b&gt;")
		s.await(t, "/api/v1/node", `"reason": "firmware \u003cb\u003e"`)
		_, body, _ := s.get(t, "/api/v1/findings")
		var r check.Report
		must(t, json.Unmarshal([]byte(body), &r))
		if r.Maintenance == nil || r.Maintenance.Reason != "firmware <b>" || time.Until(r.Maintenance.Until) < 23*time.Hour {
			t.Errorf("findings: %+v", r.Maintenance)
		}
	})
	t.Run("kept", func(t *testing.T) {
		s := startProgram(t, append(live, "--collect.min-interval=0s")...)
		if got := valueOf(t, s, "rdma_host_maintenance"); got != "1" {
			t.Errorf("after a restart: %q", got)
		}
		_, table, _ := runProgram(t, append(live, "check", "--no-daemon")...)
		if lines := strings.Split(table, "\n"); !strings.HasPrefix(lines[1], "Maintenance until ") ||
			!strings.HasSuffix(lines[1], "UTC: firmware <b>") {
			t.Errorf("check:\n%s", table)
		}
		for command, want := range map[string]int{"status": 2, "end": 0} { // the exit code of an action is its own
			if code := Run(t.Context(), append(live, "maintenance", command), full{}, io.Discard); code != want {
				t.Errorf("maintenance %s whose output is lost: exit %d, want %d", command, code, want)
			}
		}
		runs(t, "Maintenance until ", 0, "maintenance", "start", "--for=1d")
		runs(t, "Ended: Maintenance until ", 0, "maintenance", "end")
		if got := valueOf(t, s, "rdma_host_maintenance"); got != "0" {
			t.Errorf("ended: %q", got)
		}
	})
	_, table, _ := runProgram(t, append(live, "check", "--no-daemon")...)
	if strings.Contains(table, "Maintenance") {
		t.Errorf("check after the end:\n%s", table)
	}
}

// TestMaintenanceOfBefore: what had been announced ends at its end, also while no exporter ran.
func TestMaintenanceOfBefore(t *testing.T) {
	stateDir := t.TempDir()
	store, err := state.Open(filepath.Join(stateDir, "maintenance"))
	must(t, err)
	must(t, store.Write(maintenance.Announcement{Until: time.Now().Add(-time.Second), Left: 3600}))
	must(t, store.Close())
	s := startProgram(t, liveArgs(machines.Tree(t, "hdr100-ok"), stateDir)...)
	if got := valueOf(t, s, "rdma_host_maintenance"); got != "0" {
		t.Errorf("after its end: %q", got)
	}
}

// TestMaintenanceNeedsState: where nothing can be kept nothing can be announced, and nothing is said of it.
func TestMaintenanceNeedsState(t *testing.T) {
	stateDir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(stateDir, "maintenance"), nil, 0o600)) // no folder can be there
	live := liveArgs(machines.Tree(t, "hdr100-ok"), stateDir)
	s := startProgram(t, live...)
	if got := valueOf(t, s, "rdma_host_maintenance"); got != "" {
		t.Errorf("without state: %q", got)
	}
	code, _, errs := runProgram(t, append(live, "maintenance", "start", "--for=1h")...)
	if want := "rdma_exporter maintenance start: cannot announce maintenance: the exporter cannot use its state directory, see its log\n"; code != 2 || errs != want {
		t.Errorf("exit %d %s", code, errs)
	}
}

// TestMaintenanceOfReplay: a recording has none.
func TestMaintenanceOfReplay(t *testing.T) {
	s := startProgram(t, "--replay="+machines.Fixture("no-rdma"))
	if got := valueOf(t, s, "rdma_host_maintenance"); got != "" {
		t.Errorf("of a replay: %q", got)
	}
}
