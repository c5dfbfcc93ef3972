//go:build e2e

package rollup

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/internal/exposition"
	"rdma_exporter/test/machines"
	"rdma_exporter/test/port"
	"rdma_exporter/test/program"
)

const (
	hosts = 24               // in two leaves
	rate  = 10 * time.Second // of scrapes and evaluations
	// patience is how long the alerts of the fleet may take until they are the same.
	patience = 7 * time.Minute
)

// simulated is a fleet that serves /N/metrics of host N: those of a recorded machine, and what is wrong with the host.
type simulated struct {
	text   string
	broken atomic.Bool
}

func newFleet(t *testing.T) *simulated {
	t.Helper()
	text := string(exposition.AppendText(nil, machines.Play(t, machines.Fixture("dgx-h100-ib")).Families))
	text = regexp.MustCompile(`(?m)^(#|rdma_exporter_replay_info).*\n`).ReplaceAllString(text, "")
	for rail := range 8 {
		place := fmt.Sprintf(`port="1",rail="%d"`, rail)
		text = strings.ReplaceAll(text, place, fmt.Sprintf(`leaf="leaf%02d",%s`, rail, place))
	}
	compute := regexp.MustCompile(`(?m)^rdma_port_info\{device="(\w+)",link_layer="InfiniBand"`)
	for _, m := range compute.FindAllStringSubmatch(text, -1) {
		text += fmt.Sprintf("rdma_port_job_info{device=%q,port=\"1\",scheduler=\"slurm\",job_id=\"7\"} 1\n", m[1])
		text += fmt.Sprintf("rdma_port_jobs{device=%q,port=\"1\"} 1\n", m[1])
	}
	return &simulated{text: text}
}

// of returns the metrics of a host; empty while it is gone.
func (f *simulated) of(host int) string {
	if !f.broken.Load() {
		return f.text
	}
	down := func(device string) string {
		state := fmt.Sprintf("rdma_port_state_id{device=%q,port=\"1\"} ", device)
		physical := fmt.Sprintf("rdma_port_physical_state_id{device=%q,port=\"1\"} ", device)
		return strings.NewReplacer(state+"4", state+"1", physical+"5", physical+"3").Replace(f.text)
	}
	switch host {
	case 3: // in one leaf
		return down("mlx5_0")
	case 10, 11, 14: // a switch whose hosts are in both
		return down("mlx5_3")
	case 5: // firmware
		return strings.ReplaceAll(f.text, "28.43.2566", "28.40.1000")
	case 7: // all links slower than those of the fleet
		return strings.ReplaceAll(f.text, "} 5e+10", "} 2.5e+10")
	case 20:
		return ""
	}
	return f.text
}

func (f *simulated) serve(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{host}/metrics", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.PathValue("host"))
		text := f.of(n)
		if err != nil || text == "" {
			http.Error(w, "gone", http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, text) // the scraper has disconnected
	})
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: mux}
	go func() { _ = s.Serve(l) }() // closed below
	t.Cleanup(func() { must(t, s.Close()) })
	return l.Addr().String()
}

// printed returns what the exporter under test prints.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(program.Exporter(t), args...).Output()
	must(t, err)
	return string(out)
}

var (
	waits  = regexp.MustCompile(`(?m)^( +for: )[2-9]m$`)
	before = regexp.MustCompile(`(instance:rdma_exporter:up offset )\w+`) // how long a host was up before a fault
)

// ruleFiles writes rule sets, whose alerts wait for a minute at most, into a folder.
func ruleFiles(t *testing.T, sets ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, set := range sets {
		text := waits.ReplaceAllString(printed(t, "rules", "--set="+set), "${1}1m")
		text = before.ReplaceAllString(text, "${1}20s")
		must(t, os.WriteFile(filepath.Join(dir, set+".yml"), []byte(text), 0o600))
	}
	return filepath.Join(dir, "*.yml")
}

// server is what evaluates rules: a Prometheus, or a ruler of Thanos.
type server struct {
	address string // of its alerts
	queries string // of queries
	write   string // URL for remote_write
	cmd     *exec.Cmd
}

// start starts a Prometheus. Its targets are the hosts from, to.
func start(t *testing.T, fleet, rules, remote, external string, from, to int, flags ...string) server {
	t.Helper()
	dir := t.TempDir()
	var c strings.Builder
	fmt.Fprintf(&c, "global: {scrape_interval: %v, evaluation_interval: %v, external_labels: {%s}}\n", rate, rate, external)
	fmt.Fprintf(&c, "rule_files: [%q]\n%s", rules, remote)
	c.WriteString("scrape_configs:\n- job_name: rdma_exporter\n  static_configs:\n")
	for n := from; n < to; n++ {
		fmt.Fprintf(&c, "  - {targets: [%q], labels: {instance: \"gpu-%02d:10879\", cluster: c, __metrics_path__: /%d/metrics}}\n", fleet, n, n)
	}
	if from == to {
		c.WriteString("  - targets: []\n")
	}
	config := filepath.Join(dir, "prometheus.yml")
	must(t, os.WriteFile(config, []byte(c.String()), 0o600))
	cmd := run(t, program.Installed(t, "prometheus", "test/alerting/packages.sh"),
		append(flags, "--config.file="+config, "--storage.tsdb.path="+dir, "--log.level=warn",
			"--web.listen-address="+port.Any)...)
	at := port.Of(t, cmd.Process.Pid)
	return server{at, at, "http://" + at + "/api/v1/write", cmd}
}

// run starts a program, until the end of the test. Its log is that of a test that fails.
func run(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	log, err := os.CreateTemp(t.TempDir(), "log")
	must(t, err)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // may have been stopped
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%v: %s", args, text)
		}
	})
	return cmd
}

// value returns the value of an expression of one series.
func (s server) value(ctx context.Context, expr string) (string, error) {
	var a struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	err := get(ctx, "http://"+s.queries+"/api/v1/query?query="+url.QueryEscape(expr), &a)
	if err == nil && len(a.Data.Result) != 1 {
		err = fmt.Errorf("%s: %d series", expr, len(a.Data.Result))
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprint(a.Data.Result[0].Value[1]), nil
}

// get decodes an answer of a server.
func get(ctx context.Context, address string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	return json.NewDecoder(resp.Body).Decode(answer)
}

// alerts returns the alerts of a server by their labels: state and texts.
func (s server) alerts(ctx context.Context) (map[string]string, error) {
	var a struct {
		Data struct {
			Alerts []struct {
				Labels, Annotations map[string]string
				State               string
			}
		}
	}
	if err := get(ctx, "http://"+s.address+"/api/v1/alerts", &a); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, x := range a.Data.Alerts {
		out[fmt.Sprint(x.Labels)] = fmt.Sprint(x.State, " ", x.Annotations)
	}
	return out, nil
}

// union returns the alerts of several servers, as an Alertmanager has them.
func union(ctx context.Context, servers ...server) (map[string]string, error) {
	all := map[string]string{}
	for _, s := range servers {
		a, err := s.alerts(ctx)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, a)
	}
	return all, nil
}

// wanted are the alerts of the faults, by name and place, with their states.
var wanted = []string{
	`firing RDMAPortDown gpu-03 mlx5_0/1`, `firing RDMAPortDown switch leaf01`, `firing RDMAExporterDown gpu-20`,
	`firing RDMALinkDegraded gpu-07`, `pending RDMAFleetDrift gpu-05`, `firing RDMAJobSlow job 7`,
}

// TestRollup: two leaves of two replicas and a pair that they write to have the alerts of one Prometheus that scrapes
// all hosts: names, labels, states and texts. A replica of a leaf stops before the faults begin.
func TestRollup(t *testing.T) {
	prove(t, func(rules string) (globals []server) {
		for _, replica := range []string{"a", "b"} {
			globals = append(globals,
				start(t, "", rules, "", "replica: "+replica, 0, 0, "--web.enable-remote-write-receiver"))
		}
		return globals
	})
}

// prove compares global servers and leaves with one server. global starts the former.
func prove(t *testing.T, global func(rules string) []server) {
	t.Helper()
	f := newFleet(t)
	name := f.serve(t)
	globals, leafRules := global(ruleFiles(t, "global")), ruleFiles(t, "leaf")
	_, list, _ := strings.Cut(printed(t, "rules", "--remote-write-list"), "remote_write:\n")
	remote := "remote_write:\n"
	for _, g := range globals {
		remote += regexp.MustCompile(`http://\S+`).ReplaceAllString(list, g.write)
	}
	var leaves [2][]server
	for i := range leaves {
		for _, replica := range []string{"a", "b"} {
			external := fmt.Sprintf("prometheus: leaf-%d, replica: %s", i, replica)
			leaves[i] = append(leaves[i], start(t, name, leafRules, remote, external, i*hosts/2, (i+1)*hosts/2))
		}
	}
	flat := start(t, name, ruleFiles(t, "node", "central"), "", "replica: a", 0, hosts)

	// alike returns how the alerts of the globals with those of the leaves differ from those of the one server.
	alike := func(more func(alerts map[string]string) error) func() error {
		return func() error {
			want, err := union(t.Context(), flat)
			if err == nil {
				err = more(want)
			}
			for i := range globals {
				got, failed := union(t.Context(), globals[i], leaves[0][i], leaves[1][0])
				err = cmp.Or(err, failed, differ(want, got))
			}
			return err
		}
	}
	await(t, "one alert for each host: RDMAWatchdog", alike(func(alerts map[string]string) error {
		if len(alerts) < hosts {
			return fmt.Errorf("%d alerts", len(alerts))
		}
		return nil
	}))
	await(t, "counts of the leaves added, those of replicas not", func() error {
		for _, x := range append([]server{flat}, globals...) {
			n, err := x.value(t.Context(), `sum(rdma:ports{element="rail"})`)
			if err != nil || n != strconv.Itoa(8*hosts) {
				return fmt.Errorf("%s: %s ports on rails, want 8 of each of %d hosts: %w", x.address, n, hosts, err)
			}
		}
		return nil
	})
	must(t, leaves[1][1].cmd.Process.Kill())
	f.broken.Store(true)
	await(t, "the alerts of the faults", alike(func(alerts map[string]string) error {
		for _, w := range wanted {
			state, rest, _ := strings.Cut(w, " ")
			alert, where, _ := strings.Cut(rest, " ")
			if !slices.ContainsFunc(slices.Collect(maps.Keys(alerts)), func(l string) bool {
				return strings.HasPrefix(alerts[l], state) &&
					strings.Contains(l, "alertname:"+alert+" ") && strings.Contains(l, "where:"+where)
			}) {
				return fmt.Errorf("no %s in %d alerts", w, len(alerts))
			}
		}
		return nil
	}))
	alerts, err := union(t.Context(), flat)
	must(t, err)
	for l, state := range alerts {
		if !strings.Contains(l, "RDMAWatchdog") {
			t.Log(l, state)
		}
	}
}

// differ returns the first alert that differs.
func differ(want, got map[string]string) error {
	for l, x := range want {
		if got[l] != x {
			return fmt.Errorf("%s\n one server: %s\n leaves and global: %s", l, x, got[l])
		}
	}
	for l, x := range got {
		if want[l] == "" {
			return fmt.Errorf("%s\n leaves and global alone: %s", l, x)
		}
	}
	return nil
}

func await(t *testing.T, what string, done func() error) {
	t.Helper()
	began := time.Now()
	for {
		err := done()
		if err == nil {
			t.Logf("%s after %v", what, time.Since(began).Round(time.Second))
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(rate)
	}
}
