// Package expect determines the expected rate and width of links and the expected devices from evidence: the site
// configuration, the modes that both ends of a link support, similar links, and the past. It is pure; its memory is
// plain data.
package expect

import (
	"cmp"
	"slices"
)

// Source is the evidence for an expectation.
type Source string

// The sources, strongest first.
const (
	Pin       Source = "pin"
	LinkModes Source = "link_modes" // the fastest mode that both ends of an Ethernet link have advertised
	// LinkPartner is the fastest mode that both ends of an InfiniBand link have enabled.
	LinkPartner Source = "link_partner"
	Siblings    Source = "siblings"        // the majority of the other links of the kind
	HighWater   Source = "high_water_mark" // the highest rate of the link itself
)

// Link is the state of one link: of a port, or of a member of its bond.
type Link struct {
	ID     string   // key in the memory; empty: not remembered
	Active bool     // carries traffic now
	Rate   *float64 // data rate, bits per second
	Lanes  *uint64
	Kind   Kind
	Wire   string // identifies the physical link that several functions may share; empty: not shared
	// CommonRate and CommonLanes are those of the fastest mode that both ends have advertised. They are nil if
	// autonegotiation is off or the partner's modes are unknown, CommonLanes also if modes of that rate differ in
	// lanes.
	CommonRate  *float64
	CommonLanes *uint64
	// CommonSource is the source of both; empty: LinkModes.
	CommonSource Source
	// PinnedRate and PinnedLanes are from the site configuration.
	PinnedRate  *float64
	PinnedLanes *uint64
}

// Kind holds the properties that siblings have in common. Links without a board have no siblings.
type Kind struct {
	Board, LinkLayer string
	PortsPerCard     int
	Role             string
}

// Mark is the highest rate of a link, and its width at that time, 0 if unknown.
type Mark struct {
	Rate  float64 `json:"rate"`
	Lanes uint64  `json:"lanes,omitempty"`
}

// Expectation is the expected state of a link. An empty source means that there is none.
type Expectation struct {
	Rate        float64 // bits per second
	RateSource  Source
	Lanes       uint64
	LanesSource Source
}

// minSiblings is the minimum number of other links of the kind: two could both be exceptions.
const minSiblings = 3

// Of returns the expectation for each link. mark returns the high-water mark of a link by ID.
func Of(links []Link, mark func(id string) Mark) []Expectation {
	votes := tallyLinks(links)
	out := make([]Expectation, len(links))
	for i := range links {
		l := &links[i]
		e := &out[i]
		own := mark(l.ID)
		most := votes.findMajority(i, l)
		switch {
		case l.PinnedRate != nil:
			e.Rate, e.RateSource = *l.PinnedRate, Pin
		case l.CommonRate != nil:
			e.Rate, e.RateSource = *l.CommonRate, cmp.Or(l.CommonSource, LinkModes)
		// All links of a kind may be slow: they are weaker evidence than the past of the link.
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

// tally holds the rates and widths of the ACTIVE physical links of each kind, each counted once.
type tally map[Kind][]vote

type vote struct {
	link int    // link of the vote
	wire string // of the link; empty: not shared
	has  Mark
}

func tallyLinks(links []Link) tally {
	v := tally{}
	for i := range links {
		l := &links[i]
		if !l.Active || l.Rate == nil || l.Kind.Board == "" {
			continue
		}
		if l.Wire == "" || !slices.ContainsFunc(v[l.Kind], func(o vote) bool { return o.wire == l.Wire }) {
			v[l.Kind] = append(v[l.Kind], vote{i, l.Wire, l.currentMark()})
		}
	}
	return v
}

func (l *Link) currentMark() Mark {
	m := Mark{Rate: *l.Rate}
	if l.Lanes != nil {
		m.Lanes = *l.Lanes
	}
	return m
}

// findMajority returns the rate of more than half of the other physical links of a link's kind, and their width if a
// majority has the same. It is zero if there are too few links or no majority.
func (v tally) findMajority(i int, l *Link) (most Mark) {
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
