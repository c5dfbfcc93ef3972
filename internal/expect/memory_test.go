package expect

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"
)

func changed(m *Memory) bool {
	select {
	case <-m.Changed():
		return true
	default:
		return false
	}
}

func TestObserve(t *testing.T) {
	t0 := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	m := NewMemory(Data{})
	for i, c := range []struct {
		name    string
		link    Link
		changed bool
		mark    Mark
		active  bool
	}{
		{"down: never was ACTIVE", Link{ID: "a"}, false, Mark{}, false},
		{"ACTIVE without a rate", Link{ID: "a", Active: true}, true, Mark{}, true},
		{"its rate", with(usualLink(200, 2), func(l *Link) { l.ID = "a" }), true, Mark{200 * gb, 2}, true},
		{"the same again", with(usualLink(200, 2), func(l *Link) { l.ID = "a" }), false, Mark{200 * gb, 2}, true},
		{"higher", with(usualLink(400, 4), func(l *Link) { l.ID = "a" }), true, Mark{400 * gb, 4}, true},
		{"lower", with(usualLink(100, 8), func(l *Link) { l.ID = "a" }), false, Mark{400 * gb, 4}, true},
		{"down again", Link{ID: "a"}, false, Mark{400 * gb, 4}, true},
		{"one that is not remembered", with(usualLink(800, 8), func(l *Link) { l.ID = "" }), false, Mark{400 * gb, 4}, true},
	} {
		m.Observe(t0.Add(time.Duration(i)*time.Minute), []NamedLink{{Link: c.link, Device: "mlx5_0", Port: 1}})
		if got := changed(m); got != c.changed {
			t.Errorf("%s: changed %v", c.name, got)
		}
		if m.Mark("a") != c.mark || m.WasActive("a") != c.active {
			t.Errorf("%s: %+v %v", c.name, m.Mark("a"), m.WasActive("a"))
		}
	}
	r := m.Data().Links["a"]
	if !r.ActiveSince.Equal(t0.Add(time.Minute)) || !r.MarkedAt.Equal(t0.Add(4*time.Minute)) || r.Device != "mlx5_0" {
		t.Errorf("%+v", r)
	}
	if got, _, err := m.Accept([]string{"mlx5_0"}, false); err != nil || len(got.Links) != 1 ||
		m.WasActive("a") || !changed(m) {
		t.Errorf("accepted %v, %v", got, err)
	}
}

func TestInventory(t *testing.T) {
	t0 := time.Date(2026, 3, 2, 8, 20, 0, 0, time.UTC)
	a := FunctionRecord{Device: "mlx5_0", PCIAddress: "0000:18:00.0", NodeGUID: "b83f:d203:0050:a1c0", Driver: "mlx5_core"}
	b := FunctionRecord{Device: "mlx5_1", PCIAddress: "0000:40:00.0", NodeGUID: "b83f:d203:0050:a1c4", Driver: "mlx5_core"}
	m := NewMemory(Data{})
	see := func(at time.Time, boot string, wantChange bool, there ...FunctionRecord) {
		t.Helper()
		m.See(at, boot, there)
		if got := changed(m); got != wantChange {
			t.Errorf("changed: %v", got)
		}
	}
	absent := func(there ...FunctionRecord) (out []string) {
		for _, f := range m.Absent(there) {
			out = append(out, f.Device+" "+f.PCIAddress)
		}
		return out
	}
	see(t0, "one", true, a, b)
	see(t0.Add(time.Minute), "one", false, a, b)
	see(t0.Add(time.Minute), "one", false, a)
	if got := absent(a); !reflect.DeepEqual(got, []string{"mlx5_1 0000:40:00.0"}) {
		t.Errorf("absent: %v", got)
	}
	see(t0.Add(time.Hour), "two", true, a) // the next boot: b is still expected
	if got := absent(a); len(got) != 1 {
		t.Errorf("absent after a boot: %v", got)
	}
	renamed := a
	renamed.Device = "ibp24s0"
	see(t0.Add(time.Hour), "two", true, renamed)
	moved := b
	moved.PCIAddress = "0000:5e:00.0"
	see(t0.Add(time.Hour), "two", true, renamed, moved)
	if got := absent(renamed, moved); got != nil {
		t.Errorf("a rename and a move are no loss: %v", got)
	}
	replaced := moved
	replaced.NodeGUID = "b83f:d203:0099:0000"
	see(t0.Add(2*time.Hour), "two", true, renamed, replaced)
	if got := absent(renamed, replaced); got != nil {
		t.Errorf("a replaced card is no loss: %v", got)
	}
	if f := m.Data().Functions["guid/"+a.NodeGUID]; f.Device != "ibp24s0" || !f.FirstSeen.Equal(t0) ||
		!f.LastSeen.Equal(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)) || f.Boot != "two" {
		t.Errorf("%+v", f)
	}
	// Bus numbers have changed: replaced is at the address of renamed, which is missing. It was known before, so the other
	// one is missing.
	renumbered := replaced
	renumbered.PCIAddress = renamed.PCIAddress
	see(t0.Add(2*time.Hour), "three", true, renumbered)
	if got := absent(renumbered); !reflect.DeepEqual(got, []string{"ibp24s0 0000:18:00.0"}) {
		t.Errorf("absent once the bus is numbered anew: %v", got)
	}
	see(t0.Add(2*time.Hour), "two", true, renamed, replaced)
	noGUID := FunctionRecord{Device: "efa_0", PCIAddress: "0000:00:1d.0", NodeGUID: zeroGUID, Driver: "efa"}
	see(t0.Add(2*time.Hour), "two", true, renamed, replaced, noGUID)
	if got := absent(renamed); !reflect.DeepEqual(got, []string{"efa_0 0000:00:1d.0", "mlx5_1 0000:5e:00.0"}) {
		t.Errorf("absent: %v", got)
	}
	see(t0.Add(3*time.Hour), "two", true, renamed)
	if got, _, err := m.Accept([]string{"efa_0"}, false); err != nil || len(got.Functions) != 1 ||
		len(absent(renamed)) != 1 {
		t.Errorf("accepted %v, %v", got, err)
	}
}

// TestRenamed: exactly the names that have moved to other functions are listed, until they are accepted.
func TestRenamed(t *testing.T) {
	f := func(name, bus string, guid int) FunctionRecord {
		return FunctionRecord{
			Device: name, PCIAddress: "0000:" + bus + ":00.0",
			NodeGUID: fmt.Sprintf("b83f:d203:0050:%04x", guid), Driver: "mlx5_core",
		}
	}
	earlier := []FunctionRecord{f("mlx5_0", "18", 1), f("mlx5_1", "40", 2), f("mlx5_2", "5e", 3)}
	for _, c := range []struct {
		name string
		now  []FunctionRecord
		want []string
	}{
		{"as before", earlier, nil},
		{"two have changed places", []FunctionRecord{f("mlx5_0", "18", 1), f("mlx5_2", "40", 2), f("mlx5_1", "5e", 3)}, []string{"40: mlx5_2, was mlx5_1", "5e: mlx5_1, was mlx5_2"}},
		{"one is gone, and those behind it have moved up", []FunctionRecord{f("mlx5_0", "40", 2), f("mlx5_1", "5e", 3)}, []string{"40: mlx5_0, was mlx5_1", "5e: mlx5_1, was mlx5_2"}},
		{"the last but one is gone", []FunctionRecord{f("mlx5_0", "18", 1), f("mlx5_1", "5e", 3)}, []string{"5e: mlx5_1, was mlx5_2"}},
		{"one more, before the others", []FunctionRecord{f("mlx5_0", "10", 9), f("mlx5_1", "18", 1), f("mlx5_2", "40", 2), f("mlx5_3", "5e", 3)}, []string{"18: mlx5_1, was mlx5_0", "40: mlx5_2, was mlx5_1", "5e: mlx5_3, was mlx5_2"}},
		{"a card is replaced", []FunctionRecord{f("mlx5_0", "18", 1), f("mlx5_1", "40", 9), f("mlx5_2", "5e", 3)}, nil},
		{"a card is replaced, and names move", []FunctionRecord{f("mlx5_0", "18", 1), f("mlx5_2", "40", 9), f("mlx5_1", "5e", 3)}, []string{"40: mlx5_2, was mlx5_1", "5e: mlx5_1, was mlx5_2"}},
		{"cards change slots, names stay with the slots", []FunctionRecord{f("mlx5_0", "18", 1), f("mlx5_1", "40", 3), f("mlx5_2", "5e", 2)}, nil},
		{"the bus is numbered anew, names stay with the cards", []FunctionRecord{f("mlx5_0", "18", 1), f("mlx5_1", "5e", 2), f("mlx5_2", "62", 3)}, nil},
		{"names by place instead of by number", []FunctionRecord{f("ibp24s0", "18", 1), f("ibp64s0", "40", 2), f("ibp94s0", "5e", 3)}, nil},
		{"a new card", append(earlier[:3:3], f("mlx5_3", "62", 4)), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t0 := time.Date(2026, 3, 2, 8, 30, 0, 0, time.UTC)
			m := NewMemory(Data{})
			got := func(boot string, after time.Duration, there []FunctionRecord) (out []string) {
				m.See(t0.Add(after), boot, there)
				for _, r := range m.Renamed(there) {
					out = append(out, r.PCIAddress[5:7]+": "+r.Name+", was "+r.Earlier)
				}
				return out
			}
			if out := got("one", 0, earlier); out != nil {
				t.Errorf("in the first boot: %q", out)
			}
			for _, at := range []struct {
				boot  string
				after time.Duration
			}{{"two", time.Minute}, {"two", 2 * time.Minute}, {"two", 2 * time.Hour}, {"three", 3 * time.Hour}} {
				if out := got(at.boot, at.after, c.now); !slices.Equal(out, c.want) {
					t.Errorf("boot %s, %v: %q, want %q", at.boot, at.after, out, c.want)
				}
			}
			since := m.Data().Functions[c.now[0].key()].FirstSeen
			m.Observe(t0, []NamedLink{{Link: Link{ID: c.now[0].key() + "/1", Active: true}}})
			if _, _, err := m.Accept(nil, false); err != nil {
				t.Error(err)
			}
			if out := got("three", 4*time.Hour, c.now); out != nil {
				t.Errorf("accepted: %q", out)
			}
			if d := m.Data(); d.Functions[c.now[0].key()].FirstSeen != since || len(d.Links) != 1 {
				t.Error("what was accepted under its new name is forgotten")
			}
		})
	}
	m := NewMemory(Data{})
	swapped := []FunctionRecord{f("mlx5_0", "18", 1), f("mlx5_2", "40", 2), f("mlx5_1", "5e", 3)}
	m.See(time.Now(), "one", earlier)
	m.See(time.Now(), "one", swapped)
	if out := m.Renamed(swapped); out != nil {
		t.Errorf("renamed by hand: %v", out)
	}
	m.See(time.Now(), "two", earlier)
	m.See(time.Now(), "two", swapped)
	if out := m.Renamed(swapped); out != nil {
		t.Errorf("named late in the boot: %v", out)
	}
}

func TestDataIsKept(t *testing.T) {
	m := NewMemory(Data{})
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	m.Observe(now, []NamedLink{{Link: usualLink(400, 4), Device: "mlx5_0", Port: 1, Netdev: "eth0"}})
	m.See(now, "one", []FunctionRecord{
		{Device: "mlx5_0", PCIAddress: "0000:18:00.0", NodeGUID: "b83f:d203:0050:a1c0", Driver: "mlx5_core", Netdev: true},
	})
	b, err := json.Marshal(m.Data())
	if err != nil {
		t.Fatal(err)
	}
	var d Data
	if err := json.Unmarshal(b, &d); err != nil || !reflect.DeepEqual(NewMemory(d).Data(), m.Data()) {
		t.Errorf("%v\n%s", err, b)
	}
}

func TestMissing(t *testing.T) {
	yes, no := num(true), num(false)
	eth := FunctionRecord{Driver: "mlx5_core", Netdev: true}
	ib := FunctionRecord{Driver: "mlx5_core"}
	for _, c := range []struct {
		name string
		f    FunctionRecord
		p    Presence
		want Reason
	}{
		{"gone from the bus", eth, Presence{Shared: yes}, NotOnBus},
		{"gone from the bus, namespaces unknown", eth, Presence{}, NotOnBus},
		{"it could not be read", eth, Presence{Unknown: true}, ""},
		{"its device is there and could not be read", eth, Presence{OnBus: true, Driver: "mlx5_core", RDMA: true, Shared: yes}, ""},
		{"no driver", eth, Presence{OnBus: true, Shared: yes}, NoDriver},
		{"given to a virtual machine", eth, Presence{OnBus: true, Driver: "vfio-pci", Shared: yes}, ""},
		{"its driver has made no RDMA device", eth, Presence{OnBus: true, Driver: "mlx5_core", Netdev: true, Shared: yes}, NoRDMADevice},
		{"the same on InfiniBand", ib, Presence{OnBus: true, Driver: "mlx5_core", Shared: yes}, NoRDMADevice},
		{"its netdev is in a container", eth, Presence{OnBus: true, Driver: "mlx5_core", Shared: yes}, ""},
		{"a container has the device", eth, Presence{OnBus: true, Driver: "mlx5_core", Netdev: true, Shared: no}, ""},
		{"the kernel does not tell", ib, Presence{OnBus: true, Driver: "mlx5_core"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Missing(c.f, c.p); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
