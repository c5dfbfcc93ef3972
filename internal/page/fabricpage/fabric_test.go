package fabricpage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/mad/perf"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/page/pagetest"
)

// edr is 4X EDR.
var edr = mad.Link{Widths: 2, Speeds: 1 << 4}

// tree returns a fabric of leaves with hosts, each with a link to each spine, as a monitor shows it. GUIDs are 0x1000
// on for hosts, 0x2000… for leaves, 0x3000… for spines; ports of a leaf are those of its hosts, then those to the
// spines.
func tree(spines, leaves, hosts int) *fabric.Picture {
	f := &fabric.Fabric{
		At: pagetest.Now(), Took: 2 * time.Second, Nodes: map[fabric.GUID]*fabric.Node{}, Links: map[fabric.End]fabric.End{},
		Unanswered: map[fabric.Question]int{},
	}
	p := &fabric.Picture{Fabric: f, Since: pagetest.Now().Add(-40 * time.Minute), Risen: map[fabric.End]perf.Counters{}}
	node := func(guid int, kind mad.NodeType, name string, ports int) {
		n := &fabric.Node{
			GUID: fabric.GUID(guid), Type: kind, Description: name, NumPorts: ports, Ports: map[int]*fabric.Port{},
		}
		for number := 1; number <= ports; number++ {
			n.Ports[number] = &fabric.Port{Info: mad.PortInfo{
				State: mad.PortActive, PhysicalState: mad.PhysicalLinkUp, Supported: edr, Enabled: edr, Active: edr,
			}}
		}
		f.Nodes[n.GUID] = n
		p.Known.Nodes = append(p.Known.Nodes,
			fabric.KnownNode{GUID: n.GUID, Type: kind, Description: name, Ports: ports, Seen: pagetest.Now()})
	}
	link := func(a, an, b, bn int) {
		x, y := fabric.End{GUID: fabric.GUID(a), Port: an}, fabric.End{GUID: fabric.GUID(b), Port: bn}
		f.Links[x], f.Links[y] = y, x
		p.Known.Links = append(p.Known.Links, fabric.KnownLink{A: x, B: y, Seen: pagetest.Now()})
	}
	for s := range spines {
		node(0x3000+s, mad.Switch, fmt.Sprintf("spine%03d", s), leaves)
	}
	for l := range leaves {
		node(0x2000+l, mad.Switch, fmt.Sprintf("leaf%03d", l), hosts+spines)
		for h := range hosts {
			n := l*hosts + h
			node(0x10000+n, mad.ChannelAdapter, fmt.Sprintf("gpu-%04d mlx5_%d", n/8, n%8), 1)
			link(0x10000+n, 1, 0x2000+l, h+1)
		}
		for s := range spines {
			link(0x2000+l, hosts+s+1, 0x3000+s, l+1)
		}
	}
	f.Managers = []fabric.Manager{
		{Node: 0x10001, Info: mad.SMInfo{GUID: 0x10001, Priority: 14, State: mad.SMStandby}},
		{Node: 0x10000, Info: mad.SMInfo{GUID: 0x10000, Priority: 15, State: mad.SMMaster}},
	}
	return p
}

// unplug removes the link of a port of a leaf, as the leaf reports it.
func unplug(p *fabric.Picture, leaf, port int) {
	e := fabric.End{GUID: fabric.GUID(0x2000 + leaf), Port: port}
	to := p.Fabric.Links[e]
	delete(p.Fabric.Links, e)
	delete(p.Fabric.Links, to)
	p.Fabric.Port(e).Info = mad.PortInfo{State: mad.PortDown, PhysicalState: 2}
	if p.Fabric.Nodes[to.GUID].Type == mad.ChannelAdapter {
		delete(p.Fabric.Nodes, to.GUID)
	}
	p.Missing = append(p.Missing, fabric.KnownLink{A: e, B: to}, fabric.KnownLink{A: to, B: e})
}

// takePort unplugs the cable of a port of a leaf, and puts that of a new host into it.
func takePort(p *fabric.Picture, leaf, port int) {
	e := fabric.End{GUID: fabric.GUID(0x2000 + leaf), Port: port}
	up := *p.Fabric.Port(e)
	to := fabric.End{GUID: 0x99999, Port: 1}
	unplug(p, leaf, port)
	p.Fabric.Port(e).Info = up.Info
	p.Fabric.Nodes[to.GUID] = &fabric.Node{
		GUID: to.GUID, Type: mad.ChannelAdapter, NumPorts: 1, Ports: map[int]*fabric.Port{1: &up},
	}
	p.Fabric.Links[e], p.Fabric.Links[to] = to, e
	p.Known.Nodes = append(p.Known.Nodes,
		fabric.KnownNode{GUID: to.GUID, Type: mad.ChannelAdapter, Description: "new mlx5_0", Ports: 1})
	p.Known.Links = append(p.Known.Links, fabric.KnownLink{A: e, B: to, Seen: pagetest.Now().Add(time.Minute)})
}

// swapPorts swaps the cables of two ports of a leaf.
func swapPorts(p *fabric.Picture, leaf, one, other int) {
	guid := fabric.GUID(0x2000 + leaf)
	a, b := fabric.End{GUID: guid, Port: one}, fabric.End{GUID: guid, Port: other}
	toA, toB := p.Fabric.Links[a], p.Fabric.Links[b]
	p.Rewired = append(p.Rewired, fabric.KnownLink{A: toA, B: a}, fabric.KnownLink{A: toB, B: b})
	for _, l := range [][2]fabric.End{{a, toB}, {b, toA}} {
		p.Fabric.Links[l[0]], p.Fabric.Links[l[1]] = l[1], l[0]
		p.Known.Links = append(p.Known.Links, fabric.KnownLink{A: l[0], B: l[1], Seen: pagetest.Now().Add(time.Minute)})
	}
}

// newInput returns the input for a fabric with some findings.
func newInput(p *fabric.Picture, found ...check.Finding) Input {
	r := &check.Report{Verdict: "ok", Headline: "ok", Findings: found, Seen: check.Seen{Fabric: &check.Fabric{}}}
	for _, f := range slices.Backward(found) {
		r.Verdict, r.Headline = f.Severity, f.Severity
	}
	return Input{
		Exporter: "test", Host: "mgmt", Port: "mlx5_0/1", Interval: time.Minute, Picture: p, Rules: true, Report: r,
		Evaluated: pagetest.Now(),
	}
}

// on returns a finding of an alert, with labels as names and values in turn.
func on(severity, alert, symptom, reason string, labels ...string) check.Finding {
	f := check.Finding{
		Alert: alert, Severity: severity, State: "firing", Since: pagetest.Now(), Summary: alert + " " + reason,
		Drain:  check.DrainNo,
		Labels: map[string]string{"symptom": symptom, "reason": reason, "scope": "link", "where": "there"},
	}
	for i := 0; i < len(labels); i += 2 {
		f.Labels[labels[i]] = labels[i+1]
	}
	return f
}

// degraded returns a finding on a link.
func degraded(reason, guid, port string) check.Finding {
	return on("warning", "RDMAFabricLinkDegraded", "fabric_link_degraded", reason, "node_guid", guid, "port", port)
}

// views returns the functions that render the pages of a fabric.
func views(guid string) map[string]func(*Page, io.Writer, Input) error {
	return map[string]func(*Page, io.Writer, Input) error{
		"first": func(p *Page, w io.Writer, in Input) error {
			return p.Render(w, New(in), pagetest.Now().Add(5*time.Second))
		},
		"links": func(p *Page, w io.Writer, in Input) error {
			return p.RenderLinks(w, New(in), pagetest.Now().Add(5*time.Second), Filter{})
		},
		"switch": func(p *Page, w io.Writer, in Input) error {
			return p.RenderSwitch(w, New(in), pagetest.Now().Add(5*time.Second), guid)
		},
	}
}

func render(t testing.TB, view func(*Page, io.Writer, Input) error, in Input) string {
	t.Helper()
	p, err := NewPage([]page.Link{{Href: "metrics", Text: "Metrics"}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := view(p, &b, in); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestFabricPage: each fault is shown on the first page with both ends of its link, on that of the switch, and in the
// list of all links.
func TestFabricPage(t *testing.T) {
	port := func(p *fabric.Picture, number int) *mad.PortInfo {
		return &p.Fabric.Port(fabric.End{GUID: 0x2000, Port: number}).Info
	}
	for name, c := range map[string]struct {
		change func(*fabric.Picture)
		found  []check.Finding
		word   string
		first  []string
		others []string // on the other pages
	}{
		"well": {
			func(*fabric.Picture) {}, nil, "OK",
			[]string{`class="lead">Nothing is wrong: 0 switches, 0 adapters, 0 links<`, "Last sweep: started 5s ago, took 2s.", "4 switches, 8 adapters, 0 routers, 12 links.", "100 Gb/s 4X EDR</th><td data-label=\"Links\">12<", "master</th><td data-label=\"Node\">gpu-0000 mlx5_0<"},
			[]string{"gpu-0000 mlx5_0/1", "100 Gb/s 4X EDR"},
		},
		"gone": {
			func(p *fabric.Picture) { unplug(p, 0, 2) },
			[]check.Finding{degraded("gone", leaf0, "2")},
			"Warning",
			[]string{"RDMAFabricLinkDegraded", `class="lead">RDMAFabricLinkDegraded gone<`, "<p>1 warning.</p>", `<span class="where">there</span>`, "leaf000/2</a><small>DOWN, Polling", "gpu-0000 mlx5_1/1", "Unreachable nodes", "channel adapter gpu-0000 mlx5_1", "host to leaf: 8 links, 1 gone"},
			[]string{"gone", "DOWN, Polling"},
		},
		"a cable in the port of one that is gone": {
			func(p *fabric.Picture) { takePort(p, 0, 2) },
			[]check.Finding{degraded("gone", leaf0, "2")},
			"Warning",
			[]string{"leaf000/2</a><small>now connected to new mlx5_0/1", "gpu-0000 mlx5_1/1", "1 gone", "8 adapters"},
			[]string{"gone", "now connected to new mlx5_0/1", `data-label="Far end">new mlx5_0/1`},
		},
		"rewired": {
			func(p *fabric.Picture) { swapPorts(p, 0, 1, 2) },
			[]check.Finding{on("info", "RDMAFabricLinkDegraded", "fabric_link_degraded", "rewired", "node_guid", leaf0, "port", "1")},
			"Info",
			[]string{"host to leaf: 8 links, 1 rewired", "12 links."},
			[]string{"rewired"},
		},
		"gone with a host": {
			func(p *fabric.Picture) { unplug(p, 0, 1); unplug(p, 0, 2) },
			[]check.Finding{on("warning", "RDMAFabricLinkDegraded", "fabric_link_degraded", "gone", "scope", "host", "system", "gpu-0000")},
			"Warning",
			[]string{"host to leaf: 8 links, 2 gone", `<li class="warning">`},
			[]string{"gone"},
		},
		"narrow": {
			func(p *fabric.Picture) { port(p, 1).Active.Widths = 1 },
			[]check.Finding{degraded("rate", leaf0, "1")},
			"Warning",
			[]string{"RDMAFabricLinkDegraded", `<td data-label="Rate">25 Gb/s 1X EDR</td><td data-label="Enabled">100 Gb/s 4X EDR</td>`},
			[]string{"degraded"},
		},
		"set apart": {
			func(p *fabric.Picture) {
				for _, e := range []fabric.End{{GUID: 0x2000, Port: 1}, {GUID: 0x10000, Port: 1}} {
					p.Fabric.Port(e).Info.Supported.Widths,
						p.Fabric.Port(e).Info.Enabled.Widths, p.Fabric.Port(e).Info.Active.Widths = 3, 3, 1
				}
				port(p, 1).Enabled.Widths = 1
			}, nil, "OK",
			[]string{"host to leaf: 8 links, 1 with lower settings at one end", "25 Gb/s 1X EDR and 100 Gb/s 4X EDR"},
			[]string{"settings differ"},
		},
		"a switch": {
			func(p *fabric.Picture) {
				delete(p.Fabric.Nodes, 0x3000)
				a, b := fabric.End{GUID: 0x2000, Port: 5}, fabric.End{GUID: 0x3000, Port: 1}
				p.Missing = append(p.Missing, fabric.KnownLink{A: a, B: b})
			},
			[]check.Finding{on("critical", "RDMAFabricSwitchUnreachable", "fabric_switch_unreachable", "switch", "scope", "switch", "node_guid", "0000:0000:0000:3000")},
			"Critical",
			[]string{"RDMAFabricSwitchUnreachable", "switch spine000, last seen", `<a href="switches/0000:0000:0000:3000">spine000</a>`},
			[]string{"switch unreachable"},
		},
		"no manager": {
			func(p *fabric.Picture) { p.Fabric.Managers = p.Fabric.Managers[:1] },
			[]check.Finding{on("critical", "RDMANoSubnetManager", "no_subnet_manager", "fabric", "scope", "host")},
			"Critical",
			[]string{"RDMANoSubnetManager", "standby", `<span class="where">fabric</span>`},
			nil,
		},
		"errors": {
			func(p *fabric.Picture) {
				p.Risen[fabric.End{GUID: 0x2000, Port: 1}] = newRisen(map[perf.Counter]uint64{
					perf.SymbolErrors: 1234, perf.LinkErrorRecoveries: 2, perf.TransmitWait: 9, perf.TransmitData: 3e12,
				})
			},
			[]check.Finding{on("warning", "RDMAFabricLinkErrors", "fabric_link_errors", "errors", "node_guid", leaf0, "port", "1")},
			"Warning",
			[]string{"RDMAFabricLinkErrors", "1 with link errors", "1\u202f234 symbol errors (30.9/min)", "2 link error recoveries (3/h)", "in the last 40m"},
			[]string{"1\u202f234 symbol errors", "link errors"},
		},
		"a sweep failed": {
			func(p *fabric.Picture) { p.Failed = errors.New("no such device") },
			[]check.Finding{on("warning", "RDMAFabricUnseen", "fabric_unseen", "all", "scope", "fabric")},
			"Warning",
			[]string{"RDMAFabricUnseen", "no such device", "<strong>STALE 5s:</strong> no such device", "<title>STALE 5s – Fabric of"},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := tree(2, 2, 4)
			c.change(p)
			in := newInput(p, c.found...)
			pages := views(leaf0)
			html := render(t, pages["first"], in)
			if !strings.Contains(html, `<span class="word">`+c.word+"<") {
				t.Errorf("verdict is not %s", c.word)
			}
			pagetest.Holds(t, "first", html, c.first)
			for _, other := range []string{"links", "switch"} {
				pagetest.Holds(t, other, render(t, pages[other], in), c.others)
			}
		})
	}
	err := views("0000:0000:0000:9999")["switch"](nil, io.Discard, newInput(tree(1, 1, 1)))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "0000:0000:0000:9999") {
		t.Error(err)
	}
}

// newRisen returns counters that have risen from 0.
func newRisen(values map[perf.Counter]uint64) (out perf.Counters) {
	zero := perf.Counters{}
	for k, v := range values {
		zero.Set(k, 0)
		out.Set(k, v)
	}
	return out.Since(&zero)
}

// TestFabricWords: health is shown in words, on each page.
func TestFabricWords(t *testing.T) {
	p := tree(2, 2, 4)
	delete(p.Fabric.Nodes, 0x3000)
	in := newInput(p, on("critical", "RDMAFabricSwitchUnreachable", "fabric_switch_unreachable", "switch",
		"node_guid", "0000:0000:0000:3000"))
	p.Fabric.Unanswered[fabric.AskNode] = 1
	for guid, word := range map[string]string{
		"0000:0000:0000:2000": "OK", "0000:0000:0000:3000": "Critical", "0000:0000:0000:3001": "OK",
	} {
		t.Run(word, func(t *testing.T) {
			for name, view := range views(guid) {
				html := render(t, view, in)
				if name == "switch" {
					pagetest.Holds(t, guid, html, []string{"<title>" + word + ": ", `<span class="word">` + word + "<"})
				}
				if text := regexp.MustCompile("<[^>]*>").ReplaceAllString(html, ""); strings.Contains(text, "not_evaluated") {
					t.Errorf("%s page: %s", name, text)
				}
			}
		})
	}
	in.Rules, in.Report = false, nil
	pagetest.Holds(t, "first", render(t, views("")["first"], in), []string{
		`<span class="h">not evaluated</span>`, `<span class="word">Not evaluated<`, "No rules are evaluated (--no-alerting)",
	})
}

// TestFabricStarting: before the first sweep the page shows remembered nodes, none of them as ok or missing.
func TestFabricStarting(t *testing.T) {
	known := tree(1, 1, 2).Known
	for name, c := range map[string]struct {
		picture fabric.Picture
		want    []string
	}{
		"starting": {fabric.Picture{Known: known}, []string{"Starting", "The first sweep has not finished.", "Known from before: 4 nodes, 3 links."}},
		"unseen":   {fabric.Picture{Known: known, Failed: errors.New("no port")}, []string{"Unknown", "Sweep failed: no port"}},
		"nothing":  {fabric.Picture{}, []string{"Starting", "No switch."}},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{Host: "mgmt", Interval: time.Minute, Picture: &c.picture, Rules: true}
			html := render(t, views("")["first"], in)
			pagetest.Holds(t, name, html, c.want)
			if strings.Contains(html, "0001") || strings.Contains(html, "Subnet manager does") ||
				strings.Contains(html, `<h2 id="h-findings">Findings</h2>\n<p>None`) {
				t.Errorf("%s", html)
			}
			render(t, views("")["links"], in)
		})
	}
}

// TestFabricHostile: names of nodes are shown as text, and shortened.
func TestFabricHostile(t *testing.T) {
	for i, evil := range pagetest.Hostile() {
		p := tree(1, 2, 2)
		for j := range p.Known.Nodes {
			p.Known.Nodes[j].Description = evil
		}
		unplug(p, 0, 1)
		p.Failed = errors.New(evil)
		f := degraded("gone", evil, "1")
		f.Labels["where"] = evil
		in := newInput(p, f)
		in.Host, in.Port = evil, evil
		for name, view := range views("0000:0000:0000:2000") {
			html := render(t, view, in)
			if tags := pagetest.ForeignTags(html); tags != nil {
				t.Errorf("text %d, %s: %q", i, name, tags)
			}
			if at := strings.IndexFunc(html, func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }); at >= 0 {
				t.Errorf("text %d, %s: has %q", i, name, html[at:at+8])
			}
			if len(html) < 1<<10 || len(html) > 60<<10 {
				t.Errorf("text %d, %s: %d bytes", i, name, len(html))
			}
		}
		if _, err := json.Marshal(New(in)); err != nil {
			t.Errorf("text %d: %v", i, err)
		}
	}
}

// large2048 returns a fabric of 2,048 hosts, 96 switches and 4,096 links, all of them degraded and with errors; a spine
// is gone.
func large2048() *fabric.Picture {
	p := tree(32, 64, 32)
	for e := range p.Fabric.Links {
		if p.Fabric.Nodes[e.GUID].Type == mad.Switch {
			p.Fabric.Port(e).Info.Active.Widths = 1
			p.Risen[e] = newRisen(map[perf.Counter]uint64{
				perf.SymbolErrors: 65535, perf.LinkErrorRecoveries: 255, perf.ReceiveErrors: 65535, perf.TransmitData: 1 << 40,
			})
		}
	}
	delete(p.Fabric.Nodes, 0x3000)
	return p
}

// inputLarge returns an input with a finding on each end of a switch in large2048.
func inputLarge() Input {
	p := large2048()
	var found []check.Finding
	for e := range p.Fabric.Links {
		if n := p.Fabric.Nodes[e.GUID]; n != nil && n.Type == mad.Switch {
			found = append(found, degraded("rate", e.GUID.String(), strconv.Itoa(e.Port)))
		}
	}
	return newInput(p, found...)
}

// TestFabricLarge: the page of 2,048 hosts with a fault on every link is bounded, and so is that of a switch.
func TestFabricLarge(t *testing.T) {
	in := inputLarge()
	for name, limit := range map[string]int{"first": 250 << 10, "switch": 100 << 10, "links": 4 << 20} {
		t.Run(name, func(t *testing.T) {
			if html := render(t, views("0000:0000:0000:2000")[name], in); len(html) > limit {
				t.Errorf("%d bytes", len(html))
			} else {
				t.Logf("%d bytes", len(html))
			}
		})
	}
	b, err := json.Marshal(New(in))
	t.Logf("JSON: %d bytes, %v", len(b), err)
	html := render(t, views("")["first"], in)
	pagetest.Holds(t, "first", html,
		[]string{`<a href="links?faulty=1">3982 more links with problems</a>`, "4076 more links have fewer"})
}

func BenchmarkFabric(b *testing.B) {
	in := inputLarge()
	for name, view := range views("0000:0000:0000:2000") {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				render(b, view, in)
			}
		})
	}
}
