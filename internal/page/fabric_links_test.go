package page

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/mad"
)

const leaf0 = "0000:0000:0000:2000"

// TestUtilisation: both directions against the rate of the link, from the counters of one end where the other has none;
// grey where it is unknown.
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
			holds(t, view, shown(t, views(leaf0)[view], inputOf(p)),
				[]string{fmt.Sprintf(`data-label="Utilisation"><small class="flat">%s</small>`, want)})
		}
		if t.Failed() {
			t.Logf("port %d", port)
		}
	}
	holds(t, "links", shown(t, views("")["links"], inputOf(p)),
		[]string{"unknown: no 64-bit data counters from these ports"})
	unplug(p, 0, 1)
	holds(t, "links", shown(t, views("")["links"], inputOf(p)),
		[]string{`data-label="Utilisation"><small class="unknown">n/a</small>`})
	holds(t, "first", shown(t, views("")["first"], inputOf(p)), []string{"leaf to spine: 2 links, utilisation up to 50%"})
	delete(p.Fabric.Nodes, 0x3000)
	delete(p.Fabric.Nodes, 0x2001)
	holds(t, "links", shown(t, views("")["links"], inputOf(p)),
		[]string{`data-label="Rate"><small class="unknown">unknown: no answer from either end<`})
	p.Traffic = nil
	holds(t, "links", shown(t, views("")["links"], inputOf(p)),
		[]string{"unknown: fewer than two sweeps with data counters"})
	for _, l := range NewFabric(inputOf(p)).Links {
		if l.Ends[0].Utilisation != nil || l.Ends[1].Utilisation != nil {
			t.Error("a utilisation without traffic")
		}
	}
}

// TestFilter: by a part of a name or a GUID at either end, and by problems.
func TestFilter(t *testing.T) {
	p := tree(2, 2, 4)
	unplug(p, 0, 2)
	f := NewFabric(inputOf(p))
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
			page, err := NewPage(nil)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			if err := page.RenderLinks(&b, f, now(), FilterOf(q)); err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(b.String(), `<th scope="row">`); got != want {
				t.Errorf("%d links, want %d", got, want)
			}
			if tags := foreign(b.String()); tags != nil {
				t.Errorf("%q", tags)
			}
		})
	}
	holds(t, "links", shown(t, views("")["links"], inputOf(p)),
		[]string{"This page is not refreshed without JavaScript.", "<title>Warning: Links of mlx5_0/1 on mgmt</title>"})
	holds(t, "first", shown(t, views("")["first"], inputOf(p)), []string{
		`<noscript><meta http-equiv="refresh" content="60">`,
		`<form class="filter" action="links" method="get" role="search">`, `name="node"`, `name="faulty"`,
	})
}

// TestDiscards: a link whose only fault is discards is on all pages with its count and rate, and its switch is not ok.
func TestDiscards(t *testing.T) {
	p := tree(2, 2, 4)
	e := fabric.End{GUID: 0x2000, Port: 1}
	p.Risen[e] = rose(map[mad.Counter]uint64{mad.TransmitDiscards: 4321})
	in := inputOf(p)
	const want = "4\u202f321 transmit discards (1.8/s)"
	for name, view := range views(leaf0) {
		html := shown(t, view, in)
		holds(t, name, html, []string{want})
		if name == "switch" {
			holds(t, name, html, []string{`<span class="word">Info<`, "discards: 4\u202f321."})
		}
	}
	first := shown(t, views("")["first"], in)
	holds(t, "first", first, []string{
		"1 link with errors or discards below the limits of the alerts.", "leaf000/1 to gpu-0000 mlx5_0/1",
		`data-label="Discards">4` + "\u202f321<",
	})
	for _, s := range NewFabric(in).Switches {
		if r := s.row(); (r.Health == OK) != (s.GUID != leaf0) {
			t.Errorf("%s is %s", s.Node, r.Health)
		}
	}
	// What stood before the first sweep is on the page of the switch.
	c := &mad.Counters{}
	c.Set(mad.TransmitDiscards, 99)
	p.Fabric.Port(fabric.End{GUID: 0x2000, Port: 2}).Counters = c
	holds(t, "switch", shown(t, views(leaf0)["switch"], inputOf(p)),
		[]string{"<small>not risen: 99 transmit discards</small>"})
}

// TestErrorLimits: from the limits of the alerts on, a switch with errors on its ports warns; below it is not ok
// either.
func TestErrorLimits(t *testing.T) {
	for name, c := range map[string]struct {
		rises map[mad.Counter]uint64
		want  Health
		alert string
	}{
		"a symbol error":    {map[mad.Counter]uint64{mad.SymbolErrors: 1}, Info, ""},
		"symbol errors":     {map[mad.Counter]uint64{mad.SymbolErrors: 121}, Warning, "RDMAFabricLinkErrors"},
		"a recovery":        {map[mad.Counter]uint64{mad.LinkErrorRecoveries: 1}, Info, ""},
		"recoveries":        {map[mad.Counter]uint64{mad.LinkErrorRecoveries: 2}, Warning, "RDMAFabricLinkErrors"},
		"receive errors":    {map[mad.Counter]uint64{mad.ReceiveErrors: 121}, Warning, "RDMAFabricLinkErrors"},
		"a few of them":     {map[mad.Counter]uint64{mad.ReceiveErrors: 120}, Info, ""},
		"of an earlier hop": {map[mad.Counter]uint64{mad.ReceiveErrors: 500, mad.ReceiveRemotePhysicalErrors: 380}, Info, ""},
		"flapping":          {map[mad.Counter]uint64{mad.LinkDowned: 3, mad.SymbolErrors: 999}, Warning, "RDMAFabricLinkDegraded"},
		"traffic":           {map[mad.Counter]uint64{mad.TransmitData: 9, mad.TransmitWait: 9}, OK, ""},
		"with lower limits": {map[mad.Counter]uint64{mad.LinkDowned: 2}, Info, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := tree(2, 2, 4)
			p.Risen[fabric.End{GUID: 0x2000, Port: 1}] = rose(c.rises)
			f := NewFabric(inputOf(p))
			for _, s := range f.Switches {
				if s.GUID == leaf0 && s.row().Health != c.want {
					t.Errorf("switch is %s, want %s", s.row().Health, c.want)
				}
			}
			v := fabricView{Fabric: f}
			v.facts()
			if c.want != OK && (len(v.Facts) != 1 || v.Facts[0].Alert != c.alert || v.Facts[0].Health != c.want) ||
				c.want == OK && v.Facts != nil {
				t.Errorf("%+v", v.Facts)
			}
		})
	}
}

// TestAdvice: a finding has the command, the action and the drain of its rule, for the first of its links.
func TestAdvice(t *testing.T) {
	p := tree(2, 2, 4)
	unplug(p, 0, 2)
	holds(t, "first", shown(t, views("")["first"], inputOf(p)), []string{
		`<span class="where">leaf000/2 to gpu-0000 mlx5_1/1</span>`,
		"<dt>Diagnose</dt><dd><pre><code>lid=$(ibnetdiscover | awk -v RS= &#39;/-0000000000002000&#34;",
		` ; smpquery portinfo &#34;$lid&#34; 2 | grep Link</code></pre></dd>`,
		"<dt>Action</dt><dd>Check that the host at the other end is up.",
		"rdma_exporter accept 0000:0000:0000:2000/2 on mgmt", "<dt>Drain</dt><dd>no. A host that has lost a port",
		`<a href="runbooks/RDMAFabricLinkDegraded">Runbook</a>`,
	})
}

// TestOversubscription: a leaf shows its ratio, and is a finding where it has lost a fifth of its uplinks and its hosts
// no longer fit. A suspected credit loop is one.
func TestOversubscription(t *testing.T) {
	p := tree(2, 3, 4)
	p.Leaves = []fabric.Leaf{
		{GUID: 0x2000, Down: 4, Up: 3.2, Expected: 4}, // not less than 80%
		{GUID: 0x2001, Down: 3, Up: 3.1, Expected: 4, Missing: 1},
		{GUID: 0x2002, Down: 4, Up: 0, Missing: 4}, // unknown
	}
	const finding = "RDMAFabricOversubscribed"
	first := shown(t, views("")["first"], inputOf(p))
	holds(t, "first", first, []string{`<td data-label="Oversubscription"><small>1.2:1</small>`, `<small>1.0:1</small>`})
	if strings.Contains(first, finding) || strings.Contains(first, "credit loop") {
		t.Error("a finding")
	}
	p.Leaves[1].Down = 3.2
	p.Loops = [][]fabric.End{
		{{GUID: 0x2000, Port: 5}, {GUID: 0x3000, Port: 2}, {GUID: 0x2001, Port: 6}, {GUID: 0x3001, Port: 1}},
	}
	p.Waits = map[fabric.End]float64{{GUID: 0x2000, Port: 5}: 0.75}
	holds(t, "first", shown(t, views("")["first"], inputOf(p)), []string{
		`<span class="where">leaf001</span>`, "1 leaf switch has lost uplinks and is oversubscribed.",
		"iblinkinfo -S 0x0000000000002001", "runbooks/" + finding,
		`<span class="where">leaf000/5 and 3 more</span>`, "1 credit loop suspected.",
	})
	for _, l := range NewFabric(inputOf(p)).Links {
		for _, e := range l.Ends {
			if is := e.Wait != nil && *e.Wait == 0.75; is != (e.Node == "leaf000" && e.Port == 5) {
				t.Errorf("%s/%d waits %v", e.Node, e.Port, e.Wait)
			}
		}
	}
}

// TestMap: switches by hops from hosts, each with its health and a way to its page, links with problems in colour.
func TestMap(t *testing.T) {
	p := tree(2, 3, 4)
	// A core above the spines; adapters of switches are no hosts.
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
	f := NewFabric(inputOf(p))
	for _, s := range f.Switches {
		want := map[string]int{"M": 1, "l": 1, "s": 2, "c": 3}[s.Node[:1]]
		if s.Tier != want {
			t.Errorf("%s has tier %d, want %d", s.Node, s.Tier, want)
		}
	}
	html := shown(t, views("")["first"], inputOf(p))
	_, drawing, _ := strings.Cut(html, `<svg class="map wide"`)
	drawing, _, _ = strings.Cut(drawing, "</svg>")
	holds(t, "map", drawing, []string{
		">core: 1<", ">spine: 2<", ">leaf: 3<", `<path class="warning" d="`, "leaf001 to spine000: 1 link, 1 degraded",
		`<a href="switches/0000:0000:0000:2001"><g class="warning"`, `<a href="switches/0000:0000:0000:2000"><g class="ok"`,
		"<title>leaf001: warning, 1 degraded</title>", ">leaf-a<", // of MF0;leaf-a:MQM9700/U1
	})
	if got := strings.Count(drawing, "<path"); got != 8 {
		t.Errorf("%d lines, want 6 from leaves and 2 to the core", got)
	}
	holds(t, "first", html,
		[]string{"host to leaf: 12 links<", "leaf to spine: 6 links, 1 degraded", `<svg class="map narrow"`})
}

// TestMapLarge: 200 switches are all drawn, within their drawing and apart; of lines those with problems only. More
// switches are left out but those with problems.
func TestMapLarge(t *testing.T) {
	p := tree(72, 128, 16)
	p.Fabric.Port(fabric.End{GUID: 0x2001, Port: 17}).Info.Active.Widths = 1
	m := NewFabric(inputOf(p)).drawMap()
	for _, d := range m.Drawings {
		boxes := 0
		for _, tier := range d.Tiers {
			for _, b := range tier.Boxes {
				boxes++
				if b.X < 0 || b.X+b.W > d.Width || b.Y < tier.Y || b.Y+b.H > d.Height {
					t.Fatalf("%s: %+v outside of %d x %d", d.Class, b, d.Width, d.Height)
				}
				if letters := len([]rune(b.Name + b.Side)); letters*charWidth > b.W {
					t.Errorf("%s: %q does not fit", d.Class, b.Name)
				}
			}
		}
		if boxes != 200 || len(d.Ways) != 1 || d.Ways[0].Health != Warning {
			t.Errorf("%s: %d boxes, %+v", d.Class, boxes, d.Ways)
		}
		if d.Class == "wide" && d.Height > 1000 {
			t.Errorf("%d high", d.Height)
		}
	}
	if html := shown(t, views("")["first"], inputOf(p)); len(html) > 250<<10 {
		t.Errorf("%d bytes", len(html))
	}
	p = tree(100, 200, 1)
	p.Fabric.Port(fabric.End{GUID: 0x2001, Port: 2}).Info.Active.Widths = 1
	if m := NewFabric(inputOf(p)).drawMap(); m.NotDrawn != 298 || len(m.Drawings[0].Tiers) != 2 {
		t.Errorf("%d of 300 not drawn", m.NotDrawn)
	}
	names := regexp.MustCompile(`^.{3}….{6}$`)
	if got := middle("MF0;rack12-leaf-a:MQM9700/U1", 10); !names.MatchString(got) || !strings.HasSuffix(got, "700/U1") {
		t.Errorf("%q", got)
	}
}
