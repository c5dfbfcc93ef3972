package app

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/rounds"
	testmachine "rdma_exporter/test/machine"
)

const fixtureDir = "../../fixtures/sysfs"

// machines lists all recorded machines by name.
func machines(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(fixtureDir + "/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".txtar"))
	}
	return names
}

// eachMachine runs a test for each recorded machine under its name: -run 'TestName/port-down' is for one.
func eachMachine(t *testing.T, test func(t *testing.T, name string)) {
	for _, name := range machines(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, name)
		})
	}
}

func fixture(name string) string { return filepath.Join(fixtureDir, name+".txtar") }

// load is a recorded machine, for a test that changes it.
func load(t testing.TB, name string) *capture.Archive {
	t.Helper()
	a, err := testmachine.Load(fixture(name))
	must(t, err)
	return a
}

// archive is the file of a machine as it is: of a variant what differs.
func archive(t *testing.T, name string) *capture.Archive {
	t.Helper()
	text, err := os.ReadFile(fixture(name))
	must(t, err)
	a, err := capture.Parse(text)
	must(t, err)
	return a
}

func isVariant(t *testing.T, name string) bool { return archive(t, name).IsVariant() }

// written is the file of a machine that a test has changed.
func written(t testing.TB, a *capture.Archive) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "changed.txtar")
	must(t, testmachine.Write(a, file))
	return file
}

// recording is what a recorded machine shows when it is played.
type recording struct {
	text     string              // what is served in its last round
	families []exposition.Family // of it
	series   []string            // of it, what tells of the machine
	count    map[string]int      // of it, series by family
	findings []string            // what fires when its last round has lasted longer than any rule waits
	earlier  []string            // what fired above severity info before, and does so no more
	report   check.Report        // of the findings
}

// inFullMode is the machine of which all figures of GPUs are served.
const inFullMode = "idle-gpu-gen1-ok"

func gpuModeOf(name string) string {
	if name == inFullMode {
		return gpuFull
	}
	return gpuFabric
}

// recordings are the machines that were played, by name. Tests share them, since playing one takes seconds.
var recordings sync.Map

func played(t *testing.T, name string) recording {
	t.Helper()
	r := shared(&recordings, name, func() recording { return record(t, name) })
	if r.text == "" {
		t.Fatalf("%s could not be played: see the test that played it first", name)
	}
	return r
}

// playedOnce is a value that the first test to ask for it makes. Where that test ends early it stays zero.
type playedOnce[T any] struct {
	sync.Once
	value T
}

// shared is the value of a key that all tests share.
func shared[T any](all *sync.Map, key string, value func() T) T {
	x, _ := all.LoadOrStore(key, &playedOnce[T]{})
	o := x.(*playedOnce[T])
	o.Do(func() { o.value = value() })
	return o.value
}

func record(t *testing.T, name string) (r recording) {
	m, sched := openIn(t, fixture(name), gpuModeOf(name))
	last := m.player.Last()
	firing, loud, report := evaluated(t, m, sched, func(at time.Time, p *rounds.Picture) {
		if at.Equal(last) {
			r.text, r.families = string(exposition.AppendText(nil, p.Families)), p.Families
			r.series, r.count = seriesOf(p.Families), map[string]int{}
			for _, f := range p.Families {
				for _, point := range f.Points {
					r.count[f.Head.Desc.Name] += point.Samples()
				}
			}
		}
	})
	for _, a := range firing {
		if a.Name == "RDMAWatchdog" {
			continue
		}
		r.findings = append(r.findings, describe(a))
		delete(loud, describe(a))
	}
	slices.Sort(r.findings)
	r.earlier, r.report = slices.Sorted(maps.Keys(loud)), report
	return r
}

// settle is how long the last round of a machine is held: longer than any rule waits.
const settle = 20 * time.Minute

// settleStep is the time between rounds then, so that the rules' ranges of 5m have two samples at least. What was recorded by the minute has
// ranges of a minute to fill.
func settleStep(times []time.Time) time.Duration {
	if n := len(times); n > 1 && times[n-1].Sub(times[n-2]) == time.Minute {
		return time.Minute
	}
	return 2 * time.Minute
}

// evaluated plays a machine, goes on with its last round until every rule has had its time, and returns what fires then, and what was above
// information in any round.
func evaluated(t *testing.T, m *machine, sched *rounds.Scheduler, seen func(time.Time, *rounds.Picture)) (last []alerting.Alert, loud map[string]bool, report check.Report) {
	t.Helper()
	j, err := newEvaluator(m, sched, slog.New(slog.DiscardHandler))
	must(t, err)
	defer func() { must(t, j.close()) }()
	times := m.player.Times()
	step, end := settleStep(times), m.player.Last().Add(settle)
	for at := m.player.Last().Add(step); !at.After(end); at = at.Add(step) {
		times = append(times, at)
	}
	loud = map[string]bool{}
	for _, at := range times {
		must(t, m.seek(at))
		p, err := evaluateRound(t.Context(), j.rounds, j.engine, 0)
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		seen(at, p)
		last = slices.DeleteFunc(j.engine.Alerts(), func(a alerting.Alert) bool { return a.State != alerting.StateFiring })
		for _, a := range last {
			if rank(a.Labels["severity"]) > rank("info") {
				loud[describe(a)] = true
			}
		}
	}
	return last, loud, j.report("", nil)
}

func rank(severity string) int {
	return slices.Index([]string{"", "none", "info", "warning", "critical"}, severity)
}

// describe is an alert as goldens have it: severity, name, and what it is about.
func describe(a alerting.Alert) string {
	about := a.Labels["device"]
	if a.Labels["gpu"] != "" {
		about = "GPU " + a.Labels["gpu"]
	}
	for _, l := range []string{"port", "netdev"} {
		if a.Labels[l] != "" {
			about += "/" + a.Labels[l]
		}
	}
	return strings.TrimSpace(a.Labels["severity"] + " " + a.Name + " " + about)
}

// seriesOf are the samples of the machine: those of the exporter itself are left out, but for the rules that it cannot evaluate.
func seriesOf(families []exposition.Family) (lines []string) {
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

// bases are what the bases of variants serve in the last round of a variant, by base and rounds: many variants share them.
var bases sync.Map

// baseSeries is what the base of a variant serves in the variant's last round; the base is played at the variant's rounds.
func baseSeries(t *testing.T, name string, variant *capture.Archive) []string {
	t.Helper()
	key := fmt.Sprint(variant.Meta.Base, variant.Meta.Rounds)
	series := shared(&bases, key, func() []string {
		empty := &capture.Archive{Meta: variant.Meta}
		for _, r := range variant.Rounds {
			empty.Rounds = append(empty.Rounds, capture.Round{At: r.At})
		}
		whole, err := empty.On(load(t, variant.Meta.Base))
		must(t, err)
		return seriesOf(play(t, written(t, whole)).Families)
	})
	if series == nil {
		t.Fatalf("the base of %s could not be played: see the test that played it first", name)
	}
	return series
}

// onlyIn are the lines that other does not have.
func onlyIn(lines, other []string) (out []string) {
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
