//go:build e2e

// Package dashboards runs every query of the dashboards on a real Prometheus that scrapes exporters replaying recorded
// machines.
package dashboards

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/machine"
	"rdma_exporter/test/port"
	"rdma_exporter/test/program"
)

// patience is the time limit for a query to have data: some rounds of the slowest machine, and the rules.
const patience = 7 * time.Minute

// empty are the queries that have no data here, by dashboard, panel and query, with the reason.
var empty = map[string]string{
	"gpudirect/Alerts": "its alerts wait for five minutes and more",
}

// question is a query of a panel, of a variable or of annotations.
type question struct {
	name, expr string
	instant    bool
}

func TestQueriesHaveData(t *testing.T) {
	questions := load(t)
	began := time.Now()
	machines := targetsOfFleet(t)
	targets := append(slices.Clone(machines),
		target{serveText(t, func() string { return between(began) }), "between-rounds", "rdma_exporter", ""})
	targets = append(targets, target{serveText(t, func() string { return dcgm(uuidsOfHost(t)) }), "dcgm", "dcgm", ""})
	targets = append(targets,
		target{serveText(t, func() string { return subnet(t, began) }), "subnet", "rdma_exporter", "east"})
	targets = append(targets, target{port.Held(t), "gone", "rdma_exporter", ""})
	p := prometheus{t, startPrometheus(t,
		program.Installed(t, cmp.Or(os.Getenv("PROMETHEUS"), "prometheus"), "test/alerting/packages.sh"), targets)}
	p.await("/-/ready")
	startFleet(t, program.Exporter(t), machines)

	hosts := []string{".*"}
	for _, x := range targets {
		hosts = append(hosts, x.instance)
	}
	left, waiting := questions, questions
	for len(waiting) > 0 && time.Since(began) < patience {
		time.Sleep(2 * time.Second) // a real server scrapes in the meantime
		left = slices.DeleteFunc(left, func(q question) bool { return p.answers(q, hosts, began) })
		waiting = slices.DeleteFunc(slices.Clone(left), func(q question) bool { return empty[q.name] != "" })
		if len(waiting) > 0 {
			t.Logf("%s: no data for %d queries, the last of them %s",
				time.Since(began).Round(time.Second), len(waiting), waiting[len(waiting)-1].name)
		}
	}
	without := map[string]bool{}
	for _, q := range left {
		without[q.name] = true
		if empty[q.name] == "" {
			t.Errorf("%s: no data: %s", q.name, q.expr)
		}
	}
	for name := range empty {
		if !without[name] {
			t.Errorf("%s has data, and is listed as one that has none", name)
		}
	}
	follow(p)
}

// TestMain requires a Prometheus, unless the environment names one.
func TestMain(m *testing.M) {
	if os.Getenv("PROMETHEUS") == "" {
		cmd := exec.Command("../alerting/packages.sh")
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "packages.sh:", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// uuidsOfHost returns the UUIDs of the GPUs of dcgmHost.
func uuidsOfHost(t *testing.T) []string {
	t.Helper()
	a, err := machine.Load(recorded(dcgmHost))
	must(t, err)
	var out []string
	for _, e := range a.Rounds[0].Entries {
		if !strings.HasPrefix(e.Path, "nvml/gpu/") {
			continue
		}
		for line := range strings.Lines(string(e.Data)) {
			if id, ok := strings.CutPrefix(line, "uuid: "); ok {
				out = append(out, strings.TrimSpace(id))
			}
		}
	}
	return out
}

// load returns the queries of all dashboards.
func load(t *testing.T) []question {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, "dashboards/*.json"))
	must(t, err)
	var out []question
	for _, f := range files {
		var d struct {
			Panels     []panel
			Templating struct {
				List []struct{ Name, Definition string }
			}
			Annotations struct{ List []struct{ Name, Expr string } }
		}
		b, err := os.ReadFile(f)
		must(t, err)
		must(t, json.Unmarshal(b, &d))
		name := strings.TrimSuffix(filepath.Base(f), ".json")
		for _, row := range d.Panels {
			for _, p := range append(row.Panels, row) {
				for _, q := range p.Targets {
					out = append(out, question{name + "/" + p.Title + "/" + q.RefID, q.Expr, q.Instant})
				}
			}
		}
		for _, v := range d.Templating.List {
			if q, ok := strings.CutPrefix(v.Definition, "label_values("); ok {
				series, label, _ := cutLast(strings.TrimSuffix(q, ")"), ", ")
				out = append(out, question{name + "/$" + v.Name, fmt.Sprintf(
					"count by (%s) (%s) and on () vector(1) unless count by (%s) (%s{%s=\"\"})",
					label, series, label, strings.SplitN(series, "{", 2)[0], label), true})
			}
		}
		for _, a := range d.Annotations.List {
			out = append(out, question{name + "/" + a.Name, a.Expr, false})
		}
	}
	if len(out) < 100 {
		t.Fatalf("%d queries, want those of all dashboards", len(out))
	}
	return out
}

// panel is a panel, or a row with its panels where it is collapsed.
type panel struct {
	Title   string
	Panels  []panel
	Targets []struct {
		RefID   string `json:"refId"`
		Expr    string
		Instant bool
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

type prometheus struct {
	t   *testing.T
	url string
}

// orUnknown ends a query that has a result in any case.
const orUnknown = " or on () vector(-1)"

// noneAbove begins a line of a graph that says of how many series none exceeds a limit.
const noneAbove = `clamp_max(0 * count_values("of", `

// answers reports whether a query has data: of all hosts, or of one if the dashboard is for one.
func (p prometheus) answers(q question, hosts []string, began time.Time) bool {
	p.t.Helper()
	if !strings.Contains(q.expr, `instance="$host"`) && !strings.Contains(q.expr, `instance="$fabric"`) {
		hosts = hosts[:1]
	}
	if strings.HasPrefix(q.expr, noneAbove) { // what is measured; here something is above
		q.expr, _, _ = strings.Cut(q.expr, " unless on () ")
	}
	return slices.ContainsFunc(hosts, func(host string) bool {
		now := time.Now()
		expr := strings.NewReplacer("$cluster", ".*", "$job", "rdma_exporter", "$fabric_job", "rdma_exporter", "$hosts", host,
			"$host", host, "$fabric", host,
			"$device", ".*", "$switch", ".*", "$workload", "48121", "$__rate_interval", "15s", "offset $__range", "offset 10s",
			"$__range", fmt.Sprintf("%.0fs", now.Sub(began).Seconds()), "offset 10m", "offset 10s",
			"$$__all", "all", orUnknown, "").Replace(q.expr)
		if q.instant {
			return p.query("/api/v1/query", url.Values{"query": {expr}, "time": {seconds(now)}})
		}
		return p.query("/api/v1/query_range",
			url.Values{"query": {expr}, "start": {seconds(began)}, "end": {seconds(now)}, "step": {"5"}})
	})
}

func seconds(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

// query reports whether the answer has a series.
func (p prometheus) query(path string, form url.Values) bool {
	p.t.Helper()
	return len(p.series(path, form)) > 0
}

// series returns the labels of each series of the result. An error fails the test: the query is invalid.
func (p prometheus) series(path string, form url.Values) (out []map[string]string) {
	p.t.Helper()
	r, err := http.PostForm(p.url+path, form)
	must(p.t, err)
	defer func() { must(p.t, r.Body.Close()) }()
	b, err := io.ReadAll(r.Body)
	must(p.t, err)
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct{ Metric map[string]string }
		}
	}
	must(p.t, json.Unmarshal(b, &answer))
	if answer.Status != "success" {
		p.t.Fatalf("%s: %s", form.Get("query"), answer.Error)
	}
	for _, s := range answer.Data.Result {
		out = append(out, s.Metric)
	}
	return out
}

// await waits until a path is served.
func (p prometheus) await(path string) {
	p.t.Helper()
	for range 100 {
		if r, err := http.Get(p.url + path); err == nil {
			must(p.t, r.Body.Close())
			if r.StatusCode == http.StatusOK {
				return
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	p.t.Fatal("Prometheus is not ready after 10 s")
}
