//go:build !race

package machines

import (
	"flag"
	"slices"
	"testing"
	"time"

	"rdma_exporter/internal/capture/anonymise"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rounds"
)

var anonymiseEvery = flag.Bool("anonymise-every", false, "compare the findings of each anonymised machine")

// anonymisedSample is which machines are compared without the flag: one in this many.
const anonymisedSample = 48

// TestFindingsOfAnonymisedMachines: an anonymised capture raises the same alerts as the original.
func TestFindingsOfAnonymisedMachines(t *testing.T) {
	for i, name := range Names(t) {
		if i%anonymisedSample != 5 && !*anonymiseEvery {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := played(t, name)
			c := &machine.Config{Replay: Fixture(name), GPUMode: gpuModeOf(name)}
			OpenWith(t, c)
			a := Load(t, name)
			if err := c.Site.Record(a, true); err != nil {
				t.Fatal(err)
			}
			anonymise.Archive(a, c.Site.Store.Current().Systems()...)
			m, sched := openIn(t, Written(t, a), gpuModeOf(name))
			firing, _, _ := evaluated(t, m, sched, func(time.Time, *rounds.Picture) {})
			var got []string
			for _, alert := range firing {
				if alert.Name != "RDMAWatchdog" {
					got = append(got, Describe(alert))
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want.findings) {
				t.Errorf("the anonymised capture also raises %q, and lacks %q",
					OnlyIn(got, want.findings), OnlyIn(want.findings, got))
			}
		})
	}
}
