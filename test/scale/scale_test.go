//go:build scale

// Package scale measures the cost of a fleet for the Prometheus that scrapes it and evaluates its rules.
package scale

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"rdma_exporter/test/port"
	"rdma_exporter/test/program"
)

var (
	nodes    = flag.Int("nodes", 1000, "hosts of the fleet")
	duration = flag.Duration("for", 25*time.Minute, "how long the fleet is scraped; the longest windows of rules look back further")
	interval = flag.Duration("interval", 30*time.Second, "of scrapes, and of evaluations")
)

// machines are the recorded machines of the fleet, in turn.
var machines = []string{"hgx-h200-roce", "dgx-h100-ib"}

// patience is the time limit of one query of a dashboard.
const patience = 15 * time.Second

const repository = "../.."

// TestScale runs a real Prometheus that scrapes a fleet and evaluates all rules, and prints its cost.
func TestScale(t *testing.T) {
	f := newFleet(t)
	p := startPrometheus(t, f.serve(t))
	began := time.Now()
	time.Sleep(*duration)

	m := p.self(t)
	head, resident := m.sum("prometheus_tsdb_head_series"), m.sum("process_resident_memory_bytes")
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	defer func() { t.Log("\n" + out.String()) }()
	say("%d hosts of %s, scraped and evaluated every %s for %s on %d processors:\n",
		*nodes, strings.Join(machines, " and "), *interval, *duration, runtime.NumCPU())
	say("| what | figure |\n|---|---|")
	row := func(what string, format string, args ...any) {
		say("| %s | %s |", what, fmt.Sprintf(format, args...))
	}
	row("series in the head", "%.0f, %.0f a host", head, head/float64(*nodes))
	row("of them made by recording rules", "%.0f", p.number(t, `count({__name__=~".+:.+"})`))
	row("alerts, pending and firing", "%.0f", p.number(t, `count(ALERTS) or vector(0)`))
	row("resident memory", "%.2f GiB, %.0f B a series", resident/(1<<30), resident/head)
	row("CPU, of one processor", "%.2f",
		p.number(t, fmt.Sprintf(`rate(process_cpu_seconds_total{job="self"}[%s])`, model.Duration(10**interval))))
	row("samples a second", "%.0f", p.number(t,
		fmt.Sprintf(`sum(rate(prometheus_tsdb_head_samples_appended_total{job="self"}[%s]))`, model.Duration(10**interval))))
	row("targets up", "%.0f", p.number(t, `sum(up{job="rdma_exporter"})`))
	row("evaluations that took longer than the interval", "%.0f", m.sum("prometheus_rule_group_iterations_missed_total"))

	say("\n| rule group | rules | last evaluation | longest |\n|---|---|---|---|")
	last, rules := m["prometheus_rule_group_last_duration_seconds"], m["prometheus_rule_group_rules"]
	longest := p.byGroup(t, fmt.Sprintf(`max_over_time(prometheus_rule_group_last_duration_seconds{job="self"}[%s])`,
		model.Duration(*duration)))
	groups := slices.SortedFunc(maps.Keys(last), func(a, b string) int { return int(math.Copysign(1, last[b]-last[a])) })
	var sum float64
	for _, g := range groups {
		sum += last[g]
		say("| %s | %.0f | %.2f s | %.2f s |", short(g), rules[g], last[g], longest[g])
	}
	say("| all %d | %.0f | %.2f s | |", len(groups), m.sum("prometheus_rule_group_rules"), sum)
	say("\n| recorded metric | series |\n|---|---|")
	for name, n := range p.top(t) {
		say("| %s | %.0f |", name, n)
	}

	say("\n| dashboard | queries | all | slowest | its panel | most series of one |\n|---|---|---|---|---|---|")
	for _, c := range p.dashboards(t, began) {
		say("| %s | %d | %.1f s | %.1f s | %s | %d |",
			c.dashboard, c.queries, c.sum.Seconds(), c.slowest.Seconds(), c.panel, c.series)
		if c.slowest > patience {
			t.Errorf("%s: %s takes %.1f s", c.dashboard, c.panel, c.slowest.Seconds())
		}
	}

	if up := p.number(t, `sum(up{job="rdma_exporter"})`); up != float64(*nodes) {
		t.Errorf("%v targets are up", up)
	}
	if n := m.sum("prometheus_rule_evaluation_failures_total"); n > 0 {
		t.Errorf("%v evaluations failed", n)
	}
	for _, g := range groups {
		if last[g] > interval.Seconds() {
			t.Errorf("group %s takes %.1f s", short(g), last[g])
		}
	}
}

// fleet serves any number of hosts from a few exporters.
type fleet struct {
	exporters []string
	mu        sync.Mutex
	kept      map[string]page // by exporter
}

type page struct {
	at   time.Time
	body []byte
}

// newFleet starts an exporter for each recorded machine.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{kept: map[string]page{}}
	binary := program.Exporter(t)
	for _, m := range machines {
		a := start(t, binary, "serve", "--replay="+filepath.Join(repository, "fixtures/sysfs", m+".txtar"),
			"--state.dir="+t.TempDir(), "--no-alerting")
		f.exporters = append(f.exporters, "http://"+a+"/metrics")
	}
	return f
}

// serve serves /N/metrics of host N.
func (f *fleet) serve(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{host}/metrics", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.PathValue("host"))
		if err != nil || n < 0 {
			http.NotFound(w, r)
			return
		}
		body, err := f.body(r.Context(), f.exporters[n%len(f.exporters)])
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
		_, _ = w.Write(body) // the scraper has disconnected
	})
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: mux}
	go func() { _ = s.Serve(l) }() // closed below
	t.Cleanup(func() { must(t, s.Close()) })
	return l.Addr().String()
}

// body returns the response of an exporter, requested once per scrape interval.
func (f *fleet) body(ctx context.Context, exporter string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := f.kept[exporter]; time.Since(k.at) < *interval {
		return k.body, nil
	}
	body, err := get(ctx, exporter)
	if err == nil {
		f.kept[exporter] = page{time.Now(), body}
	}
	return body, err
}

// prometheus is the URL of a running server.
type prometheus string

// startPrometheus starts a server with central rules, scraping the fleet and itself.
func startPrometheus(t *testing.T, name string) prometheus {
	t.Helper()
	rules, err := filepath.Abs(filepath.Join(repository, "rules"))
	must(t, err)
	dir := t.TempDir()
	self := filepath.Join(dir, "self.yml") // written once the port is known: Prometheus detects the file
	i := model.Duration(*interval)
	var c strings.Builder
	fmt.Fprintf(&c, "global: {scrape_interval: %s, evaluation_interval: %s}\nrule_files: [%q, %q]\nscrape_configs:\n",
		i, i, rules+"/node/*.yml", rules+"/central/*.yml")
	fmt.Fprintf(&c, "- {job_name: self, file_sd_configs: [{files: [%q], refresh_interval: 10s}]}\n- job_name: rdma_exporter\n  static_configs:\n", self)
	for n := range *nodes {
		fmt.Fprintf(&c, "  - {targets: [%q], labels: {instance: \"gpu-%04d:10879\", cluster: c, __metrics_path__: /%d/metrics}}\n", name, n, n)
	}
	config := filepath.Join(dir, "prometheus.yml")
	must(t, os.WriteFile(config, []byte(c.String()), 0o600))
	server := program.Installed(t, cmp.Or(os.Getenv("PROMETHEUS"), "prometheus"), "test/alerting/packages.sh")
	address := start(t, server, "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--log.level=warn")
	must(t, os.WriteFile(self, fmt.Appendf(nil, "- targets: [%q]\n", address), 0o600))
	return prometheus("http://" + address)
}

// metrics are those of a server by name and rule group; without a group the key is empty.
type metrics map[string]map[string]float64

func (m metrics) sum(name string) (sum float64) {
	for _, v := range m[name] {
		sum += v
	}
	return sum
}

func (p prometheus) self(t *testing.T) metrics {
	t.Helper()
	body, err := get(t.Context(), string(p)+"/metrics")
	must(t, err)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(body)))
	must(t, err)
	out := metrics{}
	for name, f := range families {
		out[name] = map[string]float64{}
		for _, x := range f.Metric {
			group := ""
			for _, l := range x.Label {
				if l.GetName() == "rule_group" {
					group = l.GetValue()
				}
			}
			out[name][group] += x.GetGauge().GetValue() + x.GetCounter().GetValue() + x.GetUntyped().GetValue()
		}
	}
	return out
}

// vector is the result of an instant query: labels and value of each series.
type vector []struct {
	Metric map[string]string
	Value  [2]any
}

func (p prometheus) query(t *testing.T, q string) vector {
	t.Helper()
	body, err := get(t.Context(), string(p)+"/api/v1/query?query="+url.QueryEscape(q))
	must(t, err)
	var a struct{ Data struct{ Result vector } }
	must(t, json.Unmarshal(body, &a))
	return a.Data.Result
}

func value(t *testing.T, v [2]any) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(fmt.Sprint(v[1]), 64)
	must(t, err)
	return n
}

// number returns the result of a query with one series.
func (p prometheus) number(t *testing.T, q string) float64 {
	t.Helper()
	a := p.query(t, q)
	if len(a) != 1 {
		t.Fatalf("%s has %d answers", q, len(a))
	}
	return value(t, a[0].Value)
}

func (p prometheus) byGroup(t *testing.T, q string) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for _, a := range p.query(t, q) {
		out[a.Metric["rule_group"]] = value(t, a.Value)
	}
	return out
}

// top yields the recorded metrics with most series.
func (p prometheus) top(t *testing.T) func(func(string, float64) bool) {
	t.Helper()
	a := p.query(t, `topk(8, count by (__name__) ({__name__=~".+:.+"}))`)
	return func(yield func(string, float64) bool) {
		for _, x := range a {
			if !yield(x.Metric["__name__"], value(t, x.Value)) {
				return
			}
		}
	}
}

// short returns the name of a group without the path of its file.
func short(group string) string { return filepath.Base(group) }

func get(ctx context.Context, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", address, resp.Status, body)
	}
	return body, err
}

// start runs a program until the test ends, and returns the address that it listens on.
func start(t *testing.T, name string, args ...string) string {
	t.Helper()
	address, _ := startProcess(t, name, args...)
	return address
}

// startProcess returns the id of the process, too.
func startProcess(t *testing.T, name string, args ...string) (address string, pid int) {
	t.Helper()
	cmd := exec.Command(name, append(args, "--web.listen-address="+port.Any)...)
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	must(t, cmd.Start())
	t.Cleanup(func() {
		must(t, cmd.Process.Kill())
		_ = cmd.Wait() // killed
		if t.Failed() {
			t.Logf("%s\n%s", name, log.String())
		}
	})
	return port.Of(t, cmd.Process.Pid), cmd.Process.Pid
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
