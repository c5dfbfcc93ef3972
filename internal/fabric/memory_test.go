package fabric

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/mad"
)

// namesOf returns the ends of links: "1/3 3/1".
func namesOf(links []KnownLink) (out []string) {
	for _, l := range links {
		out = append(out, fmt.Sprintf("%d/%d %d/%d", l.A.GUID, l.A.Port, l.B.GUID, l.B.Port))
	}
	return out
}

// TestMissing: a link is missing until both ends are known to be elsewhere, and rewired from then on.
func TestMissing(t *testing.T) {
	swap := func(s *subnet) { // the cables of two hosts
		s.unplug(End{1, 1})
		s.unplug(End{1, 2})
		s.connect(End{11, 1}, End{1, 2})
		s.connect(End{12, 1}, End{1, 1})
	}
	taken := func(s *subnet) { // the port of host 11, by one that was not known
		s.unplug(End{1, 1})
		s.nodes[13] = &device{kind: mad.ChannelAdapter, name: "gpu-13", ports: map[int]*plug{}}
		s.connect(End{13, 1}, End{1, 1})
	}
	toNewPort := func(s *subnet) {
		s.unplug(End{1, 1})
		s.connect(End{11, 1}, End{2, 5})
	}
	for _, tt := range []struct {
		name    string
		changes []func(*subnet) // one before each sweep
		missing []string
		rewired []string
	}{
		{"nothing", []func(*subnet){func(*subnet) {}}, nil, nil},
		{"a host's link", []func(*subnet){func(s *subnet) { s.unplug(End{1, 1}) }}, []string{"1/1 11/1"}, nil},
		{"a link between switches", []func(*subnet){func(s *subnet) { s.unplug(End{1, 3}) }}, []string{"1/3 3/1"}, nil},
		{"a host that does not answer", []func(*subnet){func(s *subnet) { s.nodes[22].silent = true }}, nil, nil},
		{"a switch hangs", []func(*subnet){func(s *subnet) { s.nodes[3].silent = true }}, nil, nil},
		{"a host is moved to a new port", []func(*subnet){toNewPort}, []string{"1/1 11/1"}, nil},
		{"a dark host, and a cable in its port", []func(*subnet){taken}, []string{"1/1 11/1"}, nil},
		{"the new one hangs", []func(*subnet){taken, func(s *subnet) { s.nodes[13].silent = true }}, []string{"1/1 11/1"}, nil},
		{"the new one is pulled", []func(*subnet){taken, func(s *subnet) { s.unplug(End{1, 1}) }}, []string{"1/1 11/1", "1/1 13/1"}, nil},
		{"two cables in its port, one after the other", []func(*subnet){taken, func(s *subnet) {
			s.unplug(End{1, 1})
			s.unplug(End{1, 2})
			s.connect(End{12, 1}, End{1, 1})
		}}, []string{"1/1 11/1", "1/1 13/1", "1/2 12/1"}, nil},
		{"it returns to its port", []func(*subnet){taken, func(s *subnet) {
			s.unplug(End{1, 1})
			s.connect(End{11, 1}, End{1, 1})
		}}, []string{"1/1 13/1"}, nil},
		{"moved, and the port in use again", []func(*subnet){toNewPort, func(s *subnet) {
			s.nodes[1].ports[1] = nil
			s.nodes[13] = &device{kind: mad.ChannelAdapter, name: "gpu-13", ports: map[int]*plug{}}
			s.connect(End{13, 1}, End{1, 1})
		}}, nil, []string{"1/1 11/1"}},
		{"a host is plugged elsewhere, and another where it was", []func(*subnet){func(s *subnet) {
			s.unplug(End{1, 1})
			s.unplug(End{1, 2})
			s.connect(End{11, 1}, End{1, 2})
		}}, []string{"1/1 11/1", "1/2 12/1"}, nil},
		{"two hosts are swapped", []func(*subnet){swap}, nil, []string{"1/1 11/1", "1/2 12/1"}},
		{"and swapped back", []func(*subnet){swap, func(s *subnet) {
			s.unplug(End{1, 1})
			s.unplug(End{1, 2})
			s.connect(End{11, 1}, End{1, 1})
			s.connect(End{12, 1}, End{1, 2})
		}}, nil, nil},
		{"and one is dark", []func(*subnet){swap, func(s *subnet) { s.unplug(End{1, 1}) }}, []string{"1/1 12/1"}, []string{"1/1 11/1", "1/2 12/1"}},
		{"and a third", []func(*subnet){swap, func(s *subnet) {
			for _, port := range []int{1, 2, 9} {
				s.unplug(End{1, port})
			}
			s.connect(End{9, 1}, End{1, 1}) // sweeps
			s.connect(End{11, 1}, End{1, 9})
			s.connect(End{12, 1}, End{1, 2})
		}}, nil, []string{"1/1 11/1", "1/9 9/1"}},
		{"uplinks are swapped", []func(*subnet){func(s *subnet) { s.exchange() }}, nil, []string{"1/3 3/1", "1/4 4/1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := leafSpine()
				f := s.sweep(t, nil, Options{})
				m := NewMemory(Data{})
				if !m.Note(f, f.At.Add(-time.Hour)) || m.Note(f, f.At.Add(-time.Hour)) {
					t.Error("what is new is kept, what is not is not")
				}
				for _, change := range tt.changes {
					time.Sleep(time.Minute)
					change(s)
					f = s.sweep(t, nil, Options{})
					m.Note(f, f.At.Add(-time.Hour))
					m = restarted(t, m)
				}
				if m.Note(f, f.At.Add(-time.Hour)) {
					t.Error("the same sweep is a change")
				}
				if got := namesOf(m.missing(f)); !slices.Equal(got, tt.missing) {
					t.Errorf("missing %v, want %v", got, tt.missing)
				}
				if got := namesOf(m.rewired()); !slices.Equal(got, tt.rewired) {
					t.Errorf("rewired %v, want %v", got, tt.rewired)
				}
			})
		})
	}
}

// restarted returns a memory as a restart restores it.
func restarted(t *testing.T, m *Memory) *Memory {
	t.Helper()
	b, err := json.Marshal(m.Data())
	if err != nil {
		t.Fatal(err)
	}
	var d Data
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return NewMemory(d)
}

// TestClockSetAtRestart: a clock that is set back during a restart changes neither which link of a port is the latest
// nor how long one that is gone is remembered.
func TestClockSetAtRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := leafSpine()
		m := NewMemory(Data{})
		f := s.sweep(t, nil, Options{})
		m.Note(f, f.At.Add(-time.Hour))
		time.Sleep(time.Minute)
		s.exchange()
		f = s.sweep(t, nil, Options{})
		m.Note(f, f.At.Add(-time.Hour))
		m = restarted(t, m)
		s.unplug(End{1, 3}) // now to 4/1
		for range 2 {
			time.Sleep(time.Minute)
			f = s.sweep(t, nil, Options{})
			f.At = f.At.AddDate(-1, 0, 0)
			m.Note(f, f.At.Add(-time.Hour))
			if got := namesOf(m.missing(f)); !slices.Equal(got, []string{"1/3 4/1"}) {
				t.Errorf("missing %v", got)
			}
			if got := namesOf(m.rewired()); !slices.Equal(got, []string{"1/3 3/1", "1/4 4/1"}) {
				t.Errorf("rewired %v", got)
			}
		}
		time.Sleep(time.Hour)
		f = s.sweep(t, nil, Options{})
		f.At = f.At.AddDate(-1, 0, 0)
		m.Note(f, f.At.Add(-time.Hour))
		if got := m.Data().Links; len(got) != 8 || m.rewired() != nil || m.missing(f) != nil {
			t.Errorf("remembered for too long: %v", namesOf(got))
		}
	})
}

// TestNameUnanswered: a node whose NodeDescription does not answer in a full sweep keeps its remembered name.
func TestNameUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := leafSpine()
		m := s.monitor()
		var kept Data
		m.Save = func(d Data) error {
			kept = d
			return nil
		}
		startMonitor(t, m)
		s.mu.Lock()
		s.lost = func(d *mad.Datagram, _ *device, at End) bool {
			return at.GUID == 3 && binary.BigEndian.Uint16(d.MAD[16:]) == 0x10
		}
		s.mu.Unlock()
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		for _, want := range []string{
			`node_info{node="spine1",`, `link_info{end="1",neighbour="spine1",`,
			`node_reachable{node_guid="0000:0000:0000:0003"} 1`, `unanswered{request="node"} 1`,
		} {
			if !strings.Contains(m.text(), "rdma_fabric_"+want) {
				t.Errorf("not %s", want)
			}
		}
		if n := kept.Nodes[2]; n.Description != "spine1" || !n.Seen.After(m.full.Add(-time.Minute)) {
			t.Errorf("kept %+v", n)
		}
		s.mu.Lock()
		s.lost, s.nodes[3].name = nil, "spine-a"
		s.mu.Unlock()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if text := m.text(); !strings.Contains(text, `rdma_fabric_node_info{node="spine-a",`) ||
			!strings.Contains(text, `rdma_fabric_unanswered{request="node"} 0`) {
			t.Error("a new name is not taken")
		}
	})
}

func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := leafSpine()
		m := NewMemory(Data{})
		f := s.sweep(t, nil, Options{})
		m.Note(f, f.At.Add(-time.Hour))
		s.unplug(End{1, 1})
		for _, want := range []struct {
			changed bool
			links   int
			had     bool
		}{{false, 18, true}, {true, 16, false}, {false, 16, false}} {
			time.Sleep(50 * time.Minute)
			f = s.sweep(t, f, Options{})
			if changed := m.Note(f, f.At.Add(-time.Hour)); changed != want.changed || len(m.links) != want.links ||
				m.Had(End{11, 1}) != want.had {
				t.Errorf("changed %v, %d ends of links, %v", changed, len(m.links), m.Had(End{11, 1}))
			}
		}
		if n := len(m.Data().Nodes); n != 8 {
			t.Errorf("%d nodes", n)
		}
	})
}

// TestClockSet: a link that is gone is remembered for its time, although the clock was set.
func TestClockSet(t *testing.T) {
	for _, by := range []time.Duration{8 * 24 * time.Hour, -8 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s := leafSpine()
			m := NewMemory(Data{})
			f := s.sweep(t, nil, Options{})
			m.Note(f, f.At.Add(-time.Hour))
			s.unplug(End{1, 1})
			m.Move(by)
			for _, had := range []bool{true, false} {
				time.Sleep(50 * time.Minute)
				f = s.sweep(t, f, Options{})
				f.At = f.At.Add(by)
				if m.Note(f, f.At.Add(-time.Hour)); m.Had(End{11, 1}) != had {
					t.Errorf("%s: remembered %v", by, !had)
				}
			}
		})
	}
}

// FuzzMemory restores any stored file: what was restored can be stored again, and each link is there once.
func FuzzMemory(f *testing.F) {
	a, b := End{GUID: 1, Port: 1}, End{GUID: 2, Port: 9}
	whole, err := json.Marshal(Data{
		Nodes: []KnownNode{{GUID: 1, Description: "h"}, {GUID: 2, Type: mad.Switch}},
		Links: []KnownLink{{A: a, B: b}, {A: b, B: a}, {A: a, B: a}},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"nodes":[{"guid":"x"}]}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		var d Data
		if json.Unmarshal(file, &d) != nil {
			return
		}
		once := NewMemory(d).Data()
		if again := NewMemory(once).Data(); !reflect.DeepEqual(once, again) {
			t.Errorf("%+v became %+v", once, again)
		}
		used := map[[2]End]bool{}
		for _, l := range once.Links {
			if used[[2]End{l.A, l.B}] || l.B.compare(l.A) <= 0 {
				t.Errorf("twice, or with both ends at one port: %+v", once.Links)
			}
			used[[2]End{l.A, l.B}] = true
		}
	})
}
