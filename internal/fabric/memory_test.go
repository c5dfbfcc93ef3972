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

// namesOf returns the names of ends: "1/3".
func namesOf(ends []End) (out []string) {
	for _, e := range ends {
		out = append(out, fmt.Sprintf("%d/%d", e.GUID, e.Port))
	}
	return out
}

func TestMissing(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*subnet)
		want   []string
	}{
		{"nothing", func(*subnet) {}, nil},
		{"a host's link", func(s *subnet) { s.unplug(End{1, 1}) }, []string{"1/1", "11/1"}},
		{"a link between switches", func(s *subnet) { s.unplug(End{1, 3}) }, []string{"1/3", "3/1"}},
		{"a host that does not answer", func(s *subnet) { s.nodes[22].silent = true }, nil},
		{"a switch hangs", func(s *subnet) { s.nodes[3].silent = true }, nil},
		{"a host is plugged elsewhere", func(s *subnet) {
			s.unplug(End{1, 1})
			s.connect(End{11, 1}, End{2, 5})
		}, nil},
		{"a host is plugged elsewhere, and another where it was", func(s *subnet) {
			s.unplug(End{1, 1})
			s.unplug(End{1, 2})
			s.connect(End{11, 1}, End{1, 2})
			s.nodes[1].ports[2].downed = 1
		}, nil}, // host 12 has lost its link to the newcomer: its node is unreachable
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := leafSpine()
				f := s.sweep(t, nil, Options{})
				m := NewMemory(Data{})
				if !m.Note(f, f.At.Add(-time.Hour)) || m.Note(f, f.At.Add(-time.Hour)) {
					t.Error("what is new is kept, what is not is not")
				}
				b, err := json.Marshal(m.Data())
				if err != nil {
					t.Fatal(err)
				}
				var d Data
				if err := json.Unmarshal(b, &d); err != nil {
					t.Fatal(err)
				}
				m = NewMemory(d) // after a restart
				tt.change(s)
				f = s.sweep(t, f, Options{})
				m.Note(f, f.At.Add(-time.Hour))
				if got := namesOf(m.missing(f)); !slices.Equal(got, tt.want) {
					t.Errorf("missing %v, want %v", got, tt.want)
				}
			})
		})
	}
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

// FuzzMemory restores any stored file: what was restored can be stored again, and each port has one link.
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
		used := map[End]bool{}
		for _, l := range once.Links {
			if used[l.A] || used[l.B] {
				t.Errorf("two links at a port: %+v", once.Links)
			}
			used[l.A], used[l.B] = true, true
		}
	})
}
