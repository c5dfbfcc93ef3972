package machines

import (
	"context"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/rulefiles"
	"rdma_exporter/internal/verdict"
)

// Play collects all rounds of a capture and returns the last picture.
func Play(t *testing.T, file string) *rounds.Picture {
	t.Helper()
	m, sched := Open(t, file)
	var p *rounds.Picture
	for _, at := range m.Player.Times() {
		if err := m.Seek(at); err != nil {
			t.Fatal(err)
		}
		var err error
		if p, err = sched.Collect(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// Open opens a capture with all collectors, as the commands do.
func Open(t testing.TB, file string) (*machine.Machine, *rounds.Scheduler) {
	t.Helper()
	return openIn(t, file, "fabric")
}

func openIn(t testing.TB, file, gpuMode string) (*machine.Machine, *rounds.Scheduler) {
	t.Helper()
	return OpenWith(t, &machine.Config{Replay: file, Timeout: 5 * time.Minute, GPUMode: gpuMode}) // of a busy machine
}

func OpenWith(t testing.TB, c *machine.Config) (*machine.Machine, *rounds.Scheduler) {
	t.Helper()
	m, err := c.Open(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	m.MeasureCPU(access.NewCPUWait(func() (access.CPUTimes, error) { // not that of the machine that runs the tests
		return access.CPUTimes{Threads: map[int]time.Duration{1: 0}}, nil
	}))
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	known, err := c.Remembered(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	unseen, err := builtinDetector()
	must(t, err)
	return m, rounds.New(context.WithoutCancel(t.Context()), rounds.Options{
		Coverage: func() *coverage.Detector { return unseen }, Host: m.Host,
		Collectors: collector.All(c.Options(m, expect.NewMemory(known))), Timeout: c.Timeout, Now: m.Now,
		Logger: slog.New(slog.DiscardHandler), Limits: c.Limits,
	})
}

// Builtin returns the built-in rules.
func Builtin(t testing.TB) *rulefiles.Files {
	t.Helper()
	files, err := rulefiles.Read(nil, "")
	must(t, err)
	return files
}

// builtinDetector is that of the built-in rules, made once: parsing them takes longer than a round.
var builtinDetector = sync.OnceValues(func() (*coverage.Detector, error) {
	files, err := rulefiles.Read(nil, "")
	if err != nil {
		return nil, err
	}
	return files.Detector()
})

// MetricsOf returns the metrics of a capture after its last round.
func MetricsOf(t *testing.T, file string) string {
	t.Helper()
	return varying.ReplaceAllString(string(exposition.AppendText(nil, Play(t, file).Families)), "")
}

// varying are samples of the run, not of the machine.
var varying = regexp.MustCompile(`(?m)^(rdma_scrape_collector_duration_seconds|rdma_scrape_source_seconds_total|rdma_scrape_device_seconds_total|rdma_exporter_build_info).*\n`)

// Firing returns the alerts that fire on a capture after its last round, and those above severity info in any round.
func Firing(t *testing.T, file string) (last []alerting.Alert, loud map[string]bool) {
	t.Helper()
	m, sched := Open(t, file)
	last, loud, _ = evaluated(t, m, sched, func(time.Time, *rounds.Picture) {})
	return last, loud
}

// settle is how long the last round of a machine is held: longer than any rule waits.
const settle = 20 * time.Minute

// settleStep returns the time between rounds then, so that the rules' ranges of 5m have two samples at least. What was
// recorded by the minute has ranges of a minute to fill.
func settleStep(times []time.Time) time.Duration {
	if n := len(times); n > 1 && times[n-1].Sub(times[n-2]) == time.Minute {
		return time.Minute
	}
	return 150 * time.Second
}

// evaluated plays a machine, goes on with its last round until every rule has had its time, and returns what fires
// then, and what was above information in any round.
func evaluated(
	t *testing.T, m *machine.Machine, sched *rounds.Scheduler, seen func(time.Time, *rounds.Picture),
) (last []alerting.Alert, loud map[string]bool, report check.Report) {
	t.Helper()
	j, err := verdict.New(m, sched, Builtin(t), slog.New(slog.DiscardHandler))
	must(t, err)
	defer func() { must(t, j.Close()) }()
	times := m.Player.Times()
	step, end := settleStep(times), m.Player.Last().Add(settle)
	for at := m.Player.Last().Add(step); !at.After(end); at = at.Add(step) {
		times = append(times, at)
	}
	loud = map[string]bool{}
	for _, at := range times {
		must(t, m.Seek(at))
		p, err := verdict.Round(t.Context(), sched, j.Engine, 0)
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		seen(at, p)
		last = slices.DeleteFunc(j.Engine.Alerts(), func(a alerting.Alert) bool { return a.State != alerting.StateFiring })
		for _, a := range last {
			if rank(a.Labels["severity"]) > rank("info") {
				loud[Describe(a)] = true
			}
		}
	}
	return last, loud, j.Report("", nil)
}

func rank(severity string) int {
	return slices.Index([]string{"", "none", "info", "warning", "critical"}, severity)
}

// Describe returns an alert as goldens have it: severity, name, and what it is about.
func Describe(a alerting.Alert) string {
	about := a.Labels["device"]
	if a.Labels["gpu"] != "" {
		about = "GPU " + a.Labels["gpu"]
	}
	for _, l := range []string{"port", "netdev"} {
		if a.Labels[l] != "" {
			about += "/" + a.Labels[l]
		}
	}
	return strings.TrimSpace(a.Labels["severity"] + " " + coverage.Named(a.Name, a.Labels["reason"]) + " " + about)
}

// SeriesOf returns the samples of the machine: samples about the exporter itself are left out, other than those on
// rules that it cannot evaluate.
func SeriesOf(families []exposition.Family) (lines []string) {
	families = slices.DeleteFunc(slices.Clone(families), func(f exposition.Family) bool {
		d := f.Head.Desc
		return d.Scope == exposition.ScopeExporter && d.Name != "rdma_detection_unavailable"
	})
	for line := range strings.Lines(string(exposition.AppendText(nil, families))) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

// OnlyIn returns the lines that other does not have.
func OnlyIn(lines, other []string) (out []string) {
	count := map[string]int{}
	for _, l := range other {
		count[l]++
	}
	for _, l := range lines {
		if count[l]--; count[l] < 0 {
			out = append(out, l)
		}
	}
	return out
}
