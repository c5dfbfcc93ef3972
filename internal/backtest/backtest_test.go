//go:build !race

package backtest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/backtest"
	"rdma_exporter/rules"
)

const testStep = time.Minute

// begin is within what the stub says that it keeps, at a multiple of the step, and one time for all.
var begin = time.Now().Add(-4 * time.Hour).Truncate(time.Hour)

func start() time.Time { return begin }

// sample is what a host has at a minute; NaN: it has no such series then.
type sample struct {
	labels map[string]string
	at     func(minute int) float64
}

func sampleOf(name, instance string, at func(int) float64, pairs ...string) sample {
	l := map[string]string{"__name__": name, "instance": instance, "job": "rdma_exporter"}
	for i := 0; i < len(pairs); i += 2 {
		l[pairs[i]] = pairs[i+1]
	}
	return sample{l, at}
}

func always(v float64) func(int) float64 { return func(int) float64 { return v } }

func between(from, to int, in, out float64) func(int) float64 {
	return func(m int) float64 {
		if m >= from && m < to {
			return in
		}
		return out
	}
}

// fleet: host a loses a port for half an hour over the boundary of an hour, then its exporter; host b is healthy.
func fleet() (out []sample) {
	for _, host := range []string{"a:10879", "b:10879"} {
		state, up := always(4), always(1)
		if host == "a:10879" {
			state, up = between(45, 75, 1, 4), between(100, 130, 0, 1)
		}
		gone := func(f func(int) float64) func(int) float64 {
			return func(m int) float64 {
				if up(m) == 0 {
					return math.NaN()
				}
				return f(m)
			}
		}
		port := []string{"device", "mlx5_0", "port", "1"}
		out = append(out,
			sampleOf("up", host, up),
			sampleOf("rdma_exporter_build_info", host, gone(always(1)), "version", "1"),
			sampleOf("rdma_scrape_collector_success", host, gone(always(1)), "collector", "infiniband"),
			sampleOf("rdma_port_state_id", host, gone(state), port...),
			sampleOf("rdma_port_physical_state_id", host, gone(always(5)), port...),
			sampleOf("rdma_port_was_active", host, gone(always(1)), port...),
			sampleOf("rdma_port_info", host, gone(always(1)), append(port, "role", "compute", "link_layer", "InfiniBand")...),
		)
	}
	return out
}

const minutes = 180

// play gives an engine the fleet minute by minute.
func play(t *testing.T, e *alerting.Engine, each func(time.Time)) {
	t.Helper()
	all := fleet()
	old := make([]*alerting.PastSeries, len(all))
	for i, s := range all {
		old[i] = alerting.NewPastSeries(s.labels)
	}
	here := make([]bool, len(all))
	for m := range minutes {
		var samples []alerting.PastSample
		for i, s := range all {
			v := s.at(m)
			if gone := math.IsNaN(v); !gone || here[i] {
				samples = append(samples, alerting.PastSample{Series: old[i], Value: v, Gone: gone})
				here[i] = !gone
			}
		}
		at := start().Add(time.Duration(m) * testStep)
		if err := e.AppendPast(at, samples); err != nil {
			t.Fatal(err)
		}
		each(at)
	}
}

func newEngine(t *testing.T, fsys fs.FS, files []string) *alerting.Engine {
	t.Helper()
	e, err := alerting.New(alerting.Options{
		Dir: t.TempDir(), Instance: "x", Rules: fsys, Files: files, Interval: testStep, Retention: 12 * time.Hour,
		Fleet: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// bothSets returns the files of both sets.
func bothSets(t *testing.T) (fs.FS, []string) {
	t.Helper()
	fsys, names, err := rules.Both()
	if err != nil {
		t.Fatal(err)
	}
	return fsys, names
}

// server returns a Prometheus with the history of the fleet: its PromQL and its database, behind the paths that are
// asked.
func server(t *testing.T, retention string) *httptest.Server {
	t.Helper()
	e := newEngine(t, fstest.MapFS{"r.yml": {Data: []byte("groups:\n")}}, []string{"r.yml"})
	play(t, e, func(time.Time) {})
	reply := func(w http.ResponseWriter, data any) {
		if err := json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": data}); err != nil {
			t.Error(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1/status/runtimeinfo", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]string{"storageRetention": retention})
	})
	mux.HandleFunc("/api/v1/series", func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		var out []map[string]string
		for _, match := range r.Form["match[]"] {
			found, err := e.Range(r.Context(), match, start(), start().Add(minutes*testStep), testStep)
			if err != nil {
				t.Error(err)
			}
			for _, s := range found {
				out = append(out, s.Labels)
			}
		}
		reply(w, out)
	})
	mux.HandleFunc("/api/v1/query_range", func(w http.ResponseWriter, r *http.Request) {
		number := func(name string) float64 {
			v, err := strconv.ParseFloat(r.FormValue(name), 64)
			if err != nil {
				t.Error(err)
			}
			return v
		}
		moment := func(name string) time.Time { return time.UnixMilli(int64(number(name) * 1e3)) }
		found, err := e.Range(r.Context(), r.FormValue("query"), moment("start"), moment("end"),
			time.Duration(number("step")*float64(time.Second)))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"status":"error","errorType":"bad_data","error":%q}`, err)
			return
		}
		var result []any
		for _, s := range found {
			var values []any
			for _, p := range s.Points {
				values = append(values, []any{float64(p.At.UnixMilli()) / 1e3, strconv.FormatFloat(p.Value, 'f', -1, 64)})
			}
			result = append(result, map[string]any{"metric": s.Labels, "values": values})
		}
		reply(w, map[string]any{"resultType": "matrix", "result": result})
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func options(t *testing.T, url string) backtest.Options {
	fsys, files := bothSets(t)
	return backtest.Options{
		Prometheus: &backtest.Prometheus{URL: url, Client: http.DefaultClient}, Rules: fsys, Files: files, Dir: t.TempDir(),
		From: start(), To: start().Add((minutes - 1) * testStep), Step: testStep,
	}
}

// sometimes fails twice of three times that a range is asked for.
type sometimes struct{ asked int }

func (s *sometimes) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/query_range") {
		if s.asked++; s.asked%3 != 0 {
			return &http.Response{
				StatusCode: http.StatusServiceUnavailable, Status: "503 Service Unavailable",
				Body: io.NopCloser(strings.NewReader("away")),
			}, nil
		}
	}
	return http.DefaultTransport.RoundTrip(r)
}

// TestRun: what fires is what the same rules fire on when they see each minute as it comes.
func TestRun(t *testing.T) {
	fsys, files := bothSets(t)
	e := newEngine(t, fsys, files)
	want := map[string]int{} // minutes
	play(t, e, func(at time.Time) {
		if err := e.Eval(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		for _, a := range e.Alerts() {
			if a.State == alerting.StateFiring {
				want[a.Name+" "+a.Labels["severity"]]++
			}
		}
	})
	o := options(t, server(t, "15d").URL)
	failing := &sometimes{}
	o.Prometheus.Client = &http.Client{Transport: failing}
	r, err := backtest.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if failing.asked < 9 {
		t.Errorf("asked for %d ranges", failing.asked)
	}
	if r.Hosts != 2 || !r.From.Equal(start()) || len(r.Failed) > 0 {
		t.Errorf("%+v", r)
	}
	got := map[string]int{}
	for _, x := range r.Alerts {
		if x.Fired == 1 {
			got[x.Alert+" "+x.Severity] = int(time.Duration(x.Longest*float64(time.Second)) / testStep)
		}
	}
	for alert, after := range got {
		if after != want[alert] {
			t.Errorf("%s fired for %d minutes, want %d", alert, after, want[alert])
		}
	}
	if got["RDMAPortDown critical"] < 20 || got["RDMAExporterDown warning"] < 20 {
		t.Errorf("fired for minutes: %v", got)
	}
	i := slices.IndexFunc(r.Alerts, func(x backtest.Row) bool { return x.Alert == "RDMAPortDown" })
	if i < 0 {
		t.Fatalf("%+v", r.Alerts)
	}
	if x := r.Alerts[i]; x.Fired != 1 || x.Hosts != 1 || x.Drain != "evict" || x.Firing != 0 ||
		x.Example.Labels["instance"] != "a:10879" || !x.Example.From.Equal(start().Add(47*testStep)) {
		t.Errorf("%+v", x)
	}
	delete(want, "RDMAWatchdog none")
	for name := range want {
		alert, severity, _ := strings.Cut(name, " ")
		if !slices.ContainsFunc(r.Alerts, func(x backtest.Row) bool { return x.Alert == alert && x.Severity == severity }) {
			t.Errorf("%s is missing", name)
		}
	}
	if len(r.Alerts) > len(want) {
		t.Errorf("%d rows, want %d", len(r.Alerts), len(want))
	}
	if !slices.Contains(r.NoData, "RDMAGPUXid") || slices.Contains(r.Quiet, "RDMAGPUXid") {
		t.Errorf("no data: %v", r.NoData)
	}

	var table, text bytes.Buffer
	if err := r.Table(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"evaluated every 1m: 2 hosts\n", "critical  RDMAPortDown", "a mlx5_0/1, ",
		"Not evaluated (no data in this Prometheus): ",
	} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("%q is missing in\n%s", want, table.String())
		}
	}
	r.Only([]string{"RDMAPortDown"})
	if err := r.JSON(&text); err != nil {
		t.Fatal(err)
	}
	var back backtest.Report
	if err := json.Unmarshal(text.Bytes(), &back); err != nil || len(back.Alerts) != 1 || back.Alerts[0].Fired != 1 ||
		len(back.NoData) != 0 {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// TestCannot: each error names what is wrong with the history.
func TestCannot(t *testing.T) {
	s := server(t, "2h or 10GiB")
	var long *backtest.TooLong
	if _, err := backtest.Run(t.Context(), options(t, s.URL)); !errors.As(err, &long) || long.Retention != 2*time.Hour {
		t.Errorf("%v", err)
	}
	s = server(t, "15d")
	o := options(t, s.URL)
	o.Matchers = `job="other"`
	if _, err := backtest.Run(t.Context(), o); !errors.Is(err, backtest.ErrNoSeries) {
		t.Errorf("%v", err)
	}
	s.Close()
	if _, err := backtest.Run(t.Context(), options(t, s.URL)); err == nil ||
		!strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%v", err)
	}
	for body, want := range map[string]string{
		"<html>": "not from the API of a Prometheus",
		`{"status":"error","errorType":"execution","error":"too many samples"}`: "execution: too many samples",
		`{"status":"success","data":[]}`:                                        "not from the API of a Prometheus",
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
		if _, err := backtest.Run(t.Context(), options(t, s.URL)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
		s.Close()
	}
}
