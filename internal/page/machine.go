package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/topo"
	"rdma_exporter/internal/words"
)

// The machine is drawn in pieces, one for each root port, so that it fits a phone: rows below each other, and lines
// from each switch to what hangs on it. In pixels of a piece's own.
const (
	pieceWidth   = 320
	gutter       = 34 // on the right, for the way between a GPU and its NIC
	indent       = 16
	switchHeight = 26
	partHeight   = 46
	markHeight   = 16
	rowGap       = 8
	// charWidth is of the letters in use, on the wide side: text is cut rather than run over its box.
	charWidth = 7
)

// numa is what is drawn of a NUMA node.
type numa struct {
	Name   string
	Pieces []piece
}

// piece is a drawing.
type piece struct {
	Width, Height int
	Name          string
	Rows          []row
	Connectors    []string // SVG paths
	Ways          []way
}

// row is a box.
type row struct {
	X, Y, W, H  int
	Kind        string // switch, gpu, nic
	Health      Health
	Title, Side string // in the first line
	Line        string // the second line
	Mark        string // what is narrow on the way
	Way         string // of a GPU, to its best NIC: direct, staging, unknown
	Whole       string // all of it, uncut
	Href        string // the row of the port in the table
	Ports       []chip
}

// chip is a port in the box of its NIC.
type chip struct {
	X      int
	Health Health
	Text   string
}

// way is what becomes of data between a GPU and its best NIC.
type way struct {
	D     string
	State string // direct, staging, unknown
}

// drawing is a machine at work on its pieces.
type drawing struct {
	m     *topo.Machine
	node  *Node
	ports map[string][]int // indices in node.Ports by device
}

// maxNICs is how many NICs are drawn in any case. Of more, as virtual functions are, those in trouble are and those
// beside a GPU.
const maxNICs = 64

// draw makes the picture of a machine, and counts the pieces that are left out.
func draw(m *topo.Machine, n *Node) (out []numa, left int) {
	d := drawing{m: m, node: n, ports: map[string][]int{}}
	for i, p := range n.Ports {
		d.ports[p.Device] = append(d.ports[p.Device], i)
	}
	for _, t := range m.Tree() {
		x := numa{Name: fmt.Sprintf("NUMA node %d", t.ID)}
		if t.ID < 0 {
			x.Name = "NUMA node unknown"
		}
		if t.CPUs != "" {
			x.Name += ", CPUs " + exposition.ValidLabel(t.CPUs)
		}
		for _, b := range t.Branches {
			if p := d.piece(b); len(m.NICs) <= maxNICs || p.notable() {
				x.Pieces = append(x.Pieces, p)
			} else {
				left++
			}
		}
		// Small ones come last, so that they leave no holes.
		slices.SortStableFunc(x.Pieces, func(a, b piece) int { return cmp.Compare(min(2, len(b.Rows)), min(2, len(a.Rows))) })
		out = append(out, x)
	}
	return out, left
}

// wrong reports whether a way of data is degraded: a device with fewer lanes or a lower speed, a GPU with a finding or
// whose data is staged.
func (n numa) wrong() bool {
	return slices.ContainsFunc(n.Pieces, func(p piece) bool {
		return slices.ContainsFunc(p.Rows, func(r row) bool {
			return r.Mark != "" || r.Kind == "gpu" && (r.Way == "staging" || r.Health != OK && r.Health != NotEvaluated)
		})
	})
}

// notable reports whether a piece has a GPU or trouble.
func (p *piece) notable() bool {
	return slices.ContainsFunc(p.Rows, func(r row) bool {
		return r.Kind == "gpu" || slices.Contains([]Health{Critical, Warning, Info}, r.Health)
	})
}

func (d *drawing) piece(b topo.Branch) piece {
	p := piece{Width: pieceWidth}
	at := map[string]int{} // row by GPU or device
	d.branch(&p, b, 0, at)
	last := p.Rows[len(p.Rows)-1]
	p.Height = last.Y + last.H + 2
	p.Name = strings.Join(words.Of(p.Rows, func(r row) string { return r.Title }), ", ")
	for i := range d.m.GPUs {
		g := &d.m.GPUs[i]
		from, here := at["gpu "+g.Index]
		if !here || g.Best == nil {
			continue
		}
		d := away(p.Rows[from])
		if to, ok := at["nic "+g.Best.Device]; ok {
			d = arc(p.Rows[from], p.Rows[to])
		}
		p.Ways = append(p.Ways, way{D: d, State: wayOf(g)})
	}
	return p
}

// branch puts a run of functions into a box, and what hangs on it below.
func (d *drawing) branch(p *piece, b topo.Branch, depth int, at map[string]int) {
	n := b.Run[len(b.Run)-1]
	r := row{X: 1 + depth*indent, Y: 1, H: switchHeight}
	if k := len(p.Rows); k > 0 {
		r.Y = p.Rows[k-1].Y + p.Rows[k-1].H + rowGap
	}
	r.W = pieceWidth - gutter - r.X
	switch gpu, nic := d.gpu(n.Address), d.nic(n.Address); {
	case gpu != nil:
		at["gpu "+gpu.Index] = len(p.Rows)
		d.fillGPU(&r, gpu)
	case nic != nil:
		at["nic "+nic.Device] = len(p.Rows)
		d.fillNIC(&r, nic)
	default:
		r.Kind, r.Title, r.Health = "switch", "PCIe switch ", OK
		if !pci.IsAddress(n.Parent) {
			r.Title = "Root port "
		}
		r.Title += d.m.Short(n.Address)
	}
	if r.Side == "" && n.Width != 0 {
		r.Side = fmt.Sprintf("x%d %s", n.Width, words.Transfers(n.Speed))
	}
	r.Whole = short(words.Join("; ", r.Title, r.Side, r.Line, r.Mark), maxText)
	r.cut()
	p.Rows = append(p.Rows, r)
	parent := len(p.Rows) - 1
	for _, next := range b.Next {
		child := len(p.Rows)
		d.branch(p, next, depth+1, at)
		p.Connectors = append(p.Connectors, elbow(p.Rows[parent], p.Rows[child]))
	}
}

func (d *drawing) gpu(address string) *topo.GPU {
	if i := slices.IndexFunc(d.m.GPUs, func(g topo.GPU) bool { return g.Address == address }); i >= 0 {
		return &d.m.GPUs[i]
	}
	return nil
}

func (d *drawing) nic(address string) *topo.NIC {
	if i := slices.IndexFunc(d.m.NICs, func(n topo.NIC) bool { return n.Address == address }); i >= 0 {
		return &d.m.NICs[i]
	}
	return nil
}

// elbow leads from below the left edge of a box to another further down.
func elbow(a, b row) string {
	return fmt.Sprintf("M%d %dV%dH%d", a.X+indent/2, a.Y+a.H, b.Y+b.H/2, b.X)
}

// away leads from the right edge of a box out of the piece.
func away(a row) string { return fmt.Sprintf("M%d %dH%d", a.X+a.W, a.Y+a.H/2, pieceWidth-4) }

// arc leads from the right edge of a box around to that of another.
func arc(a, b row) string {
	x, ya, yb := a.X+a.W, a.Y+a.H/2, b.Y+b.H/2
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x, ya, x+gutter-4, ya, b.X+b.W+gutter-4, yb, b.X+b.W, yb)
}
