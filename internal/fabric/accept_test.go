package fabric

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestAccept: named links and nodes that are gone are removed, and nothing if a name is wrong.
func TestAccept(t *testing.T) {
	for _, tt := range []struct {
		names     []string
		all       bool
		forgotten []string
		err       string
		left      int // ends that are missing afterwards
	}{
		{names: []string{"leaf1/1"}, forgotten: []string{"channel adapter gpu-11", "leaf1/1 to gpu-11/1"}, left: 4},
		{names: []string{"0000:0000:0000:0001/1"}, forgotten: []string{"channel adapter gpu-11", "leaf1/1 to gpu-11/1"}, left: 4},
		{names: []string{"leaf1 0000:0000:0000:0001/1"}, forgotten: []string{"channel adapter gpu-11", "leaf1/1 to gpu-11/1"}, left: 4},
		{names: []string{"gpu-11/1", "leaf2/4"}, forgotten: []string{"channel adapter gpu-11", "leaf1/1 to gpu-11/1", "leaf2/4 to spine2/2"}, left: 2},
		{names: []string{"gpu-11"}, forgotten: []string{"channel adapter gpu-11", "leaf1/1 to gpu-11/1"}, left: 4},
		{names: []string{"spine2"}, forgotten: []string{"leaf1/4 to spine2/1", "leaf2/4 to spine2/2", "switch spine2"}, left: 1},
		{all: true, forgotten: []string{"channel adapter gpu-11", "leaf1/1 to gpu-11/1", "leaf1/4 to spine2/1", "leaf2/4 to spine2/2", "switch spine2"}},
		{names: []string{"leaf1/2"}, err: "leaf1/2: the link of this port is not missing", left: 5},
		{names: []string{"leaf1"}, err: "leaf1: the node is reachable: name a port of it whose link is gone, leaf1/PORT", left: 5},
		{names: []string{"leaf1/1", "leaf9/1"}, err: "leaf9/1: no remembered node has the name or GUID leaf9: use NODE/PORT as shown on the page", left: 5},
		{names: []string{"leaf1/x"}, err: `leaf1/x: "x" is not a port number: use NODE/PORT`, left: 5},
		{names: []string{"nobody"}, err: "nobody: no remembered node has this name or GUID: use NODE or NODE/PORT as shown on the page", left: 5},
		{names: []string{"twin/1"}, err: "twin/1: 2 nodes have the name twin: use the GUID, GUID/PORT", left: 5},
		{names: []string{"twin"}, err: "twin: 2 nodes have this name: use the GUID", left: 5},
	} {
		t.Run(cmp.Or(strings.Join(tt.names, " "), "--all"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := leafSpine()
				s.nodes[21].name, s.nodes[22].name = "twin", "twin"
				m := s.monitor()
				if _, err := m.Accept(t.Context(), nil, true); err == nil {
					t.Error("accepts before a sweep")
				}
				saved := 0
				m.Save = func(Data) error { saved++; return nil }
				startMonitor(t, m)
				s.mu.Lock()
				s.unplug(End{1, 1})
				for _, port := range []int{1, 2} {
					s.unplug(End{4, port})
				}
				s.mu.Unlock()
				time.Sleep(time.Minute)
				synctest.Wait()
				before := saved
				known := m.Memory.Data()
				planned, wrong, err := m.Plan(t.Context(), tt.names)
				if err != nil || saved != before || !reflect.DeepEqual(m.Memory.Data(), known) {
					t.Errorf("a plan changes something: %v", err)
				}
				if why := wrong[cmp.Or(tt.names...)]; len(tt.names) == 1 && why != tt.err {
					t.Errorf("planned: %q, want %q", why, tt.err)
				}
				got, err := m.Accept(t.Context(), tt.names, tt.all)
				if err == nil && !slices.Equal(planned, got) {
					t.Errorf("planned %q, forgotten %q", planned, got)
				}
				if err != nil && err.Error() != tt.err || err == nil && tt.err != "" {
					t.Fatalf("%v, want %q", err, tt.err)
				}
				for i, text := range got { // GUIDs aside
					got[i], _, _ = strings.Cut(text, " (")
				}
				if !slices.Equal(got, tt.forgotten) {
					t.Errorf("forgotten %q, want %q", got, tt.forgotten)
				}
				if err == nil && saved == before {
					t.Error("is not kept")
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if n := strings.Count(m.text(), "\nrdma_fabric_link_missing{"); n != tt.left {
					t.Errorf("%d ends are missing after the next sweep, want %d", n, tt.left)
				}
			})
		})
	}
}

// TestAcceptWiring: a port is accepted with all its missing and rewired links, not with those of the ports at their
// other ends.
func TestAcceptWiring(t *testing.T) {
	taken := func(s *subnet) { // a cable in the port of a dark host
		s.unplug(End{1, 1})
		s.unplug(End{1, 2})
		s.connect(End{12, 1}, End{1, 1})
	}
	for name, tt := range map[string]struct {
		changes   []func(*subnet)
		names     []string
		forgotten []string
		left      []string // links that are missing or rewired afterwards
		err       string
	}{
		"the port that was taken": {
			[]func(*subnet){taken},
			[]string{"leaf1/1"},
			[]string{"channel adapter gpu-11", "leaf1/1 to gpu-11/1"},
			[]string{"1/2 12/1"},
			"",
		},
		"the dark host": {
			[]func(*subnet){taken},
			[]string{"gpu-11"},
			[]string{"channel adapter gpu-11", "leaf1/1 to gpu-11/1"},
			[]string{"1/2 12/1"},
			"",
		},
		"the port that was left": {
			[]func(*subnet){taken}, []string{"leaf1/2"}, []string{"leaf1/2 to gpu-12/1"}, []string{"1/1 11/1"}, "",
		},
		"the host that was moved": {
			[]func(*subnet){taken}, []string{"gpu-12/1"}, []string{"leaf1/2 to gpu-12/1"}, []string{"1/1 11/1"}, "",
		},
		"all": {
			[]func(*subnet){taken},
			nil,
			[]string{"channel adapter gpu-11", "leaf1/1 to gpu-11/1", "leaf1/2 to gpu-12/1"},
			nil, "",
		},
		"two links of a port": {
			[]func(*subnet){taken, func(s *subnet) { s.unplug(End{1, 1}) }},
			[]string{"leaf1/1"},
			[]string{"channel adapter gpu-11", "leaf1/1 to gpu-11/1", "leaf1/1 to gpu-12/1"},
			[]string{"1/2 12/1"},
			"",
		},
		"a port that is neither": {
			[]func(*subnet){taken}, []string{"leaf1/3"}, nil, nil, "leaf1/3: the link of this port is not missing",
		},
		"swapped uplinks": {
			[]func(*subnet){(*subnet).exchange},
			[]string{"leaf1/3"},
			[]string{"leaf1/3 to spine1/1"},
			[]string{"1/4 4/1"},
			"",
		},
		"swapped uplinks, one of which is gone": {
			[]func(*subnet){(*subnet).exchange, func(s *subnet) { s.unplug(End{1, 3}) }},
			[]string{"spine2/1"},
			[]string{"leaf1/3 to spine1/1", "leaf1/3 to spine2/1", "leaf1/4 to spine2/1"},
			nil, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := leafSpine()
				m := s.monitor()
				m.Full = time.Minute
				startMonitor(t, m)
				for _, change := range tt.changes {
					s.mu.Lock()
					change(s)
					s.mu.Unlock()
					time.Sleep(time.Minute)
					synctest.Wait()
				}
				got, err := m.Accept(t.Context(), tt.names, tt.names == nil)
				if err != nil && err.Error() != tt.err || err == nil && tt.err != "" {
					t.Fatal(err)
				}
				for i, text := range got { // GUIDs aside
					got[i], _, _ = strings.Cut(text, " (")
				}
				if !slices.Equal(got, tt.forgotten) {
					t.Errorf("forgotten %q, want %q", got, tt.forgotten)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				p := m.Picture()
				if left := slices.Concat(namesOf(p.Missing), namesOf(p.Rewired)); err == nil && !slices.Equal(left, tt.left) {
					t.Errorf("left %q, want %q", left, tt.left)
				}
			})
		})
	}
}

// TestAcceptBehind: nodes that only removed links led to are removed, nodes that a remaining link may lead to are not.
func TestAcceptBehind(t *testing.T) {
	hosts := []string{"channel adapter gpu-21", "channel adapter gpu-22", "leaf2/1 to gpu-21/1", "leaf2/2 to gpu-22/1"}
	whole := append(slices.Clone(hosts), "leaf2/3 to spine1/2", "leaf2/4 to spine2/2", "switch leaf2")
	taken := func(s *subnet) {
		s.unplug(End{2, 3})
		s.unplug(End{2, 4})
	}
	for name, tt := range map[string]struct {
		change    func(*subnet)
		names     []string
		all       bool
		forgotten []string
		err       error
		left      int // nodes that are not reached afterwards
	}{
		"all":                   {change: taken, all: true, forgotten: whole},
		"the leaf":              {change: taken, names: []string{"leaf2"}, forgotten: whole},
		"its links":             {change: taken, names: []string{"spine1/2", "spine2/2"}, forgotten: whole},
		"one of its links":      {change: taken, names: []string{"spine1/2"}, forgotten: []string{"leaf2/3 to spine1/2"}, left: 3},
		"a host":                {change: taken, names: []string{"gpu-21"}, forgotten: []string{"channel adapter gpu-21", "leaf2/1 to gpu-21/1"}, left: 2},
		"one that hangs":        {change: func(s *subnet) { s.nodes[2].silent = true }, all: true, left: 3},
		"one that hangs, named": {change: func(s *subnet) { s.nodes[2].silent = true }, names: []string{"leaf2"}, forgotten: whole},
		"a host of two leaves": {
			change: func(s *subnet) {
				taken(s)
				s.nodes[2].ports[5].to = End{} // this port is not queried, since no switch leads to it
			},
			all: true, forgotten: append([]string{"leaf2/5 to gpu-12/2"}, whole...),
		},
		"a host of two leaves, both lost": {
			change: func(s *subnet) {
				taken(s)
				s.unplug(End{1, 3})
				s.unplug(End{1, 4})
				s.nodes[1].ports[2].to = End{}
			},
			all: true, left: 0,
			forgotten: append([]string{
				"leaf2/5 to gpu-12/2", "leaf1/2 to gpu-12/1", "channel adapter gpu-12", "leaf1/3 to spine1/1",
				"leaf1/4 to spine2/1", "switch spine1", "switch spine2",
			}, whole...),
		},
		"the local port": {change: func(s *subnet) { s.unplug(End{9, 1}) }, all: true, err: errNotSeen},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := leafSpine()
				if strings.HasPrefix(name, "a host of two leaves") {
					s.connect(End{12, 2}, End{2, 5})
				}
				m := s.monitor()
				startMonitor(t, m)
				s.mu.Lock()
				tt.change(s)
				s.mu.Unlock()
				time.Sleep(90 * time.Second) // between two sweeps
				synctest.Wait()
				gone, cancel := context.WithCancel(t.Context())
				cancel()
				if got, err := m.Accept(gone, tt.names, tt.all); !errors.Is(err, context.Canceled) {
					t.Errorf("for nobody: %q, %v", got, err)
				}
				got, err := m.Accept(t.Context(), tt.names, tt.all)
				if !errors.Is(err, tt.err) {
					t.Fatal(err)
				}
				for i, text := range got { // GUIDs aside
					got[i], _, _ = strings.Cut(text, " (")
				}
				slices.Sort(tt.forgotten)
				if !slices.Equal(got, tt.forgotten) {
					t.Errorf("forgotten %q, want %q", got, tt.forgotten)
				}
				time.Sleep(time.Minute)
				if n := len(
					regexp.MustCompile(`(?m)^rdma_fabric_node_reachable\{.* 0$`).FindAllString(m.text(), -1),
				); n != tt.left {
					t.Errorf("%d nodes are not reached, want %d", n, tt.left)
				}
			})
		})
	}
}
