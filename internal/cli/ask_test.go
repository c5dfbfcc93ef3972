//go:build !race

package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/verdict"
	"rdma_exporter/test/machines"
)

// patient gives a running exporter time to answer.
const patient = "--daemon-timeout=1m"

// findings waits for the first round of a server.
func (s *server) findings(t *testing.T) []byte {
	t.Helper()
	var body string
	waitUntil(func() bool {
		status, text, h := s.get(t, "/api/v1/findings")
		switch {
		case status == http.StatusServiceUnavailable: // no round has been evaluated yet
			return false
		case status != http.StatusOK:
			t.Fatalf("%d %s", status, text)
		case h.Get("Content-Type") != "application/json":
			t.Errorf("%v", h)
		}
		body = text
		return true
	})
	return []byte(body)
}

// TestCheckAsksTheDaemon: what the running exporter found, through its own handler, in the form in which check prints
// it.
func TestCheckAsksTheDaemon(t *testing.T) {
	s := startProgram(t, "--path.rootfs="+machines.Tree(t, "no-sm"), "--alerting.interval=5s")
	var served check.Report
	must(t, json.Unmarshal(s.findings(t), &served))
	r, errs := checked(t, s.url, patient)
	if errs != "" || r.Host != served.Host || r.IntervalSeconds != 5 || r.ExitCode != check.ExitCritical {
		t.Errorf("exit %d, host %s, every %gs, %s; served %+v", r.ExitCode, r.Host, r.IntervalSeconds, errs, served)
	}
	if len(r.Findings) != 1 || r.Findings[0].Alert != "RDMANoSubnetManager" || len(r.NotEvaluated) == 0 ||
		len(r.Evaluated) < 10 {
		t.Errorf("findings %v, evaluated %v, not %v", r.Findings, r.Evaluated, r.NotEvaluated)
	}
	if r, _ := checked(t, s.url, patient, "--only=RDMAPortDown"); r.ExitCode != check.ExitOK ||
		slices.ContainsFunc(r.Evaluated, func(e check.Evaluated) bool { return e.Alert != "RDMAPortDown" }) {
		t.Errorf("--only: exit %d, %v", r.ExitCode, r.Evaluated)
	}
	if want := (check.Source{Kind: check.SourceDaemon, URL: s.url}); served.Source != nil || *r.Source != want {
		t.Errorf("source %+v, of the answer itself %+v", r.Source, served.Source)
	}
	if _, body, _ := s.get(t, "/metrics"); !strings.Contains(body,
		`rdma_detection_unavailable{alert="RDMAPCIeErrors",fault="fatal",reason="not_supported"} 1`) {
		t.Error("/metrics does not expose what is not evaluated")
	}
}

// TestVerdictOfTheDaemon: what the running exporter reports on drain and fitness is what the rules have recorded, and
// check --drain goes by it.
func TestVerdictOfTheDaemon(t *testing.T) {
	well := startProgram(t, "--path.rootfs="+machines.Tree(t, "dgx-h100-ib"), "--alerting.interval=5s")
	var r check.Report
	must(t, json.Unmarshal(well.findings(t), &r))
	code, out, errs := runProgram(t, "--state.dir="+t.TempDir(), "check", "--drain", patient, "--daemon="+well.url)
	if r.Drain != check.DrainNo || code != check.ExitOK {
		t.Errorf("drain %s, exit %d: %s%s", r.Drain, code, out, errs)
	}
	ill := startProgram(t, "--replay="+machines.Fixture("port-down"))
	for deadline := time.Now().Add(time.Minute); r.Drain != check.DrainCordon && // evict follows after 5m
		time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		must(t, json.Unmarshal(ill.findings(t), &r))
	}
	if r.Drain != check.DrainCordon || r.Fit == nil || *r.Fit || len(r.DrainAlerts) == 0 {
		t.Errorf("drain %s, fit %v, alerts %v", r.Drain, r.Fit, r.DrainAlerts)
	}
}

// TestCheckWithoutEngine: an exporter that evaluates nothing has no findings, and reports what cannot be evaluated.
func TestCheckWithoutEngine(t *testing.T) {
	s := startProgram(t, "--path.rootfs="+machines.Tree(t, "port-down"), "--no-alerting")
	if status, _, _ := s.get(t, "/api/v1/findings"); status != http.StatusNotFound {
		t.Errorf("status %d", status)
	}
	if _, body, _ := s.get(t, "/metrics"); !strings.Contains(body, "rdma_detection_unavailable{") {
		t.Error("/metrics does not expose what is not evaluated")
	}
	if _, body, _ := s.get(t, "/metrics?collect[]=pcie"); strings.Contains(body, "rdma_detection_unavailable{") {
		t.Error("a part of the collectors reports what is not evaluated")
	}
}

// TestCheckAsksAReplay: what is replayed is not that host.
func TestCheckAsksAReplay(t *testing.T) {
	s := startProgram(t, "--replay="+machines.Fixture("port-down"))
	s.findings(t)
	r, errs := checked(t, s.url, patient)
	unanswered(t, r, errs, s.url, "it evaluates a replay")
}

// TestCheckWithBadDaemon: whatever answers there, this host is not evaluated in its place.
func TestCheckWithBadDaemon(t *testing.T) {
	with := func(change func(*check.Report)) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			r := check.Report{
				Version: check.Version, Exporter: "unreleased " + strings.SplitN(verdict.Build(), " ", 2)[1], Host: "other:10879",
				Time: time.Now(), IntervalSeconds: 15, Source: &check.Source{Kind: check.SourceOneOff},
			}
			change(&r)
			_ = json.NewEncoder(w).Encode(r)
		}
	}
	const late = "no answer within 1s"
	cases := map[string]struct {
		handler http.HandlerFunc
		want    string // in the error; empty: the answer is taken
	}{
		"good":  {with(func(*check.Report) {}), ""},
		"hangs": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, late},
		"hangs half way": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "{")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, late},
		"garbage":      {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "not a report"},
		"another JSON": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"version":"two"}`) }, "not a report"},
		"nothing":      {func(http.ResponseWriter, *http.Request) {}, "not a report"},
		"huge": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"host":"%s"}`, strings.Repeat("x", 8<<20))
		}, "larger than 8 MiB"},
		"not found":       {http.NotFound, "404"},
		"redirect":        {http.RedirectHandler("/elsewhere", http.StatusFound).ServeHTTP, "302"},
		"another version": {with(func(r *check.Report) { r.Exporter = "0.0.1 abc" }), "different version"},
		"another schema":  {with(func(r *check.Report) { r.Version++ }), "different version"},
		"a replay":        {with(func(r *check.Report) { r.Replay = "demo" }), "replay"},
		"old":             {with(func(r *check.Report) { r.Time = r.Time.Add(-2 * time.Minute) }), "old"},
		"slow":            {with(func(r *check.Report) { r.Time = r.Time.Add(-2 * time.Minute); r.IntervalSeconds = 600 }), ""},
		"of the future":   {with(func(r *check.Report) { r.Time = r.Time.Add(2 * time.Minute) }), "ahead of the clock of this host"},
		"clock differs":   {with(func(r *check.Report) { r.Time = r.Time.Add(50 * time.Second) }), ""},
		"hostile":         {with(func(r *check.Report) { r.Error = "\x1b[2J" }), ""},
	}
	for group, isLate := range map[string]bool{"late": true, "answers": false} {
		t.Run(group, func(t *testing.T) {
			args := []string{patient}
			if isLate {
				args = nil
			}
			for name, tc := range cases {
				if (tc.want == late) != isLate {
					continue
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					s := httptest.NewServer(tc.handler)
					defer s.Close()
					r, errs := checked(t, s.URL, args...)
					if tc.want != "" {
						unanswered(t, r, errs, s.URL, tc.want)
						return
					}
					if strings.Contains(r.Error, "\x1b") {
						t.Errorf("%q", r.Error)
					}
					if want := (check.Source{Kind: check.SourceDaemon, URL: s.URL}); r.Host != "other:10879" || errs != "" ||
						*r.Source != want {
						t.Errorf("host %s, source %+v\n%s", r.Host, r.Source, errs)
					}
				})
			}
		})
	}
}
