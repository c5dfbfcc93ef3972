package cli

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/page/nodepage"
	"rdma_exporter/test/machines"
)

// siteRule is an alert that drains, and fires some rounds after a port went down.
const siteRule = `groups: [{name: site, rules: [{alert: SiteDown, expr: 'max by (device, port) (rdma_port_state_id) == 1', for: 3s, labels: {severity: critical, drain: evict}}]}]`

// TestFlightRecorder: a port that goes down leaves one capture, which can be replayed, with what was read before the
// alert fired. A restart keeps it, and makes no other.
func TestFlightRecorder(t *testing.T) {
	dir, stateDir, rules := machines.Tree(t, "hdr100-ok"), filepath.Join(t.TempDir(), "state"),
		filepath.Join(t.TempDir(), "site.rules.yml")
	put(t, rules, siteRule)
	args := append(liveArgs(dir, stateDir), "--collect.min-interval=0s", "--alerting.interval=1s",
		"--alerting.rule-files="+rules)
	var node nodepage.Node
	incidents := func(t *testing.T, s *server) []nodepage.Incident {
		t.Helper()
		node = nodepage.Node{}
		_, body, _ := s.get(t, "/api/v1/node")
		must(t, json.Unmarshal([]byte(body), &node))
		return node.Incidents
	}
	t.Run("recorded", func(t *testing.T) {
		s := startProgram(t, args...)
		s.await(t, "/api/v1/alerts", "RDMAWatchdog")
		if got := valueOf(t, s, "rdma_incident_last_capture_successful"); got != "" || len(incidents(t, s)) > 0 {
			t.Errorf("before: %q, %v", got, node.Incidents)
		}
		put(t, filepath.Join(dir, "sys/class/infiniband/mlx5_0/ports/1/state"), "1: DOWN\n")
		s.await(t, "/metrics", "\nrdma_incident_last_capture_successful 1")
		s.await(t, "/", "SiteDown mlx5_0/1")
		known := incidents(t, s)
		if len(known) != 1 || !slices.Equal(known[0].Alerts, []string{"SiteDown mlx5_0/1"}) ||
			!strings.HasSuffix(known[0].File, "-SiteDown.txtar") {
			t.Fatalf("%+v", known)
		}
		a, err := capture.Load(known[0].File, nil)
		must(t, err)
		if len(a.Rounds) < 2 {
			t.Errorf("%d rounds: none from before the alert fired", len(a.Rounds))
		}
		entries := map[string]string{}
		for _, e := range a.Rounds[0].Entries {
			entries[e.Path] = string(e.Data)
		}
		if !strings.Contains(entries["exporter/incident.json"], `"alertname": "SiteDown"`) ||
			!strings.Contains(entries["exporter/history.txt"], "\nrdma_port_state_id{") || entries["exporter/state.json"] == "" {
			t.Errorf("%s%s%s",
				entries["exporter/incident.json"], entries["exporter/history.txt"], entries["exporter/state.json"])
		}
		code, out, errs := runProgram(t, "--replay="+known[0].File, "check", "--only=RDMAPortDown")
		if !strings.Contains(out, "RDMAPortDown") || code != 2 {
			t.Errorf("the capture, replayed: exit %d\n%s%s", code, out, errs)
		}
	})
	kept := node.Incidents
	t.Run("kept", func(t *testing.T) {
		s := startProgram(t, args...)
		s.await(t, "/api/v1/alerts", `"alertname":"SiteDown"`)
		s.firing(t, "SiteDown")
		if got := incidents(t, s); len(got) != 1 || got[0].File != kept[0].File {
			t.Errorf("after a restart: %+v, before %+v", got, kept)
		}
		if got := valueOf(t, s, "rdma_incident_last_capture_successful"); got != "" {
			t.Errorf("captured again: %q", got)
		}
	})
	if files := captures(t, filepath.Join(stateDir, "incidents")); len(files) != 1 {
		t.Errorf("%v", files)
	}
}

// TestFlightRecorderNeedsState: where nothing can be kept nothing is captured, and the rules are evaluated.
func TestFlightRecorderNeedsState(t *testing.T) {
	dir, stateDir, rules := machines.Tree(t, "hdr100-ok"), t.TempDir(), filepath.Join(t.TempDir(), "site.rules.yml")
	put(t, rules, strings.Replace(siteRule, "== 1", "== 4", 1))
	put(t, filepath.Join(stateDir, "incidents"), "")
	s := startProgram(t, append(liveArgs(dir, stateDir), "--alerting.interval=1s", "--alerting.rule-files="+rules)...)
	s.firing(t, "SiteDown")
	if got := valueOf(t, s, "rdma_incident_last_capture_successful"); got != "" ||
		!strings.Contains(s.log.String(), "cannot use the incident directory, no incident captures are kept") {
		t.Errorf("%q\n%s", got, s.log)
	}
}

func captures(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.txtar")
	must(t, err)
	return files
}
