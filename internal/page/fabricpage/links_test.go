package fabricpage

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/mad/perf"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/page/pagetest"
)

const leaf0 = "0000:0000:0000:2000"

// TestUtilisation: both directions are shown as a share of the link's rate, from the counters of one end if the other
// has none; an unknown utilisation is grey.
func TestUtilisation(t *testing.T) {
	p := tree(1, 2, 2)
	p.Traffic = map[fabric.End]fabric.Traffic{
		{GUID: 0x2000, Port: 1}: {Transmit: 25e9, Receive: 100e9},
		{GUID: 0x2000, Port: 2}: {},
		{GUID: 0x2000, Port: 3}: {Transmit: 50e9, Receive: 1},
		{GUID: 0x3000, Port: 1}: {Transmit: 10e9, Receive: 1},
	}
	for port, want := range map[int]string{1: "→ 25% ← 100%", 2: "→ 0% ← 0%", 3: "→ 50% ← 10%"} {
		for _, view := range []string{"links", "switch"} {
			pagetest.Holds(t, view, render(t, views(leaf0)[view], newInput(p)),
				[]string{fmt.Sprintf(`data-label="Utilisation"><small class="flat">%s</small>`, want)})
		}
		if t.Failed() {
			t.Logf("port %d", port)
		}
	}
	pagetest.Holds(t, "links", render(t, views("")["links"], newInput(p)),
		[]string{"unknown: no 64-bit data counters from these ports"})
	unplug(p, 0, 1)
	pagetest.Holds(t, "links", render(t, views("")["links"], newInput(p)),
		[]string{`data-label="Utilisation"><small class="unknown">n/a</small>`})
	pagetest.Holds(
		t,
		"first",
		render(t, views("")["first"], newInput(p)),
		[]string{"leaf to spine: 2 links, utilisation up to 50%"},
	)
	delete(p.Fabric.Nodes, 0x3000)
	delete(p.Fabric.Nodes, 0x2001)
	pagetest.Holds(t, "links", render(t, views("")["links"], newInput(p)),
		[]string{`data-label="Rate"><small class="unknown">unknown: no answer from either end<`})
	p.Traffic = nil
	pagetest.Holds(t, "links", render(t, views("")["links"], newInput(p)),
		[]string{"unknown: fewer than two sweeps with data counters"})
	for _, l := range New(newInput(p)).Links {
		if l.Ends[0].Utilisation != nil || l.Ends[1].Utilisation != nil {
			t.Error("a utilisation without traffic")
		}
	}
}

// TestFilter: links can be filtered by a part of a name or a GUID at either end, and by problems.
func TestFilter(t *testing.T) {
	p := tree(2, 2, 4)
	unplug(p, 0, 2)
	in := newInput(p, degraded("gone", leaf0, "2"))
	f := New(in)
	for query, want := range map[string]int{
		"": 12, "node=LEAF000": 6, "node=mlx5_1": 1, "node=0000:0000:0000:3001": 2, "node=+spine001+": 2, "faulty=1": 1,
		"node=spine&faulty=1": 0, "node=none": 0, "other=x": 12,
		"node=" + url.QueryEscape("<script>"): 0,
	} {
		t.Run(query, func(t *testing.T) {
			q, err := url.ParseQuery(query)
			if err != nil {
				t.Fatal(err)
			}
			p, err := NewPage(nil)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			if err := p.RenderLinks(&b, f, pagetest.Now(), ParseFilter(q)); err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(b.String(), `<th scope="row">`); got != want {
				t.Errorf("%d links, want %d", got, want)
			}
			if tags := pagetest.ForeignTags(b.String()); tags != nil {
				t.Errorf("%q", tags)
			}
		})
	}
	pagetest.Holds(t, "links", render(t, views("")["links"], in),
		[]string{"This page is not refreshed without JavaScript.", "<title>Warning: Links of mlx5_0/1 on mgmt</title>"})
	pagetest.Holds(t, "first", render(t, views("")["first"], in), []string{
		`<noscript><meta http-equiv="refresh" content="60">`,
		`<form class="filter" action="links" method="get" role="search">`, `name="node"`, `name="faulty"`,
	})
}

// TestLinksOfSwitch: links whose switch has the finding have its problem, at either end; the others have none.
func TestLinksOfSwitch(t *testing.T) {
	const symptom = "fabric_link_errors"
	in := newInput(tree(2, 2, 4),
		on("warning", "RDMAFabricLinkErrors", symptom, "errors", "scope", "switch", "node_guid", leaf0))
	for _, reason := range []string{"errors", "receive"} {
		in.Parts = append(in.Parts, map[string]string{
			"node_guid": "0000:0000:0000:3000", "port": "1", "end_guid": leaf0, "symptom": symptom, "reason": reason,
		})
	}
	for _, l := range New(in).Links {
		faulty := slices.ContainsFunc(l.Ends[:], func(e LinkEnd) bool { return e.end == fabric.End{GUID: 0x3000, Port: 1} })
		if faulty != (l.Problem == "link_errors") || faulty != (l.Health == page.Warning) || faulty != (len(l.Alerts) == 1) {
			t.Errorf("%v: %q, %s, %v", l.Ends, l.Problem, l.Health, l.Alerts)
		}
	}
}

// TestDiscards: discards are on all pages with their count and rate. Only a finding makes them a fault.
func TestDiscards(t *testing.T) {
	p := tree(2, 2, 4)
	e := fabric.End{GUID: 0x2000, Port: 1}
	p.Risen[e] = newRisen(map[perf.Counter]uint64{perf.TransmitDiscards: 4321})
	const want = "4\u202f321 transmit discards (1.8/s)"
	for word, in := range map[string]Input{
		"OK":   newInput(p),
		"Info": newInput(p, on("info", "RDMAFabricLinkErrors", "fabric_link_errors", "counters", "node_guid", leaf0, "port", "1")),
	} {
		for name, view := range views(leaf0) {
			html := render(t, view, in)
			pagetest.Holds(t, name, html, []string{want})
			if name == "switch" {
				pagetest.Holds(t, name, html, []string{`<span class="word">` + word + "<", "discards: 4\u202f321."})
			}
		}
		pagetest.Holds(t, "first", render(t, views("")["first"], in), []string{`data-label="Discards">4` + "\u202f321<"})
		for _, s := range New(in).Switches {
			if faulty := word == "Info" && s.GUID == leaf0; (s.Health == page.OK) == faulty {
				t.Errorf("%s: %s is %s", word, s.Node, s.Health)
			}
		}
	}
	// Counts from before the first sweep are on the page of the switch.
	c := &perf.Counters{}
	c.Set(perf.TransmitDiscards, 99)
	p.Fabric.Port(fabric.End{GUID: 0x2000, Port: 2}).Counters = c
	pagetest.Holds(t, "switch", render(t, views(leaf0)["switch"], newInput(p)),
		[]string{"<small>not risen: 99 transmit discards</small>"})
}

// TestOversubscription: a leaf shows its ratio; only a finding makes it a fault. The share of waiting is in the JSON.
func TestOversubscription(t *testing.T) {
	p := tree(2, 3, 4)
	p.Leaves = []fabric.Leaf{
		{GUID: 0x2000, Down: 4, Up: 3.2, Expected: 4},
		{GUID: 0x2001, Down: 3, Up: 3.1, Expected: 4, Missing: 1},
		{GUID: 0x2002, Down: 4, Up: 0, Missing: 4}, // unknown
	}
	p.Waits = map[fabric.End]float64{{GUID: 0x2000, Port: 5}: 0.75}
	in := newInput(p,
		on("info", "RDMAFabricOversubscribed", "fabric_oversubscribed", "uplinks", "scope", "switch", "node_guid", leaf0))
	pagetest.Holds(t, "first", render(t, views("")["first"], in), []string{
		`<td data-label="Oversubscription"><small>1.2:1</small>`, `<small>1.0:1</small>`, "runbooks/RDMAFabricOversubscribed",
	})
	f := New(in)
	for _, s := range f.Switches {
		if (s.Health == page.Info) != (s.GUID == leaf0) {
			t.Errorf("%s is %s", s.Node, s.Health)
		}
	}
	for _, l := range f.Links {
		for _, e := range l.Ends {
			if is := e.Wait != nil && *e.Wait == 0.75; is != (e.Node == "leaf000" && e.Port == 5) {
				t.Errorf("%s/%d waits %v", e.Node, e.Port, e.Wait)
			}
		}
	}
}

// TestMap: the map has switches by hops from hosts, each with its health and a link to its page; links with problems
// are coloured.
func TestMap(t *testing.T) {
	p := tree(2, 3, 4)
	// A core above the spines. Adapters of switches are not hosts.
	add := func(guid int, kind mad.NodeType, name string) {
		p.Known.Nodes = append(p.Known.Nodes,
			fabric.KnownNode{GUID: fabric.GUID(guid), Type: kind, Description: name, Ports: 2})
		p.Fabric.Nodes[fabric.GUID(guid)] = &fabric.Node{GUID: fabric.GUID(guid), Type: kind, Description: name, NumPorts: 2}
	}
	add(0x4000, mad.Switch, "core0")
	add(0x5000, mad.ChannelAdapter, "Quantum Mellanox Technologies Aggregation Node")
	for i, to := range []int{0x3000, 0x3001, 0x5000} {
		p.Known.Links = append(p.Known.Links,
			fabric.KnownLink{A: fabric.End{GUID: fabric.GUID(to), Port: 9}, B: fabric.End{GUID: 0x4000, Port: i + 1}})
	}
	p.Fabric.Port(fabric.End{GUID: 0x2001, Port: 5}).Info.Active.Widths = 1 // to spine000
	for i := range p.Known.Nodes {
		if p.Known.Nodes[i].GUID == 0x2002 {
			p.Known.Nodes[i].Description = "MF0;leaf-a:MQM9700/U1"
		}
	}
	in := newInput(p, degraded("rate", "0000:0000:0000:2001", "5"))
	f := New(in)
	for _, s := range f.Switches {
		want := map[string]int{"M": 1, "l": 1, "s": 2, "c": 3}[s.Node[:1]]
		if s.Tier != want {
			t.Errorf("%s has tier %d, want %d", s.Node, s.Tier, want)
		}
	}
	html := render(t, views("")["first"], in)
	_, drawing, _ := strings.Cut(html, `<svg class="map wide"`)
	drawing, _, _ = strings.Cut(drawing, "</svg>")
	pagetest.Holds(t, "map", drawing, []string{
		">core: 1<", ">spine: 2<", ">leaf: 3<", `<path class="warning" d="`, "leaf001 to spine000: 1 link, 1 degraded",
		`<a href="switches/0000:0000:0000:2001"><g class="warning"`, `<a href="switches/0000:0000:0000:2000"><g class="ok"`,
		"<title>leaf001: warning, 1 degraded</title>", ">leaf-a<", // of MF0;leaf-a:MQM9700/U1
	})
	if got := strings.Count(drawing, "<path"); got != 8 {
		t.Errorf("%d lines, want 6 from leaves and 2 to the core", got)
	}
	pagetest.Holds(t, "first", html,
		[]string{"host to leaf: 12 links<", "leaf to spine: 6 links, 1 degraded", `<svg class="map narrow"`})
}

// TestMapLarge: 200 switches are all drawn, inside the drawing and without overlap, but only lines with problems. Of
// more switches only those with problems are drawn.
func TestMapLarge(t *testing.T) {
	p := tree(72, 128, 16)
	p.Fabric.Port(fabric.End{GUID: 0x2001, Port: 17}).Info.Active.Widths = 1
	narrow := func(port string) check.Finding { return degraded("rate", "0000:0000:0000:2001", port) }
	m := New(newInput(p, narrow("17"))).drawMap()
	for _, d := range m.Drawings {
		boxes := 0
		for _, tier := range d.Tiers {
			for _, b := range tier.Boxes {
				boxes++
				if b.X < 0 || b.X+b.W > d.Width || b.Y < tier.Y || b.Y+b.H > d.Height {
					t.Fatalf("%s: %+v outside of %d x %d", d.Class, b, d.Width, d.Height)
				}
				if letters := len([]rune(b.Name + b.Side)); letters*page.CharWidth > b.W {
					t.Errorf("%s: %q does not fit", d.Class, b.Name)
				}
			}
		}
		if boxes != 200 || len(d.Ways) != 1 || d.Ways[0].Health != page.Warning {
			t.Errorf("%s: %d boxes, %+v", d.Class, boxes, d.Ways)
		}
		if d.Class == "wide" && d.Height > 1000 {
			t.Errorf("%d high", d.Height)
		}
	}
	if html := render(t, views("")["first"], newInput(p, narrow("17"))); len(html) > 250<<10 {
		t.Errorf("%d bytes", len(html))
	}
	p = tree(100, 200, 1)
	p.Fabric.Port(fabric.End{GUID: 0x2001, Port: 2}).Info.Active.Widths = 1
	if m := New(newInput(p, narrow("2"))).drawMap(); m.NotDrawn != 298 || len(m.Drawings[0].Tiers) != 2 {
		t.Errorf("%d of 300 not drawn", m.NotDrawn)
	}
	names := regexp.MustCompile(`^.{3}….{6}$`)
	if got := cutMiddle("MF0;rack12-leaf-a:MQM9700/U1", 10); !names.MatchString(got) || !strings.HasSuffix(got, "700/U1") {
		t.Errorf("%q", got)
	}
}
