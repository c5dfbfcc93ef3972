// Package expect says what rate and width a link ought to have and which devices ought to be there, from evidence: what the operator
// pinned, what both ends of the link can do, what its like do, what it did before. It is pure; what it remembers is plain data.
package expect

import (
	"cmp"
	"slices"
)

// Source is where an expectation comes from.
type Source string

// The sources, the strongest first.
const (
	Pin       Source = "pin"
	LinkModes Source = "link_modes" // the fastest mode that both ends of an Ethernet link offer
	// LinkPartner is what both ends of an InfiniBand link have enabled.
	LinkPartner Source = "link_partner"
	Siblings    Source = "siblings"        // the majority of the other links of the kind
	HighWater   Source = "high_water_mark" // the link's own best
)

// Link is what is known of one link: that of a port, or of a member of its bond.
type Link struct {
	ID     string   // by which it is remembered; empty for one that is not
	Active bool     // it carries traffic now
	Rate   *float64 // bits per second of data
	Lanes  *uint64
	Kind   Kind
	Wire   string // names the wire, which several functions may show; empty: it has one of its own
	// CommonRate and CommonLanes are of the fastest mode that this end and the link partner have advertised; nil where
	// autonegotiation is off or the partner's modes are not known, the lanes also where modes of that rate differ in them.
	CommonRate  *float64
	CommonLanes *uint64
	// CommonSource is where they come from; empty: LinkModes.
	CommonSource Source
	// PinnedRate and PinnedLanes are the operator's.
	PinnedRate  *float64
	PinnedLanes *uint64
}

// Kind is what siblings have in common. Links without a board are nobody's siblings.
type Kind struct {
	Board, LinkLayer string
	PortsPerCard     int
	Role             string
}

// Mark is the highest rate that a link has had, and its width then, 0 where that was not told.
type Mark struct {
	Rate  float64 `json:"rate"`
	Lanes uint64  `json:"lanes,omitempty"`
}

// Expectation is what a link ought to have. An empty source means that nothing says so.
type Expectation struct {
	Rate        float64 // bits per second
	RateSource  Source
	Lanes       uint64
	LanesSource Source
}

// minSiblings is how many other links of the kind it takes: two may both be the odd ones.
const minSiblings = 3

// Of says what each link ought to have. mark returns the high-water mark of a link by its ID.
func Of(links []Link, mark func(id string) Mark) []Expectation {
	votes := count(links)
	out := make([]Expectation, len(links))
	for i := range links {
		l := &links[i]
		e := &out[i]
		own := mark(l.ID)
		most := votes.without(i, l)
		switch {
		case l.PinnedRate != nil:
			e.Rate, e.RateSource = *l.PinnedRate, Pin
		case l.CommonRate != nil:
			e.Rate, e.RateSource = *l.CommonRate, cmp.Or(l.CommonSource, LinkModes)
		// All links of a kind may be slow at once: they say less than what the link itself has done.
		case most.Rate > 0 && most.Rate >= own.Rate:
			e.Rate, e.RateSource = most.Rate, Siblings
		case own.Rate > 0:
			e.Rate, e.RateSource = own.Rate, HighWater
		}
		switch {
		case l.PinnedLanes != nil:
			e.Lanes, e.LanesSource = *l.PinnedLanes, Pin
		case e.RateSource == LinkModes, e.RateSource == LinkPartner:
			if l.CommonLanes != nil {
				e.Lanes, e.LanesSource = *l.CommonLanes, e.RateSource
			}
		case e.RateSource != HighWater && most.Lanes > 0:
			e.Lanes, e.LanesSource = most.Lanes, Siblings
		case own.Lanes > 0:
			e.Lanes, e.LanesSource = own.Lanes, HighWater
		}
	}
	return out
}

// votes are what the ACTIVE wires of each kind have, each wire once.
type votes map[Kind][]vote

type vote struct {
	link int    // that gave it
	wire string // of the link; empty: its own
	has  Mark
}

func count(links []Link) votes {
	v := votes{}
	for i := range links {
		l := &links[i]
		if !l.Active || l.Rate == nil || l.Kind.Board == "" {
			continue
		}
		if l.Wire == "" || !slices.ContainsFunc(v[l.Kind], func(o vote) bool { return o.wire == l.Wire }) {
			v[l.Kind] = append(v[l.Kind], vote{i, l.Wire, l.now()})
		}
	}
	return v
}

func (l *Link) now() Mark {
	m := Mark{Rate: *l.Rate}
	if l.Lanes != nil {
		m.Lanes = *l.Lanes
	}
	return m
}

// without returns what more than half of the other wires of a link's kind have: the rate, and the width if those of that rate agree by
// majority. Zero where there are too few or they do not agree.
func (v votes) without(i int, l *Link) (most Mark) {
	others, byRate, byMark := 0, map[float64]int{}, map[Mark]int{}
	for _, o := range v[l.Kind] {
		if o.link == i || o.wire != "" && o.wire == l.Wire {
			continue
		}
		others++
		byRate[o.has.Rate]++
		byMark[o.has]++
	}
	if others < minSiblings {
		return Mark{}
	}
	for rate, n := range byRate {
		if 2*n > others {
			most.Rate = rate
		}
	}
	for m, n := range byMark {
		if m.Rate == most.Rate && 2*n > byRate[most.Rate] {
			most.Lanes = m.Lanes
		}
	}
	return most
}
