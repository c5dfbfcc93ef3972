package exposition

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func descOf(kind Type, labels ...string) *Desc {
	name := "rdma_x"
	if kind == Counter {
		name += "_total"
	}
	return &Desc{Name: name, Help: "Help.", Type: kind, Labels: labels}
}

// lines returns the samples of a sink in one round.
func lines(s *Sink, emit func()) []string {
	s.Begin()
	emit()
	var out []string
	for l := range strings.Lines(string(AppendText(nil, s.End()))) {
		if !strings.HasPrefix(l, "#") {
			out = append(out, strings.TrimSuffix(l, "\n"))
		}
	}
	return out
}

func TestSinkDropsAndCounts(t *testing.T) {
	g, c, u := descOf(Gauge, "device"), descOf(Counter), descOf(Untyped, "b", "a")
	for _, x := range []struct {
		name    string
		emit    func(s *Sink)
		want    []string
		dropped map[string]int
	}{
		{"valid", func(s *Sink) { s.Emit(g, -1.5, "mlx5_0"); s.Emit(c, 0); s.Emit(u, -7, "2", "1") }, []string{`rdma_x{device="mlx5_0"} -1.5`, `rdma_x_total 0`, `rdma_x{a="1",b="2"} -7`}, nil},
		{"NaN", func(s *Sink) { s.Emit(g, math.NaN(), "mlx5_0") }, nil, map[string]int{"bad_value": 1}},
		{"Inf", func(s *Sink) { s.Emit(g, math.Inf(1), "mlx5_0"); s.Emit(g, math.Inf(-1), "mlx5_0") }, nil, map[string]int{"bad_value": 2}},
		{"negative counter", func(s *Sink) { s.Emit(c, -1) }, nil, map[string]int{"bad_value": 1}},
		{"too few labels", func(s *Sink) { s.Emit(g, 1) }, nil, map[string]int{"bad_value": 1}},
		{"too many labels", func(s *Sink) { s.Emit(g, 1, "mlx5_0", "1") }, nil, map[string]int{"bad_value": 1}},
		{"undeclared", func(s *Sink) { s.Emit(descOf(Gauge, "device"), 1, "mlx5_0") }, nil, map[string]int{"undeclared": 1}},
		{"duplicate", func(s *Sink) { s.Emit(g, 1, "mlx5_0"); s.Emit(g, 2, "mlx5_0"); s.Emit(g, 3, "mlx5_1") }, []string{`rdma_x{device="mlx5_0"} 1`, `rdma_x{device="mlx5_1"} 3`}, map[string]int{"duplicate": 1}},
		{"an empty value is no label", func(s *Sink) { s.Emit(g, 1, ""); s.Emit(u, 2, "", "1"); s.Emit(u, 3, "1", "") }, []string{`rdma_x 1`, `rdma_x{a="1"} 2`, `rdma_x{b="1"} 3`}, nil},
		{"one bad sample costs itself", func(s *Sink) { s.Emit(g, 1, "a"); s.Emit(g, math.NaN(), "b"); s.Emit(g, 3, "c") }, []string{`rdma_x{device="a"} 1`, `rdma_x{device="c"} 3`}, map[string]int{"bad_value": 1}},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := NewSink([]*Desc{g, c, u})
			for range 2 { // with new and cached series
				if got := lines(s, func() { x.emit(s) }); !slices.Equal(got, x.want) {
					t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(x.want, "\n"))
				}
				if got := s.Dropped(); !maps.Equal(got, x.dropped) {
					t.Errorf("dropped %v, want %v", got, x.dropped)
				}
			}
		})
	}
}

// TestOrderOfSamples: samples are the same in whatever order they come, and whichever come.
func TestOrderOfSamples(t *testing.T) {
	g, c := descOf(Gauge, "device"), descOf(Counter)
	other := descOf(Gauge, "device") // undeclared
	emit := map[rune]func(s *Sink){
		'a': func(s *Sink) { s.Emit(g, 1, "a") },
		'b': func(s *Sink) { s.Emit(g, 2, "b") },
		'c': func(s *Sink) { s.Emit(c, 3) },
		'-': func(s *Sink) { s.Emit(other, 4, "a") },
	}
	s := NewSink([]*Desc{g, c})
	for _, order := range []string{"abc", "abc", "cab", "-cab", "ca", "cba", "", "bac", "b", "ac", "c", "acb", "c-a-b"} {
		var want []string
		for _, x := range order {
			if line := map[rune]string{'a': `rdma_x{device="a"} 1`, 'b': `rdma_x{device="b"} 2`}[x]; line != "" {
				want = append(want, line)
			}
		}
		if strings.Contains(order, "c") {
			want = append(want, "rdma_x_total 3")
		}
		got := lines(s, func() {
			for _, x := range order {
				emit[x](s)
			}
		})
		if !slices.Equal(got, want) || s.Dropped()["undeclared"] != strings.Count(order, "-") {
			t.Errorf("%s: %q, want %q, dropped %v", order, got, want, s.Dropped())
		}
	}
}

func TestLabelsAreMadeValid(t *testing.T) {
	for in, want := range map[string]string{
		"mlx5_0":                            "mlx5_0",
		"two words":                         "two words",
		"  around  ":                        "around",
		"\x00nul\x7f and\x1b[1m escape\r\n": "\u25a1nul\u25a1 and\u25a1[1m escape",
		"tab\tbed":                          "tab\u25a1bed",
		"invalid \xff\xfe here":             "invalid \u25a1 here",
		"\xc3":                              "\u25a1",
		"é and 日本":                          "é and 日本",
		"zero\u200bwidth":                   "zero\u25a1width",
		"line\u2028separator":               "line\u25a1separator",
		`quote " backslash \`:               `quote " backslash \`,
		"\n\t ":                             "",
		strings.Repeat("x", 128):            strings.Repeat("x", 128),
		strings.Repeat("x", 129):            strings.Repeat("x", 128),
		strings.Repeat("x", 127) + "é":      strings.Repeat("x", 127),
		strings.Repeat("日", 60):             strings.Repeat("日", 42),
		strings.Repeat("x", 127) + " y":     strings.Repeat("x", 127),
	} {
		if got := ValidLabel(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzValidLabel(f *testing.F) {
	f.Add("mlx5_0")
	f.Add("\xff\x00 \u200b" + strings.Repeat("日", 60))
	f.Fuzz(func(t *testing.T, in string) {
		got := ValidLabel(in)
		if !utf8.ValidString(got) || len(got) > maxLabel || strings.TrimSpace(got) != got ||
			strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Errorf("%q: %q", in, got)
		}
		if again := ValidLabel(got); again != got {
			t.Errorf("%q: %q, and then %q", in, got, again)
		}
	})
}

// Invalid names of two devices may become equal when made valid. One sample is exposed, whichever is first, and however
// they appear and disappear.
func TestLabelSetsThatBecomeEqual(t *testing.T) {
	g := descOf(Gauge, "device")
	s := NewSink([]*Desc{g})
	const a, b = "x\x01", "x\x02"
	const c = "x\u25a1"
	for round, names := range [][]string{{a, b}, {b, a}, {a}, {b}, {a, b}, {c, a, b}, {b, c}, nil, {b, a}} {
		got := lines(s, func() {
			for i, n := range names {
				s.Emit(g, float64(i), n)
			}
		})
		want := []string{`rdma_x{device="x□"} 0`}
		if names == nil {
			want = nil
		}
		if !slices.Equal(got, want) {
			t.Errorf("round %d, %q: %q", round, names, got)
		}
		if n := s.Dropped()["duplicate"]; n != max(0, len(names)-1) {
			t.Errorf("round %d, %q: %d dropped", round, names, n)
		}
	}
}

// Values may contain any bytes, so no byte can separate them.
func TestLabelValuesDoNotRunTogether(t *testing.T) {
	g := descOf(Gauge, "a", "b")
	s := NewSink([]*Desc{g})
	got := lines(s, func() {
		s.Emit(g, 1, "x\xff", "y")
		s.Emit(g, 2, "x", "\xffy")
		s.Emit(g, 3, "xy", "")
		s.Emit(g, 4, "", "xy")
	})
	want := []string{
		"rdma_x{a=\"x\u25a1\",b=\"y\"} 1", "rdma_x{a=\"x\",b=\"\u25a1y\"} 2", `rdma_x{a="xy"} 3`, `rdma_x{b="xy"} 4`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestSeriesThatAreGoneAreForgotten(t *testing.T) {
	g := descOf(Gauge, "device")
	s := NewSink([]*Desc{g})
	named := s.descs[g]
	for round := range 100 {
		lines(s, func() {
			for i := range 10 {
				s.Emit(g, 1, fmt.Sprintf("mlx5_%d", round*5+i)) // half of them are new
				s.Emit(g, 1, fmt.Sprintf("mlx5_%d%s", round*5+i, strings.Repeat("\x00", round)))
			}
			s.Emit(g, 1, "garbled"+strings.Repeat("\x00", round))
		})
		if n, m := len(named.series), len(named.texts); n > 11 || m > 11 {
			t.Fatalf("round %d: %d label sets and %d texts are kept", round, n, m)
		}
	}
	lines(s, func() {})
	if n, m := len(named.series), len(named.texts); n != 0 || m != 0 {
		t.Errorf("%d label sets and %d texts are kept of nothing", n, m)
	}
}

func TestASeriesKeepsItsTextAndPointsOfEarlierRoundsStay(t *testing.T) {
	g := descOf(Gauge, "device")
	s := NewSink([]*Desc{g})
	round := func(v float64) []Family {
		s.Begin()
		s.Emit(g, v, "mlx5_0")
		return s.End()
	}
	first := round(1)
	second := round(2)
	if first[0].Points[0].Series != second[0].Points[0].Series {
		t.Error("the series was made twice")
	}
	if first[0].Points[0].Value != 1 || second[0].Points[0].Value != 2 {
		t.Errorf("%v and %v", first[0].Points[0].Value, second[0].Points[0].Value)
	}
}

func TestTheSteadyStateAllocatesPerFamilyOnly(t *testing.T) {
	g := descOf(Gauge, "device", "port")
	s := NewSink([]*Desc{g})
	var names []string
	for i := range 500 {
		names = append(names, fmt.Sprintf("mlx5_%d", i))
	}
	round := func() {
		s.Begin()
		for i, n := range names {
			s.Emit(g, float64(i), n, "1")
		}
		s.End()
	}
	round()
	if n := testing.AllocsPerRun(20, round); n > 4 {
		t.Errorf("%v allocations a round of %d samples", n, len(names))
	}
}

func TestFamiliesWithoutSamplesHaveNoLabels(t *testing.T) {
	g, c := descOf(Gauge), descOf(Counter)
	s := NewSink([]*Desc{g, c})
	s.Begin()
	s.Emit(c, 1)
	if f := s.End(); len(f) != 1 || f[0].Head.Desc != c {
		t.Errorf("%v", f)
	}
	s.Begin()
	if f := s.End(); len(f) != 0 {
		t.Errorf("%v", f)
	}
}

// TestFamilyAsks: labels of the samples of a family.
func TestFamilyAsks(t *testing.T) {
	d := &Desc{Name: "m", Labels: []string{"device", "layer", "role"}}
	s := NewSink([]*Desc{d})
	s.Begin()
	s.Emit(d, 1, "a", "InfiniBand", "")
	s.Emit(d, 0, "b", "", "compute")
	f := s.End()[0]
	for _, tc := range []struct {
		label, value string
		want         bool
	}{{"layer", "InfiniBand", true}, {"layer", "Ethernet", false}, {"device", "b", true}, {"none", "", false}} {
		if f.Has(tc.label, tc.value) != tc.want {
			t.Errorf("%s=%s", tc.label, tc.value)
		}
	}
	for want, labels := range map[bool][][]string{
		true: {nil, {"layer"}, {"device", "role"}}, false: {{"layer", "role"}, {"none"}},
	} {
		for _, l := range labels {
			if f.HasLabels(l...) != want {
				t.Errorf("%v", l)
			}
		}
	}
}
