package expect

import (
	"encoding/json"
	"testing"
	"time"
)

func TestBaselineForms(t *testing.T) {
	t0 := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	const hour = time.Hour
	counted := func(serial string, errors float64, took time.Duration) Reading {
		return Reading{Serial: serial, Sum: errors, Weight: 1e12 * took.Hours(), Took: took}
	}
	var b Baseline
	for i, c := range []struct {
		name   string
		r      Reading
		formed bool
		ratio  float64
		since  time.Duration
	}{
		{"no error: one error in the time", counted("A", 0, hour), false, 1e-12, 0},
		{"errors", counted("A", 300, 2*hour), false, 1e-10, 0},
		{"unknown serial number is no change; complete after 4h", counted("", 100, hour), true, 1e-10, 0},
		{"fixed", counted("A", 1e6, hour), true, 1e-10, 0},
		{"another transceiver", counted("B", 5, hour), false, 5e-12, 4 * hour},
		{"complete again", counted("B", 3, 3*hour), true, 2e-12, 4 * hour},
	} {
		b = b.Add(t0.Add(time.Duration(i)*hour), c.r)
		if b.Formed() != c.formed || b.Ratio() != c.ratio || !b.Since.Equal(t0.Add(c.since)) {
			t.Errorf("%s: formed %v, ratio %g, since %s", c.name, b.Formed(), b.Ratio(), b.Since)
		}
	}
	if b.Serial != "B" {
		t.Errorf("serial %q", b.Serial)
	}
}

// TestBaselineMemory: baselines survive a restart, and begin anew after accept, after the transceiver was unplugged,
// and with another function.
func TestBaselineMemory(t *testing.T) {
	t0 := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	complete := Baseline{
		Device: "mlx5_0", Port: 1, Serial: "A", Since: t0, Sum: 4, Weight: 4e12, Seconds: BaselineForm.Seconds(),
	}
	const link, own = "guid/b83f/1", "guid/b83f/1#own"
	m := NewMemory(Data{})
	m.SetBaseline(own, complete)
	if !changed(m) {
		t.Error("not saved")
	}
	saved, err := json.Marshal(m.Data())
	if err != nil {
		t.Fatal(err)
	}
	restart := func() *Memory {
		var d Data
		if err := json.Unmarshal(saved, &d); err != nil {
			t.Fatal(err)
		}
		m := NewMemory(Data{})
		m.Absorb(d)
		return m
	}
	if got, ok := restart().Baseline(own); !ok || got != complete {
		t.Errorf("after a restart %+v", got)
	}
	for name, discard := range map[string]func(*Memory){
		"accept of the device": func(m *Memory) {
			if a, unknown, err := m.Accept([]string{"mlx5_0"}, false); err != nil || len(unknown) > 0 || len(a.Baselines) != 1 {
				t.Errorf("%+v %v %v", a, unknown, err)
			}
		},
		"accept of the port": func(m *Memory) {
			if a, unknown, err := m.Accept([]string{"mlx5_0/1"}, false); err != nil || len(unknown) > 0 ||
				len(a.Baselines) != 1 {
				t.Errorf("%+v %v %v", a, unknown, err)
			}
		},
		"unplugged": func(m *Memory) { m.ForgetBaselines(link) },
	} {
		m := restart()
		if discard(m); len(m.Data().Baselines) != 0 {
			t.Errorf("%s: %+v", name, m.Data().Baselines)
		}
	}
	for name, keep := range map[string]func(*Memory){
		"a dry run": func(m *Memory) {
			if a, _, _ := m.Accept([]string{"mlx5_0"}, true); len(a.Baselines) != 1 {
				t.Errorf("%+v", a)
			}
		},
		"accept of another device": func(m *Memory) { _, _, _ = m.Accept([]string{"mlx5_1"}, false) },
		"another port unplugged":   func(m *Memory) { m.ForgetBaselines("guid/b83f/10") },
		"port 1 of a longer name":  func(m *Memory) { m.ForgetBaselines("guid/b83f/1/eth0") },
	} {
		m := restart()
		if keep(m); len(m.Data().Baselines) != 1 {
			t.Errorf("%s: discarded", name)
		}
	}
}
