package nodepage

import (
	"cmp"
	"fmt"
	"strings"

	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/topo"
	"rdma_exporter/internal/words"
)

// fillGPU fills the box of a GPU.
func (d *drawing) fillGPU(r *box, g *topo.GPU) {
	r.Kind, r.H = "gpu", partHeight
	r.Health, _ = page.FindHealth(d.node.Report, "gpu", g.Index)
	if r.Health == page.OK && !page.IsEvaluated(d.node.Report) {
		r.Health = page.NotEvaluated
	}
	r.Title = words.Join(" ", "GPU "+exposition.ValidLabel(g.Index),
		strings.TrimPrefix(exposition.ValidLabel(g.Model), "NVIDIA "))
	r.Line, r.Way = describeWay(g), findWay(g)
	if r.Way == "staging" && g.Transport != nil {
		r.Health = page.Worst(r.Health, page.Watching) // the alert waits, and is the host's
	}
	r.addMarks(g.Marks)
}

// fillNIC fills the box of a NIC.
func (d *drawing) fillNIC(r *box, n *topo.NIC) {
	r.Kind, r.H = "nic", partHeight
	r.Health, _ = page.FindHealth(d.node.Report, "device", n.Device, "port", "")
	r.Title = exposition.ValidLabel(n.Device)
	r.Side = "no ACTIVE port"
	if n.Active {
		r.Side = page.FormatRate(n.Rate)
	}
	of := d.ports[r.Title]
	if len(of) == 0 {
		r.Line = "unknown: no port could be read"
		r.Health = page.Worst(r.Health, page.NotEvaluated)
	}
	carries := false
	for _, x := range of {
		p := d.node.Ports[x]
		carries = carries || p.Health == page.OK
		r.Health = page.Worst(r.Health, p.Health)
		r.Line = words.Join(", ", r.Line, fmt.Sprintf("port %d %s, %s", p.Number, p.State, p.Health.Word()))
	}
	if carries && (r.Health == page.Inactive || r.Health == page.Ignored) { // one port in use is enough for a NIC
		r.Health = page.OK
	}
	r.Ports = d.listChips(of)
	if len(of) > 0 {
		r.Href = "#" + portID(of[0])
	}
	r.addMarks(n.Marks)
}

// maxChips limits the ports of a NIC that are shown one by one.
const maxChips = 2

// listChips returns the ports of a NIC or, of many, the number of each health.
func (d *drawing) listChips(of []int) (out []chip) {
	if len(of) > maxChips {
		for _, h := range page.Healths() {
			n := 0
			for _, x := range of {
				if d.node.Ports[x].Health == h {
					n++
				}
			}
			if n > 0 {
				out = append(out, chip{Health: h, Text: fmt.Sprintf("%d %s", n, h.Word())})
			}
		}
	} else {
		for _, x := range of {
			p := d.node.Ports[x]
			out = append(out, chip{Health: p.Health, Text: fmt.Sprintf("port %d %s", p.Number, cmp.Or(p.State, "unknown"))})
		}
	}
	for i := 1; i < len(out); i++ {
		out[i].X = out[i-1].X + 22 + len(out[i-1].Text)*page.CharWidth
	}
	return out
}

// addMarks adds the reasons why the connection of a device is slow.
func (r *box) addMarks(marks []string) {
	if len(marks) > 0 {
		r.Mark = exposition.ValidLabel(strings.Join(marks, "; "))
		r.H += markHeight
	}
}

// shortenTexts shortens the texts so that they fit.
func (r *box) shortenTexts() {
	in := (r.W - 40) / page.CharWidth
	r.Side = page.Shorten(r.Side, in)
	r.Title = page.Shorten(r.Title, in-len([]rune(r.Side))-3) // it is bold
	r.Line, r.Mark = page.Shorten(r.Line, in), page.Shorten(r.Mark, in)
}

// pairState returns the data path of a pair: staging if one direction is staging.
func pairState(p *topo.Pair) string {
	for _, state := range []string{"staging", "unknown"} {
		if p.Send == state || p.Receive == state {
			return state
		}
	}
	return "direct"
}

// findWay returns the data path of a GPU: the one of its job, if one is seen, else the possible one: limited if the
// hardware has no direct one. The path of a job that cannot be seen is unknown, even if it could be direct.
func findWay(g *topo.GPU) string {
	could := "unknown"
	if g.Best != nil {
		could = pairState(g.Best)
	}
	if g.Limited() {
		could = "limited"
	}
	if g.Transport == nil {
		return could
	}
	switch g.Transport.State {
	case "staging", "tcp":
		return "staging"
	case "unknown":
		if could == "direct" {
			return "unknown"
		}
	}
	return could
}

// describeWay returns the data path from a GPU to its best NIC in words.
func describeWay(g *topo.GPU) string {
	if g.Best != nil && pairState(g.Best) == "direct" {
		switch findWay(g) {
		case "staging":
			return fmt.Sprintf("job: %s suspected, could be direct", g.Transport.State)
		case "unknown":
			return "job: unknown, could be direct to " + exposition.ValidLabel(g.Best.Device)
		}
	}
	if g.Best == nil {
		return "no NIC: " + g.Words
	}
	nic := exposition.ValidLabel(g.Best.Device)
	distance := cmp.Or(g.Best.Topology, g.Best.Distance)
	switch p := g.Best; {
	case pairState(p) == "direct":
		return fmt.Sprintf("direct to %s (%s)", nic, words.Join(", ", distance, p.Mechanism))
	case p.Receive == "direct" && p.Send == "staging" && !g.Limited():
		return "direct from, staging to " + nic
	case p.Receive == "direct" && p.Send == "staging":
		return "direct from, host memory to " + nic
	case g.Limited():
		return fmt.Sprintf("host memory to %s (%s), by hardware", nic, distance)
	case pairState(p) == "staging":
		return fmt.Sprintf("staging to %s (%s)", nic, distance)
	}
	return fmt.Sprintf("path to %s unknown", nic)
}
