//go:build e2e

package dashboards

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/capture"
	"rdma_exporter/test/machine"
	"rdma_exporter/test/port"
)

const repository = "../.."

// step is the time between two rounds of the machines. They are recorded in minutes: an hour passes in seconds, at
// accordingly higher rates.
const step = 4 * time.Second

// settle is how long the first round of a machine stays, so that it is scraped: what has changed once before the first
// scrape is no increase.
const settle = 10 * time.Second

// fleet are the replayed machines, selected so that each panel has data.
var fleet = []struct{ fixture, cluster string }{
	{"hgx-h200-roce-storm", "east"},
	{"slow-receiver", "east"},
	{"lossless-discards", "east"},
	{"watchdog-fired", "east"},
	{"congested", "east"},
	{"dgx-h100-ib", ""},
	{"port-down", ""},
	{"downshift-all", ""},
	{"link-errors", ""},
	{"fec-uncorrectable", ""},
	{"pcie-errors", ""},
	{"retransmissions", ""},
	{"connections-lost", ""},
	{"ib-backpressure", ""},
	{"optics-zoo", ""},
	{"optics-ageing", ""},
	{"optics-fault", ""},
	{"ib-optics-hot", ""},
	{"optics-lane-dark", ""},
	{"gdr-ok-live", ""},
	{"no-peermem-no-dmabuf", ""},
	{"locked-memory-low", ""},
	{"idle-gpu-gen1-ok", ""},
	{"global-pause", ""},
	{"kernel-stuck", ""},
	{"odd-files", ""},
	{"transmit-discards", ""},
	{"gdr-staging-live", ""},
	{"l40s-ok", ""},
	{"gpus-apart-no-mechanism", ""},
}

// target is a Prometheus target.
type target struct{ address, instance, job, cluster string }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start runs a program until the test ends. Its log is shown if the test fails.
func start(t *testing.T, name string, args ...string) (pid int) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), filepath.Base(name)+".log"))
	must(t, err)
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = log, log
	must(t, cmd.Start())
	t.Cleanup(func() {
		must(t, cmd.Process.Kill())
		_ = cmd.Wait() // killed
		if b, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s %s\n%s", name, strings.Join(args, " "), b)
		}
	})
	return cmd.Process.Pid
}

// targetsOfFleet returns the addresses of the exporters before they start: Prometheus is there first.
func targetsOfFleet(t *testing.T) []target {
	t.Helper()
	var out []target
	for _, m := range fleet {
		out = append(out, target{port.Held(t), m.fixture, "rdma_exporter", m.cluster})
	}
	return out
}

// startFleet starts an exporter per machine.
func startFleet(t *testing.T, exporter string, targets []target) {
	t.Helper()
	for i, m := range fleet {
		a, err := machine.Load(recorded(m.fixture))
		must(t, err)
		quicker(a)
		dir := t.TempDir()
		archive := filepath.Join(dir, m.fixture+".txtar")
		must(t, machine.Write(a, archive))
		port.Of(t, start(t, exporter, "serve", "--replay="+archive, "--state.dir="+filepath.Join(dir, "state"),
			"--collector.gpu.mode=full", "--no-alerting", "--web.listen-address="+targets[i].address))
	}
}

func recorded(name string) string { return filepath.Join(repository, "fixtures/sysfs", name+".txtar") }

// quicker sets the interval of a capture's rounds to step, after the first.
func quicker(a *capture.Archive) {
	for i := range a.Rounds[1:] {
		a.Rounds[1+i].At = settle + time.Duration(i)*step
	}
}

// startPrometheus starts a server that scrapes the targets and evaluates the rules.
func startPrometheus(t *testing.T, binary string, targets []target) string {
	t.Helper()
	rules, err := filepath.Abs(filepath.Join(repository, "rules"))
	must(t, err)
	var c strings.Builder
	fmt.Fprintf(&c, "global: {scrape_interval: 2s, evaluation_interval: 5s}\nrule_files: [%q, %q]\nscrape_configs:\n",
		rules+"/node/*.yml", rules+"/central/*.yml")
	for _, job := range []string{"rdma_exporter", "dcgm"} {
		fmt.Fprintf(&c, "- job_name: %s\n  static_configs:\n", job)
		for _, x := range targets {
			if x.job == job {
				labels := "instance: " + x.instance
				if x.cluster != "" {
					labels += ", cluster: " + x.cluster
				}
				fmt.Fprintf(&c, "  - {targets: [%q], labels: {%s}}\n", x.address, labels)
			}
		}
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(c.String()), 0o600))
	return "http://" + port.Of(t, start(t, binary, "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--log.level=warn", "--web.listen-address="+port.Any))
}

// serveText serves metrics as text.
func serveText(t *testing.T, text func() string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s := &http.Server{
		ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(text())) // the scraper has disconnected
		}),
	}
	go func() { _ = s.Serve(l) }() // closed below
	t.Cleanup(func() { must(t, s.Close()) })
	return l.Addr().String()
}
