package exposition

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// encoded returns the output of Prometheus' own encoder.
func encoded(t testing.TB, families []Family, format expfmt.Format) string {
	t.Helper()
	var b bytes.Buffer
	e := expfmt.NewEncoder(&b, format)
	for f := range DTO(families) {
		if err := e.Encode(f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// compare compares both formats of families with those of the library.
func compare(t testing.TB, families []Family) {
	t.Helper()
	if len(families) == 0 {
		t.Error("no families")
	}
	openMetrics, err := expfmt.NewOpenMetricsFormat(expfmt.OpenMetricsVersion_1_0_0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		got, want string
	}{
		{"text 0.0.4", string(AppendText(nil, families)), encoded(t, families, expfmt.NewFormat(expfmt.TypeTextPlain))},
		{"OpenMetrics 1.0.0", string(AppendOpenMetrics(nil, families)), encoded(t, families, openMetrics)},
	} {
		got, want := strings.Split(c.got, "\n"), strings.Split(c.want, "\n")
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Errorf("%s: line %d:\n%q\nwant\n%q",
					c.name, i+1, got[min(i, len(got)):min(i+1, len(got))], want[min(i, len(want)):min(i+1, len(want))])
				break
			}
		}
	}
}

func testValues() []float64 {
	return []float64{
		0, math.Copysign(0, -1), 1, -1, 2, 10, 42, 0.1, -0.1, 0.5, 1.5, 123456.789, 1e-3, 1e-4, 9.99e-5, 1e-5, 1e-7,
		5e-324, math.MaxFloat64,
		999_999, 1e6, 1_000_001, 1e7, 123_456_789, 1e15, 1e20, 1e21, 1e22, 1.234e21, 1 << 53, 1<<53 - 1, 1 << 62,
		1<<64 - 1, math.MaxInt64,
		-999_999, -1e6, -123_456_789, 50_000_000_000, 4_294_967_295, 65535, 1.0 / 3, math.Pi * 1e9,
	}
}

func TestTextIsThatOfPrometheus(t *testing.T) {
	for _, kind := range []Type{Gauge, Counter, Untyped} {
		d := descOf(kind, "n", "a")
		d.Help = `Bits "quoted", a \ backslash, \n as text,` + "\na line, é."
		s := NewSink([]*Desc{d})
		s.Begin()
		for i, v := range testValues() {
			s.Emit(d, v, strings.Repeat("i", i), "plain")
		}
		for i, l := range []string{"", `quote "`, `back \ slash`, `\n`, "é日本", "a{b}=c,d", "two words", "\xff", "%s", "#"} {
			s.Emit(d, float64(i), "label", l)
			s.Emit(d, float64(i), "", "again "+l)
		}
		compare(t, s.End())
	}
}

func TestTextOfManyFamiliesIsThatOfPrometheus(t *testing.T) {
	a := &Desc{Name: "rdma_a_total", Help: "A.", Type: Counter, Labels: []string{"device"}}
	b := &Desc{Name: "rdma_b", Help: "", Type: Gauge}
	c := &Desc{Name: "rdma_c", Help: "C.", Type: Untyped, Labels: []string{"device", "port", "stat"}}
	d := &Desc{Name: "rdma_d_total_seconds", Help: "A gauge.", Type: Gauge}
	s := NewSink([]*Desc{a, b, c, d})
	s.Begin()
	s.Emit(a, 1, "mlx5_0")
	s.Emit(a, 1<<40, "mlx5_1")
	s.Emit(b, 0.25)
	s.Emit(c, 7, "mlx5_0", "1", "active_qps")
	s.Emit(d, 3)
	compare(t, s.End())
}

func TestRandomFamiliesAreThoseOfPrometheus(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	letters := []rune("abc012_ \"\\\n\téß日\x01{}=,#")
	text := func() string {
		var b strings.Builder
		for range r.IntN(12) {
			b.WriteRune(letters[r.IntN(len(letters))])
		}
		return b.String()
	}
	for range 300 {
		d := descOf(Type(r.IntN(3)), "x", "b", "a")
		d.Help = strings.TrimRight(text(), " ") // docs/metrics.md has none either
		s := NewSink([]*Desc{d})
		s.Begin()
		for range 20 {
			v := math.Abs(math.Float64frombits(r.Uint64()))
			switch r.IntN(3) {
			case 0:
				v = float64(r.Uint64() >> r.IntN(64))
			case 1:
				v = float64(r.IntN(2e6)) / 8
			}
			s.Emit(d, v, text(), text(), text())
		}
		compare(t, s.End())
		if t.Failed() {
			return
		}
	}
}

func FuzzTextIsThatOfPrometheus(f *testing.F) {
	f.Add(1.5, "mlx5_0", "Help.", uint8(0))
	f.Add(1e6, "\xff\"\\\n", "\"\\\n", uint8(1))
	f.Add(math.Copysign(0, -1), "", "", uint8(2))
	f.Add(999999.0, "a", "é", uint8(1))
	f.Fuzz(func(t *testing.T, v float64, label, help string, kind uint8) {
		d := descOf(Type(kind%3), "device", "port")
		d.Help = help
		s := NewSink([]*Desc{d})
		s.Begin()
		s.Emit(d, v, label, "1")
		s.Emit(d, v+1, "1", label)
		compare(t, s.End())
	})
}

func TestMerge(t *testing.T) {
	a, b := &Desc{Name: "rdma_a"}, &Desc{Name: "rdma_b"}
	sinks := NewSinks([]*Desc{b}, []*Desc{a, b})
	family := func(d *Desc, values ...float64) (f Family) {
		f.Head = sinks[1].descs[d].head
		for _, v := range values {
			f.Points = append(f.Points, Point{Value: v})
		}
		return f
	}
	cached := make([]Point, 1, 8)
	cached[0].Value = 1
	got := Merge([]Family{
		{Head: sinks[0].descs[b].head, Points: []Point{{Value: 4}}},
		{Head: family(a).Head, Points: cached},
		family(b, 5), family(a, 2, 3),
	})
	var flat []float64
	for _, f := range got {
		for _, p := range f.Points {
			flat = append(flat, p.Value)
		}
	}
	if len(got) != 2 || got[0].Head.Desc != a || got[1].Head.Desc != b || !slices.Equal(flat, []float64{1, 2, 3, 4, 5}) {
		t.Errorf("%d families, %v", len(got), flat)
	}
	if cached[:2][1].Value != 0 {
		t.Error("the points of a cached family were written over")
	}
	if got := Merge(nil); len(got) != 0 {
		t.Error(got)
	}
}

func TestDTO(t *testing.T) {
	g, c, u := descOf(Gauge, "b", "a"), descOf(Counter), descOf(Untyped)
	s := NewSink([]*Desc{g, c, u})
	s.Begin()
	s.Emit(g, 1.5, "2", "1")
	s.Emit(c, 2)
	s.Emit(u, 3)
	got := slices.Collect(DTO(s.End()))
	if len(got) != 3 {
		t.Fatal(got)
	}
	m := got[0].Metric[0]
	if got[0].GetType() != dto.MetricType_GAUGE || m.Gauge.GetValue() != 1.5 || got[0].GetHelp() != "Help." ||
		got[0].GetName() != "rdma_x" {
		t.Error(got[0])
	}
	if len(m.Label) != 2 || m.Label[0].GetName() != "a" || m.Label[0].GetValue() != "1" || m.Label[1].GetName() != "b" {
		t.Error(m.Label)
	}
	if got[1].GetType() != dto.MetricType_COUNTER || got[1].Metric[0].Counter.GetValue() != 2 {
		t.Error(got[1])
	}
	if got[2].GetType() != dto.MetricType_UNTYPED || got[2].Metric[0].Untyped.GetValue() != 3 {
		t.Error(got[2])
	}
}
