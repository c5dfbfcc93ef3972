package fabric

import (
	"fmt"
	"testing"

	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/site"
)

// ports builds a fabric of links that are up at 4X NDR. Nodes below 100 are switches.
func ports(links ...[2]End) *Fabric {
	f := newFabric(reading{}.at)
	up := mad.PortInfo{
		State: mad.PortActive, PhysicalState: mad.PhysicalLinkUp, Active: mad.Link{Widths: 2, Speeds: 1 << 6},
	}
	up.Enabled, up.Supported = up.Active, up.Active
	for _, l := range links {
		f.connect(l[0], l[1])
		for _, e := range l {
			if f.Nodes[e.GUID] == nil {
				kind := mad.Switch
				if e.GUID >= 100 {
					kind = mad.ChannelAdapter
				}
				f.Nodes[e.GUID] = &Node{GUID: e.GUID, Type: kind, NumPorts: 9, Ports: map[int]*Port{}, named: true}
			}
			f.Nodes[e.GUID].Ports[e.Port] = &Port{Info: up}
		}
	}
	return f
}

// ring returns switches 1 to 4, each with port 1 to the next, port 2 to the one before and port 3 to a host.
func ring() *Fabric {
	return ports([2]End{{1, 1}, {2, 2}}, [2]End{{2, 1}, {3, 2}}, [2]End{{3, 1}, {4, 2}}, [2]End{{4, 1}, {1, 2}},
		[2]End{{1, 3}, {101, 1}}, [2]End{{2, 3}, {102, 1}}, [2]End{{3, 3}, {103, 1}}, [2]End{{4, 3}, {104, 1}},
		[2]End{{3, 4}, {5, 4}}, [2]End{{5, 3}, {105, 1}})
}

const ndr = 400e9 // bits per second

// short writes the nodes as numbers.
func short(loops [][]End) string {
	out := [][][2]int{}
	for _, l := range loops {
		out = append(out, nil)
		for _, e := range l {
			out[len(out)-1] = append(out[len(out)-1], [2]int{int(e.GUID), e.Port})
		}
	}
	return fmt.Sprint(out)
}

func TestLoops(t *testing.T) {
	around := map[End]float64{{1, 1}: .9, {2, 1}: .8, {3, 1}: .7, {4, 1}: .51}
	with := func(e End, share float64) map[End]float64 {
		m := map[End]float64{e: share}
		for x, s := range around {
			if x != e {
				m[x] = s
			}
		}
		return m
	}
	const cycle = "[[[1 1] [2 1] [3 1] [4 1]]]"
	for name, c := range map[string]struct {
		f       *Fabric
		waits   map[End]float64
		traffic map[End]Traffic
		want    string
	}{
		"cycle":                   {ring(), around, nil, cycle},
		"no data":                 {ring(), nil, nil, "[]"},
		"one link waits less":     {ring(), with(End{4, 1}, .5), nil, "[]"},
		"both directions":         {ring(), map[End]float64{{1, 1}: 1, {2, 2}: 1}, nil, "[]"},
		"a slow receiver":         {ring(), with(End{2, 3}, .11), nil, "[]"},
		"a receiver that is not":  {ring(), with(End{2, 3}, .1), nil, cycle},
		"beyond the cycle":        {ring(), map[End]float64{{1, 1}: 1, {2, 1}: 1, {3, 1}: 1, {4, 1}: 1, {3, 4}: 1, {5, 3}: 1}, nil, "[]"},
		"another branch waits":    {ring(), with(End{3, 4}, 1), nil, cycle},
		"a full link to a host":   {ring(), around, map[End]Traffic{{1, 3}: {Transmit: .91 * ndr}}, "[]"},
		"a full link of switches": {ring(), around, map[End]Traffic{{3, 4}: {Transmit: .91 * ndr}}, "[]"},
		"a busy link":             {ring(), around, map[End]Traffic{{1, 3}: {Transmit: .9 * ndr}}, cycle},
		"hosts wait for nothing":  {ring(), with(End{101, 1}, 1), nil, cycle},
		"the other way round":     {ring(), map[End]float64{{1, 2}: 1, {2, 2}: 1, {3, 2}: 1, {4, 2}: 1}, nil, "[[[1 2] [4 2] [3 2] [2 2]]]"},
		"up and down": {
			ports([2]End{{1, 1}, {3, 1}}, [2]End{{1, 2}, {4, 1}}, [2]End{{2, 1}, {3, 2}}, [2]End{{2, 2}, {4, 2}}),
			map[End]float64{{1, 1}: 1, {3, 2}: 1, {2, 2}: 1, {4, 1}: 1},
			nil, "[[[1 1] [3 2] [2 2] [4 1]]]",
		},
		"two cycles": {
			ports([2]End{{1, 1}, {2, 2}}, [2]End{{2, 1}, {3, 2}}, [2]End{{3, 1}, {1, 2}}, [2]End{{11, 1}, {12, 2}}, [2]End{{12, 1}, {13, 2}}, [2]End{{13, 1}, {11, 2}}),
			map[End]float64{{1, 1}: 1, {2, 1}: 1, {3, 1}: 1, {11, 1}: 1, {12, 1}: 1, {13, 1}: 1},
			nil, "[[[1 1] [2 1] [3 1]] [[11 1] [12 1] [13 1]]]",
		},
		"a cycle that leads into another": {
			ports([2]End{{1, 1}, {2, 2}}, [2]End{{2, 1}, {3, 2}}, [2]End{{3, 1}, {1, 2}}, [2]End{{3, 3}, {11, 3}}, [2]End{{11, 1}, {12, 2}}, [2]End{{12, 1}, {13, 2}}, [2]End{{13, 1}, {11, 2}}),
			map[End]float64{{1, 1}: 1, {2, 1}: 1, {3, 1}: 1, {3, 3}: 1, {11, 1}: 1, {12, 1}: 1, {13, 1}: 1},
			nil, "[[[1 1] [2 1] [3 1]]]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := short(c.f.Loops(c.waits, c.traffic)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestLoopsOfALargeFabric: a fabric whose links all wait takes no time to speak of.
func TestLoopsOfALargeFabric(t *testing.T) {
	var links [][2]End
	waits := map[End]float64{}
	for leaf := range 64 {
		for spine := range 32 {
			a, b := End{GUID(1 + leaf), 1 + spine}, End{GUID(70 + spine/2), 1 + leaf + 64*(spine%2)}
			links = append(links, [2]End{a, b})
			waits[a], waits[b] = 1, 1
		}
	}
	f := ports(links...)
	for _, n := range f.Nodes {
		n.NumPorts = 128
	}
	if got := f.Loops(waits, nil); len(got) != 1 || len(got[0]) != 4 {
		t.Errorf("%v", got)
	}
}

func TestLeaves(t *testing.T) {
	const rate = ndr / 8
	built := ports([2]End{{1, 1}, {101, 1}}, [2]End{{1, 2}, {102, 1}}, [2]End{{1, 3}, {5, 1}}, [2]End{{1, 4}, {6, 1}},
		[2]End{{5, 2}, {6, 2}}, [2]End{{7, 1}, {107, 1}})
	m := NewMemory(Data{})
	m.Note(built, built.At)
	for name, c := range map[string]struct {
		change func(f *Fabric)
		want   string
		site   string
	}{
		"the site has a fourth uplink, which was never seen": {func(*Fabric) {}, fmt.Sprint([]Leaf{{1, 2 * rate, 2 * rate, 4 * rate, 2}}), "switches: [{switch: '*:0001', uplinks: 4}]"},
		"the site gave up an uplink": {func(f *Fabric) {
			f.Nodes[1].Ports[4].Info.State, f.Nodes[1].Ports[4].Info.PhysicalState = mad.PortDown, 2
			delete(f.Links, End{1, 4})
			delete(f.Links, End{6, 1})
		}, fmt.Sprint([]Leaf{{1, 2 * rate, rate, rate, 0}}), "switches: [{switch: '0000:0000:0000:0001', uplinks: 1}]"},
		"the site has another leaf":                 {func(*Fabric) {}, fmt.Sprint([]Leaf{{1, 2 * rate, 2 * rate, 2 * rate, 0}}), "switches: [{switch: leaf-2, uplinks: 4}]"},
		"of the site's uplinks one does not answer": {func(f *Fabric) { delete(f.Nodes[1].Ports, 4) }, fmt.Sprint([]Leaf{{1, 2 * rate, rate, rate, 0}}), "switches: [{switch: '*', uplinks: 2}]"},
		"as built": {func(*Fabric) {}, fmt.Sprint([]Leaf{{1, 2 * rate, 2 * rate, 2 * rate, 0}}), ""},
		"an uplink is down": {func(f *Fabric) {
			f.Nodes[1].Ports[4].Info.State, f.Nodes[1].Ports[4].Info.PhysicalState = mad.PortDown, 2
			delete(f.Links, End{1, 4})
			delete(f.Links, End{6, 1})
		}, fmt.Sprint([]Leaf{{1, 2 * rate, rate, 2 * rate, 1}}), ""},
		"an uplink is slower than both ends have enabled": {func(f *Fabric) {
			f.Nodes[1].Ports[4].Info.Active.Widths = 1
		}, fmt.Sprint([]Leaf{{1, 2 * rate, 1.25 * rate, 2 * rate, 0}}), ""},
		"a host is down": {func(f *Fabric) {
			f.Nodes[1].Ports[1].Info.State, f.Nodes[1].Ports[1].Info.PhysicalState = mad.PortDown, 2
		}, fmt.Sprint([]Leaf{{1, rate, 2 * rate, 2 * rate, 0}}), ""},
		"a port that does not answer": {func(f *Fabric) { delete(f.Nodes[1].Ports, 4) }, fmt.Sprint([]Leaf{{1, 2 * rate, rate, rate, 0}}), ""},
		"the leaf does not answer":    {func(f *Fabric) { delete(f.Nodes, 1) }, "[]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := ports([2]End{{1, 1}, {101, 1}}, [2]End{{1, 2}, {102, 1}}, [2]End{{1, 3}, {5, 1}}, [2]End{{1, 4}, {6, 1}},
				[2]End{{5, 2}, {6, 2}}, [2]End{{7, 1}, {107, 1}})
			c.change(f)
			s, err := site.Parse([]byte(c.site))
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(m.leaves(f, s)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
