package expect

import "testing"

func num[T any](v T) *T { return &v }

const gb = 1e9

// usualLink returns an ACTIVE link of the usual kind.
func usualLink(rate float64, lanes uint64) Link {
	return Link{
		ID: "x", Active: true, Rate: num(rate * gb), Lanes: &lanes, Kind: Kind{"board", "InfiniBand", 1, "compute"},
	}
}

func with(l Link, change func(*Link)) Link {
	change(&l)
	return l
}

func times(n int, l Link) (out []Link) {
	for range n {
		out = append(out, l)
	}
	return out
}

func TestOf(t *testing.T) {
	none := func(string) Mark { return Mark{} }
	marked := func(rate float64, lanes uint64) func(string) Mark {
		return func(string) Mark { return Mark{rate * gb, lanes} }
	}
	common := func(rate float64, lanes uint64) func(*Link) {
		return func(l *Link) {
			l.CommonRate = num(rate * gb)
			if lanes > 0 {
				l.CommonLanes = &lanes
			}
		}
	}
	ndr, slow := usualLink(400, 4), usualLink(200, 4)
	for _, c := range []struct {
		name  string
		first Link // the link under test
		rest  []Link
		mark  func(string) Mark
		want  Expectation
	}{
		{"alone, never seen", ndr, nil, none, Expectation{}},
		{"alone, at its mark", ndr, nil, marked(400, 4), Expectation{400 * gb, HighWater, 4, HighWater}},
		{"alone, below its mark", slow, nil, marked(400, 4), Expectation{400 * gb, HighWater, 4, HighWater}},
		{"one of eight is slow", slow, times(7, ndr), none, Expectation{400 * gb, Siblings, 4, Siblings}},
		{"the others of that eight", ndr, append(times(6, ndr), slow), none, Expectation{400 * gb, Siblings, 4, Siblings}},
		{"two siblings are too few", slow, times(2, ndr), none, Expectation{}},
		{"half of the siblings is no majority", slow, append(times(2, ndr), times(2, slow)...), none, Expectation{}},
		{"it lost lanes", usualLink(100, 1), times(3, ndr), none, Expectation{400 * gb, Siblings, 4, Siblings}},
		{"siblings that do not agree on lanes", usualLink(100, 1), append(times(2, usualLink(100, 4)), times(2, usualLink(100, 2))...), none, Expectation{100 * gb, Siblings, 0, ""}},
		{"all slow, without marks", slow, times(7, slow), none, Expectation{200 * gb, Siblings, 4, Siblings}},
		{"all slow, with marks", slow, times(7, slow), marked(400, 4), Expectation{400 * gb, HighWater, 4, HighWater}},
		{"a mark below the siblings", slow, times(7, ndr), marked(200, 4), Expectation{400 * gb, Siblings, 4, Siblings}},
		{"siblings of another role", slow, times(7, with(ndr, func(l *Link) { l.Kind.Role = "other" })), none, Expectation{}},
		{"siblings on another board", slow, times(7, with(ndr, func(l *Link) { l.Kind.Board = "b" })), none, Expectation{}},
		{"siblings of cards with two ports", slow, times(7, with(ndr, func(l *Link) { l.Kind.PortsPerCard = 2 })), none, Expectation{}},
		{"siblings that are down", slow, times(7, with(ndr, func(l *Link) { l.Active = false })), none, Expectation{}},
		{"siblings whose rate is unknown", slow, times(7, with(ndr, func(l *Link) { l.Rate = nil })), none, Expectation{}},
		{
			"a physical port that two functions report is one sibling", with(slow, func(l *Link) { l.Wire = "a" }),
			append(times(1, with(slow, func(l *Link) { l.Wire = "a" })), times(3, with(ndr, func(l *Link) { l.Wire = "b" }))...),
			none,
			Expectation{},
		},
		{"three other wires", with(slow, func(l *Link) { l.Wire = "a" }), []Link{with(ndr, func(l *Link) { l.Wire = "b" }), with(ndr, func(l *Link) { l.Wire = "c" }), ndr}, none, Expectation{400 * gb, Siblings, 4, Siblings}},
		{"no board", with(slow, func(l *Link) { l.Kind.Board = "" }), times(7, with(ndr, func(l *Link) { l.Kind.Board = "" })), none, Expectation{}},
		{"down, and its siblings are not", Link{ID: "x", Kind: ndr.Kind}, times(3, ndr), none, Expectation{400 * gb, Siblings, 4, Siblings}},
		{"siblings that do not tell lanes", slow, times(7, with(ndr, func(l *Link) { l.Lanes = nil })), none, Expectation{400 * gb, Siblings, 0, ""}},
		{"a slow switch says so", with(slow, common(200, 4)), times(7, ndr), marked(400, 4), Expectation{200 * gb, LinkModes, 4, LinkModes}},
		{
			"a slow InfiniBand switch says so", with(slow, func(l *Link) { common(200, 4)(l); l.CommonSource = LinkPartner }),
			times(7, ndr), marked(400, 4),
			Expectation{200 * gb, LinkPartner, 4, LinkPartner},
		},
		{"all slow, and both ends have more enabled", with(slow, func(l *Link) { common(400, 4)(l); l.CommonSource = LinkPartner }), times(7, slow), none, Expectation{400 * gb, LinkPartner, 4, LinkPartner}},
		{"both ends could do more", with(slow, common(400, 4)), nil, none, Expectation{400 * gb, LinkModes, 4, LinkModes}},
		{"modes of one speed and several widths", with(slow, common(400, 0)), nil, marked(400, 8), Expectation{400 * gb, LinkModes, 0, ""}},
		{
			"a pin over all",
			with(slow, func(l *Link) { common(400, 4)(l); l.PinnedRate = num(100 * gb) }), times(7, ndr), marked(400, 4),
			Expectation{100 * gb, Pin, 4, Siblings},
		},
		{"a pin of lanes alone", with(slow, func(l *Link) { l.PinnedLanes = num(uint64(2)) }), nil, marked(400, 4), Expectation{400 * gb, HighWater, 2, Pin}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Of(append([]Link{c.first}, c.rest...), c.mark)[0]; got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}
