package fabricpage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"rdma_exporter/internal/page"
	"rdma_exporter/internal/words"
)

// bundle holds the links between two switches.
type bundle struct {
	a, b     *Switch
	links, n int // n: with the worst problem
	problem  string
	health   page.Health // the worst
}

// groupLinks returns the bundles of links between switches, those with the worst problems first.
func (f *Fabric) groupLinks() []bundle {
	at := map[string]*Switch{}
	for i := range f.Switches {
		at[f.Switches[i].GUID] = &f.Switches[i]
	}
	index := map[[2]*Switch]int{}
	var out []bundle
	for i := range f.Links {
		l := &f.Links[i]
		a, b := at[l.Ends[0].GUID], at[l.Ends[1].GUID]
		if a == nil || b == nil {
			continue
		}
		key := [2]*Switch{a, b}
		if a.GUID > b.GUID {
			key = [2]*Switch{b, a}
		}
		n, ok := index[key]
		if !ok {
			n = len(out)
			index[key] = n
			out = append(out, bundle{a: key[0], b: key[1], health: page.OK})
		}
		out[n].add(l)
	}
	slices.SortStableFunc(out, func(a, b bundle) int {
		return cmp.Or(cmp.Compare(problemRank(a.problem), problemRank(b.problem)), cmp.Compare(b.n, a.n))
	})
	return out
}

// add adds a link.
func (b *bundle) add(l *Link) {
	b.links++
	b.health = page.Worst(b.health, l.Health)
	switch {
	case l.Problem == "":
	case l.Problem == b.problem:
		b.n++
	case problemRank(l.Problem) < problemRank(b.problem):
		b.problem, b.n = l.Problem, 1
	}
}

// sumPairs sums up links by the tiers of their ends; hosts are tier 0.
func (f *Fabric) sumPairs() []mapPair {
	tier := map[string]int{}
	for i := range f.Switches {
		tier[f.Switches[i].GUID] = f.Switches[i].Tier
	}
	type sum struct {
		links    int
		problems map[string]int
		busiest  *float64
		health   page.Health
	}
	sums := map[[2]int]*sum{}
	for i := range f.Links {
		l := &f.Links[i]
		key := [2]int{tier[l.Ends[0].GUID], tier[l.Ends[1].GUID]}
		if key[0] > key[1] {
			key[0], key[1] = key[1], key[0]
		}
		s := sums[key]
		if s == nil {
			s = &sum{problems: map[string]int{}, health: page.OK}
			sums[key] = s
		}
		s.links++
		s.problems[l.Problem]++
		s.health = page.Worst(s.health, l.Health)
		for j := range l.Ends {
			if u := l.Ends[j].Utilisation; u != nil && (s.busiest == nil || *u > *s.busiest) {
				s.busiest = u
			}
		}
	}
	var out []mapPair
	for _, k := range slices.SortedFunc(maps.Keys(sums), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
		s := sums[k]
		p := mapPair{
			Health: s.health, Text: fmt.Sprintf("%s to %s: %s", sideName(k[0]), sideName(k[1]), words.Count(s.links, "link")),
		}
		for _, x := range problems {
			if n := s.problems[x.name]; n > 0 {
				p.Text += fmt.Sprintf(", %d %s", n, x.brief)
			}
		}
		if s.busiest != nil {
			p.Text += ", utilisation up to " + page.FormatPercent(*s.busiest)
		}
		out = append(out, p)
	}
	return out
}

// sideName returns the name of a tier; hosts are tier 0.
func sideName(tier int) string {
	if tier == 0 {
		return "host"
	}
	return tierName(tier)
}
