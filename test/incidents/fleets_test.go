package incidents

import (
	"flag"
	"math/rand/v2"
	"regexp"
	"testing"
	"time"
)

var (
	every    = flag.Bool("every", false, "play all fleets of make fleet")
	fleetFlag = flag.String("fleet", "", "fleets, a regular expression")
	onlyFlag = flag.String("class", "", "classes of faults, a regular expression")
)

var generated = []struct {
	name  string
	spec  spec
	each  int // faults of each class
	apart time.Duration
}{
	{"InfiniBand rails", spec{cluster: "a", hosts: 16, ports: []int{4, 2}, layer: infiniBand, fabric: true, gpus: true, machines: []string{"dgx-h100-ib"}}, 1, 6 * time.Minute},
	{"RoCE rails", spec{cluster: "a", hosts: 16, ports: []int{4, 2}, layer: ethernet, pfc: true, gpus: true, machines: []string{"hgx-h200-roce"}}, 1, 6 * time.Minute},
}

func TestFleets(t *testing.T) {
	only := regexp.MustCompile(*onlyFlag)
	for _, g := range generated {
		if !regexp.MustCompile(*fleetFlag).MatchString(g.name) {
			continue
		}
		readRecordings(t, g.spec)
		f := newFleet(g.spec)
		all, end := generate(f, rand.New(rand.NewPCG(48, 3)), g.each, g.apart, only)
		start := time.Now()
		fired := run1(t, f, schedule(all), end, time.Minute, time.Minute)
		t.Logf("%s: %d faults, %v in %v", g.name, len(all), end, time.Since(start).Round(time.Second))
		s := tallies{}
		s.add(g.name, all, fired)
		t.Logf("\n%s%s", s.table(), s.details())
	}
}
