package page

import (
	"cmp"
	"fmt"
	"strings"

	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/topo"
	"rdma_exporter/internal/words"
)

func (d *drawing) fillGPU(r *row, g *topo.GPU) {
	r.Kind, r.H = "gpu", partHeight
	r.Health, _ = found(d.node.Report, "gpu", g.Index)
	if r.Health == OK && !evaluated(d.node.Report) {
		r.Health = NotEvaluated
	}
	r.Title = words.Join(" ", "GPU "+exposition.ValidLabel(g.Index),
		strings.TrimPrefix(exposition.ValidLabel(g.Model), "NVIDIA "))
	r.Line, r.Way = wayText(g), wayOf(g)
	if r.Way == "staging" && g.Transport != nil {
		r.Health = worst(r.Health, Watching) // the alert waits, and is the host's
	}
	r.mark(g.Marks)
}

func (d *drawing) fillNIC(r *row, n *topo.NIC) {
	r.Kind, r.H = "nic", partHeight
	r.Health, _ = found(d.node.Report, "device", n.Device, "port", "")
	r.Title = exposition.ValidLabel(n.Device)
	r.Side = "no ACTIVE port"
	if n.Active {
		r.Side = bits(n.Rate)
	}
	of := d.ports[r.Title]
	if len(of) == 0 {
		r.Line = "unknown: no port could be read"
		r.Health = worst(r.Health, NotEvaluated)
	}
	carries := false
	for _, x := range of {
		p := d.node.Ports[x]
		carries = carries || p.Health == OK
		r.Health = worst(r.Health, p.Health)
		r.Line = words.Join(", ", r.Line, fmt.Sprintf("port %d %s, %s", p.Number, p.State, p.Health.Word()))
	}
	if carries && (r.Health == Inactive || r.Health == Ignored) { // one port in use is enough for a NIC
		r.Health = OK
	}
	r.Ports = d.chips(of)
	if len(of) > 0 {
		r.Href = "#" + portID(of[0])
	}
	r.mark(n.Marks)
}

// maxChips is how many ports of a NIC are shown one by one.
const maxChips = 2

// chips are the ports of a NIC, or of many how many there are of each health.
func (d *drawing) chips(of []int) (out []chip) {
	if len(of) > maxChips {
		for _, h := range healths {
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
		out[i].X = out[i-1].X + 22 + len(out[i-1].Text)*charWidth
	}
	return out
}

func (r *row) mark(marks []string) {
	if len(marks) > 0 {
		r.Mark = exposition.ValidLabel(strings.Join(marks, "; "))
		r.H += markHeight
	}
}

// cut makes the texts fit.
func (r *row) cut() {
	in := (r.W - 40) / charWidth
	r.Side = short(r.Side, in)
	r.Title = short(r.Title, in-len([]rune(r.Side))-3) // it is bold
	r.Line, r.Mark = short(r.Line, in), short(r.Mark, in)
}

// stateOf is the data path of a pair: staging if one direction is.
func stateOf(p *topo.Pair) string {
	for _, state := range []string{"staging", "unknown"} {
		if p.Send == state || p.Receive == state {
			return state
		}
	}
	return "direct"
}

// wayOf is what becomes of a GPU's data: what a job makes of it, where one is seen, else what it could. What a job
// makes of it and cannot be seen is not known, though it could be direct.
func wayOf(g *topo.GPU) string {
	could := "unknown"
	if g.Best != nil {
		could = stateOf(g.Best)
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

// wayText is the verdict on the way from a GPU to its best NIC.
func wayText(g *topo.GPU) string {
	if g.Best != nil && stateOf(g.Best) == "direct" {
		switch wayOf(g) {
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
	case stateOf(p) == "direct":
		return fmt.Sprintf("direct to %s (%s)", nic, words.Join(", ", distance, p.Mechanism))
	case p.Receive == "direct" && p.Send == "staging":
		return "direct from, staging to " + nic
	case stateOf(p) == "staging":
		return fmt.Sprintf("staging to %s (%s)", nic, distance)
	}
	return fmt.Sprintf("path to %s unknown", nic)
}
