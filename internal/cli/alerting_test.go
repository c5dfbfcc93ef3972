package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/machines"
)

// storm is a machine of which alerts fire as soon as its recording has been played.
const storm = "hgx-h200-roce-storm"

// prometheus reads a server's API as any client of Prometheus does.
func (s *server) prometheus(t *testing.T) v1.API {
	t.Helper()
	c, err := api.NewClient(api.Config{Address: s.url, RoundTripper: &http.Transport{DisableKeepAlives: true}})
	must(t, err)
	return v1.NewAPI(c)
}

// firing waits for an alert.
func (s *server) firing(t *testing.T, name string) (a v1.Alert) {
	t.Helper()
	waitUntil(func() bool {
		alerts, err := s.prometheus(t).Alerts(t.Context())
		must(t, err)
		i := slices.IndexFunc(alerts.Alerts, func(a v1.Alert) bool {
			return string(a.Labels["alertname"]) == name && a.State == v1.AlertStateFiring
		})
		if i >= 0 {
			a = alerts.Alerts[i]
		}
		return i >= 0
	})
	return a
}

// rounds waits until so many have been evaluated.
func (s *server) rounds(t *testing.T, n float64) {
	t.Helper()
	waitUntil(func() bool {
		_, body, _ := s.get(t, "/metrics")
		_, rest, _ := strings.Cut(body, "\nrdma_alerting_rounds_total ")
		text, _, _ := strings.Cut(rest, "\n")
		got, err := strconv.ParseFloat(text, 64)
		return err == nil && got >= n
	})
}

// TestAPI: what clients of Prometheus' API read.
func TestAPI(t *testing.T) {
	s := startProgram(t, "--replay="+machines.Fixture(storm), "--alerting.job=rdma", "--alerting.instance=gpu-1:9",
		"--alerting.interval=20s")
	a := s.firing(t, "RDMAWatchdog")
	if a.Labels["instance"] != "gpu-1:9" || a.Labels["job"] != "rdma" || a.Annotations["summary"] == "" ||
		a.ActiveAt.IsZero() || !strings.Contains(a.Value, "e+") {
		t.Errorf("%+v", a)
	}
	rules, err := s.prometheus(t).Rules(t.Context(), nil)
	must(t, err)
	alerts, recording := 0, 0
	for _, g := range rules.Groups {
		if g.Name == "" || !strings.HasPrefix(g.File, "node/") || g.Interval != 20 {
			t.Errorf("%s of %s, %g", g.Name, g.File, g.Interval)
		}
		for _, r := range g.Rules {
			switch r := r.(type) {
			case v1.AlertingRule:
				alerts++
				if r.Health != v1.RuleHealthGood || r.Query == "" || r.Labels["severity"] == "" ||
					r.Annotations["summary"] == "" || r.LastEvaluation.IsZero() || r.EvaluationTime == 0 {
					t.Errorf("%+v", r)
				}
				if r.Name == "RDMAWatchdog" && (r.State != "firing" || len(r.Alerts) != 1) {
					t.Errorf("%+v", r)
				}
			case v1.RecordingRule:
				recording++
			}
		}
	}
	if alerts < 50 || recording < 5 {
		t.Errorf("%d alerting rules, %d recording rules", alerts, recording)
	}
	for query, want := range map[string]int{
		"type=alert": alerts, "type=record": recording, "rule_name[]=RDMAWatchdog": 1, "file[]=x": 0,
	} {
		t.Run(query, func(t *testing.T) {
			_, body, _ := s.get(t, "/api/v1/rules?"+query)
			var answer struct{ Data v1.RulesResult }
			must(t, json.Unmarshal([]byte(body), &answer))
			got := 0
			for _, g := range answer.Data.Groups {
				got += len(g.Rules)
			}
			if got != want {
				t.Errorf("%d rules, want %d", got, want)
			}
		})
	}
	if status, body, _ := s.get(t, "/api/v1/rules?type=x"); status != 400 ||
		!strings.Contains(body, `"status":"error","errorType":"bad_data","error":"type=x: `) {
		t.Errorf("%d, %s", status, body)
	}
	for name, want := range map[string]string{
		"rdma_alerting_alertmanagers": "0", "rdma_alerting_store_degraded": "0", "rdma_alerting_rule_failures_total": "0",
	} {
		s.waitFor(t, name+" "+want)
	}
	_, body, _ := s.get(t, "/metrics")
	for _, name := range []string{
		"rdma_alerting_rounds_total", "rdma_alerting_last_round_duration_seconds", "rdma_alerting_store_series",
	} {
		if !strings.Contains(body, "\n"+name+" ") || strings.Contains(body, "\n"+name+" 0\n") {
			t.Errorf("%s is not there, or 0", name)
		}
	}
}

// TestNoAlerting: a plain exporter.
func TestNoAlerting(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := startProgram(t, "--replay="+machines.Fixture("no-rdma"), "--no-alerting")
	if _, body, _ := s.get(t, "/metrics"); strings.Contains(body, "rdma_alerting_") {
		t.Error("tells of an engine")
	}
	if status, _, _ := s.get(t, "/api/v1/alerts"); status != 404 {
		t.Errorf("status %d", status)
	}
	if stores, err := filepath.Glob(os.Getenv("TMPDIR") + "/rdma_exporter-alerting-*"); err != nil || len(stores) > 0 {
		t.Errorf("%v, %v", stores, err)
	}
}

// TestReplaySends: alerts of a replay are sent only with --replay.send-alerts, with a label, and nothing is written to
// the state directory.
func TestReplaySends(t *testing.T) {
	came := make(chan []byte, 100)
	am := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		came <- b
	}))
	defer am.Close()
	keep := t.TempDir()
	quiet := startProgram(
		t,
		"--replay="+machines.Fixture(storm),
		"--alerting.alertmanager-url="+am.URL,
		"--state.dir="+keep,
	)
	quiet.firing(t, "RDMAWatchdog")
	if !strings.Contains(quiet.log.String(), "--replay.send-alerts") || len(came) > 0 {
		t.Errorf("%d requests\n%s", len(came), quiet.log)
	}
	startProgram(t, "--replay="+machines.Fixture(storm), "--alerting.alertmanager-url="+am.URL, "--replay.send-alerts",
		"--state.dir="+keep, "--alerting.external-labels=cluster=a")
	var alerts []struct{ Labels map[string]string }
	must(t, json.Unmarshal(<-came, &alerts))
	for _, a := range alerts {
		if a.Labels["replay"] != "true" || a.Labels["cluster"] != "a" {
			t.Errorf("%v", a.Labels)
		}
	}
	if left, err := os.ReadDir(keep); err != nil || len(left) > 0 {
		t.Errorf("in the state directory: %v, %v", left, err)
	}
}

// TestReplayFires: a served replay is marked in its metrics and by an alert, which begins with the others; a host does
// not.
func TestReplayFires(t *testing.T) {
	s := startProgram(t, "--replay="+machines.Fixture("no-rdma"))
	s.firing(t, "RDMAReplay")
	if _, body, _ := s.get(t, "/metrics"); !strings.Contains(body, "\nrdma_exporter_replay_info{hostname=\"") {
		t.Errorf("%s", body)
	}
	s = startProgram(t, "--path.rootfs="+machines.Tree(t, "no-rdma"), "--state.dir="+t.TempDir())
	s.firing(t, "RDMAWatchdog")
	_, body, _ := s.get(t, "/metrics")
	_, alerts, _ := s.get(t, "/api/v1/alerts")
	if strings.Contains(body, "replay_info") || strings.Contains(alerts, "RDMAReplay") {
		t.Errorf("%s\n%s", alerts, body)
	}
}

// TestReloadRules: rules are replaced and added, a bad file changes nothing at all.
func TestReloadRules(t *testing.T) {
	dir := t.TempDir()
	site, rules := filepath.Join(dir, "site.yml"), filepath.Join(dir, "site.rules.yml")
	always := func(name string) string {
		return "groups: [{name: site, rules: [{alert: " + name + ", expr: vector(1)}]}]\n"
	}
	put(t, site, validConfig)
	put(t, rules, always("One"))
	s := startProgram(t, "--replay="+machines.Fixture("no-rdma"), "--config.file="+site,
		"--alerting.rule-files="+dir+"/*.rules.yml", "--alerting.interval=1s", "--web.enable-lifecycle")
	s.firing(t, "One")
	put(t, rules, "groups: [{name: site, rules: [{alert: Two, expr: 'up{'}]}]\n")
	put(t, site, otherConfig)
	status, body := s.post(t, "/-/reload")
	if status != 400 || !strings.Contains(body, rules) || !strings.Contains(body, "parse error") {
		t.Errorf("%d, %s", status, body)
	}
	s.waitFor(t, refused)
	s.firing(t, "One")
	put(t, rules, always("Two"))
	if status, body := s.post(t, "/-/reload"); status != 200 {
		t.Errorf("%d, %s", status, body)
	}
	s.waitFor(t, reloaded)
	s.firing(t, "Two")
	if _, body, _ := s.get(t, "/api/v1/alerts"); strings.Contains(body, "One") {
		t.Error("the rule that went fires")
	}
}

// TestStateDirectoryTaken: the second exporter of a state directory leaves the first one's samples alone.
func TestStateDirectoryTaken(t *testing.T) {
	dir, keep := machines.Tree(t, "dgx-h100-ib"), t.TempDir()
	args := []string{"--path.rootfs=" + dir, "--state.dir=" + keep}
	first := startProgram(t, args...)
	first.waitFor(t, "rdma_alerting_store_degraded 0")
	second := startProgram(t, args...)
	second.waitFor(t, "rdma_alerting_store_degraded 1")
	first.waitFor(t, "rdma_alerting_store_degraded 0")
	if found, err := filepath.Glob(keep + "/alerting/*"); err != nil || len(found) != 2 {
		t.Errorf("%q, %v", found, err)
	}
	if !strings.Contains(second.log.String(), "in use by another rdma_exporter") {
		t.Error(second.log)
	}
}

// TestOverlappingRestart: an exporter that begins before the one before has ended has its samples and its alerts when
// that has ended.
func TestOverlappingRestart(t *testing.T) {
	dir, keep := machines.Tree(t, "dgx-h100-ib"), t.TempDir()
	rules := filepath.Join(t.TempDir(), "x.yml")
	put(t, rules, "groups: [{name: x, rules: [{alert: X, expr: vector(1), for: 1h}]}]\n")
	args := []string{
		"--path.rootfs=" + dir, "--state.dir=" + keep, "--alerting.interval=1s", "--alerting.rule-files=" + rules,
	}
	evaluations := func(s *server) (began, evaluated time.Time) {
		rules, err := s.prometheus(t).Rules(t.Context(), nil)
		must(t, err)
		for _, g := range rules.Groups {
			for _, r := range g.Rules {
				if r, ok := r.(v1.AlertingRule); ok && r.Name == "X" && len(r.Alerts) == 1 {
					return r.Alerts[0].ActiveAt, r.LastEvaluation
				}
			}
		}
		return began, evaluated
	}
	outer := t
	var second *server
	var began, until time.Time // of the first
	t.Run("first", func(t *testing.T) {
		first := startProgram(t, args...)
		first.rounds(t, 7) // five seconds and more
		second = startProgram(outer, args...)
		second.waitFor(t, "rdma_alerting_store_degraded 1")
		second.rounds(t, 4)
		began, until = evaluations(first)
		if own, _ := evaluations(second); own.Sub(began) < 5*time.Second {
			t.Fatalf("the alert of the second began at %s, that of the first at %s", own, began)
		}
	})
	second.waitFor(t, "rdma_alerting_store_degraded 0")
	if log := second.log.String(); !strings.Contains(log, "is available, alert state and history are saved") {
		t.Error(log)
	}
	again, from := evaluations(second)
	// It is kept in seconds.
	if later, nobody := again.Sub(began), from.Sub(until); later < -time.Second || later > nobody+time.Second {
		t.Errorf("the alert began %s after that of the first: nobody saw it for %s at most", later, nobody)
	}
}

// TestRestartKeepsWaiting: the samples and the alerts of an exporter that ended are those of the next one.
func TestRestartKeepsWaiting(t *testing.T) {
	dir, kept := machines.Tree(t, "dgx-h100-ib"), t.TempDir()
	put(t, filepath.Join(dir, port0+"state"), "1: DOWN\n")
	rules := filepath.Join(t.TempDir(), "x.yml")
	put(t, rules, "groups: [{name: x, rules: [{alert: X, expr: 'count(rdma_port_state_id == 1) > 0', for: 1h}]}]\n")
	args := []string{
		"--path.rootfs=" + dir, "--state.dir=" + kept, "--alerting.rule-files=" + rules, "--alerting.interval=1s",
	}
	since := func(s *server) (at time.Time) {
		waitUntil(func() bool {
			alerts, err := s.prometheus(t).Alerts(t.Context())
			must(t, err)
			for _, a := range alerts.Alerts {
				if a.Labels["alertname"] == "X" {
					at = a.ActiveAt
				}
			}
			return !at.IsZero()
		})
		return at
	}
	t.Run("first", func(t *testing.T) {
		s := startProgram(t, args...)
		s.rounds(t, 5)
		waitUntil(func() bool { return time.Since(since(s)) >= 4*time.Second })
	})
	must(t, os.RemoveAll(filepath.Join(kept, "alerting", "store")))
	var known []alerting.Active
	must(t, state.Read(t.Context(), filepath.Join(kept, "alerting"), &known))
	known = slices.DeleteFunc(known, func(a alerting.Active) bool { return a.Labels["alertname"] != "X" })
	if len(known) != 1 || known[0].SeenAt.Sub(known[0].ActiveAt) < 2*time.Second { // rounds are late on a busy machine
		t.Fatalf("kept: %+v", known)
	}
	s := startProgram(t, args...)
	again, now := since(s), time.Now()
	// Prometheus restores whole seconds.
	if waited := known[0].SeenAt.Sub(known[0].ActiveAt); now.Sub(again) < waited-time.Second {
		t.Errorf("waits since %s, %s before; it had waited for %s", again, now.Sub(again), waited)
	}
}

// TestServeLeaksNothing: a program that ends leaves no goroutine, no file and no folder behind.
func TestServeLeaksNothing(t *testing.T) {
	scratch := t.TempDir()
	t.Setenv("TMPDIR", scratch)
	am := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer am.Close()
	held := func() (goroutines, files int) {
		am.CloseClientConnections()
		open, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		return runtime.NumGoroutine(), len(open)
	}
	life := func() {
		t.Run("life", func(t *testing.T) {
			s := startProgram(t, "--replay="+machines.Fixture("no-rdma"), "--alerting.interval=1s",
				"--alerting.alertmanager-url="+am.URL, "--replay.send-alerts")
			s.rounds(t, 3)
		})
	}
	life()
	goroutines, files := held()
	life()
	life()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		g, f := held()
		if g <= goroutines && f <= files {
			break
		}
		if time.Now().After(end) {
			all := make([]byte, 1<<20)
			t.Fatalf("%d goroutines and %d files, before %d and %d\n%s", g, f, goroutines, files, all[:runtime.Stack(all, true)])
		}
	}
	if left, err := filepath.Glob(scratch + "/rdma_exporter-*"); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}
