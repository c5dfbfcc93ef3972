//go:build !race

package machines

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/rounds"
)

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
		return "full"
	}
	return "fabric"
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

// shared returns the value of a key that all tests share.
func shared[T any](all *sync.Map, key string, value func() T) T {
	x, _ := all.LoadOrStore(key, &playedOnce[T]{})
	o := x.(*playedOnce[T])
	o.Do(func() { o.value = value() })
	return o.value
}

func record(t *testing.T, name string) (r recording) {
	m, sched := openIn(t, Fixture(name), gpuModeOf(name))
	last := m.Player.Last()
	firing, loud, report := evaluated(t, m, sched, func(at time.Time, p *rounds.Picture) {
		if at.Equal(last) {
			r.text, r.families = string(exposition.AppendText(nil, p.Families)), p.Families
			r.series, r.count = SeriesOf(p.Families), map[string]int{}
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
		r.findings = append(r.findings, Describe(a))
		delete(loud, Describe(a))
	}
	slices.Sort(r.findings)
	r.earlier, r.report = slices.Sorted(maps.Keys(loud)), report
	return r
}

// bases are what the bases of variants serve in the last round of a variant, by base and rounds: many variants share
// them.
var bases sync.Map

// baseSeries returns the series of a variant's base in the variant's last round. The base is played at the variant's
// rounds.
func baseSeries(t *testing.T, name string, variant *capture.Archive) []string {
	t.Helper()
	key := fmt.Sprint(variant.Meta.Base, variant.Meta.Rounds)
	series := shared(&bases, key, func() []string {
		// Of the variant it has the rounds alone: other variants share it.
		empty := &capture.Archive{Meta: capture.Meta{
			Version: variant.Meta.Version, Base: variant.Meta.Base, Rounds: variant.Meta.Rounds,
		}}
		for _, r := range variant.Rounds {
			empty.Rounds = append(empty.Rounds, capture.Round{At: r.At})
		}
		whole, err := empty.On(Load(t, variant.Meta.Base))
		must(t, err)
		return SeriesOf(Play(t, Written(t, whole)).Families)
	})
	if series == nil {
		t.Fatalf("the base of %s could not be played: see the test that played it first", name)
	}
	return series
}
