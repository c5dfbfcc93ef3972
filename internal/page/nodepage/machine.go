package nodepage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/topo"
	"rdma_exporter/internal/words"
)

// The machine is drawn in pieces, one for each root port, so that it fits a phone: rows below each other, and lines
// from each switch to the boxes below it. Sizes are in pixels of a piece.
const (
	pieceWidth   = 320
	gutter       = 34 // on the right, for the way between a GPU and its NIC
	indent       = 16
	switchHeight = 26
	partHeight   = 46
	markHeight   = 16
	rowGap       = 8
)

// numa is the drawing of a NUMA node.
type numa struct {
	Name   string
	Pieces []piece
}

// piece is the drawing of everything below a root port.
type piece struct {
	Width, Height int
	Name          string
	Rows          []box
	Connectors    []string // SVG paths
	Ways          []way
}

// box is a switch, a GPU or a NIC in a drawing.
type box struct {
	X, Y, W, H  int
	Kind        string // switch, gpu, nic
	Health      page.Health
	Title, Side string // in the first line
	Line        string // the second line
	Mark        string // degraded links on the path
	Way         string // of a GPU, to its best NIC: direct, staging, limited, unknown
	Whole       string // all of it, uncut
	Href        string // the row of the port in the table
	Ports       []chip
}

// chip is a port in the box of its NIC.
type chip struct {
	X      int
	Health page.Health
	Text   string
}

// way is the data path between a GPU and its best NIC.
type way struct {
	D     string
	State string // direct, staging, limited, unknown
}

// drawing is a machine with the state needed to draw it.
type drawing struct {
	m     *topo.Machine
	node  *Node
	ports map[string][]int // indices in node.Ports by device
}

// maxNICs is the number of NICs up to which all are drawn. Of more, such as virtual functions, only those with a fault
// and those next to a GPU are drawn.
const maxNICs = 64

// drawMachine returns the drawings of a machine, and the number of pieces that are left out.
func drawMachine(m *topo.Machine, n *Node) (out []numa, left int) {
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
			if p := d.drawPiece(b); len(m.NICs) <= maxNICs || p.isWorthDrawing() {
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

// isDegraded reports whether a data path is degraded: a device has fewer lanes or a lower speed, a GPU has a finding or
// its data is staged.
func (n numa) isDegraded() bool {
	return slices.ContainsFunc(n.Pieces, func(p piece) bool {
		return slices.ContainsFunc(p.Rows, func(r box) bool {
			return r.Mark != "" ||
				r.Kind == "gpu" && (r.Way == "staging" || r.Health != page.OK && r.Health != page.NotEvaluated)
		})
	})
}

// isWorthDrawing reports whether a piece has a GPU or a fault.
func (p *piece) isWorthDrawing() bool {
	return slices.ContainsFunc(p.Rows, func(r box) bool {
		return r.Kind == "gpu" || slices.Contains([]page.Health{page.Critical, page.Warning, page.Info}, r.Health)
	})
}

// drawPiece returns the drawing of everything below a root port.
func (d *drawing) drawPiece(b topo.Branch) piece {
	p := piece{Width: pieceWidth}
	at := map[string]int{} // row by GPU or device
	d.drawBranch(&p, b, 0, at)
	last := p.Rows[len(p.Rows)-1]
	p.Height = last.Y + last.H + 2
	p.Name = strings.Join(words.Map(p.Rows, func(r box) string { return r.Title }), ", ")
	for i := range d.m.GPUs {
		g := &d.m.GPUs[i]
		from, here := at["gpu "+g.Index]
		if !here || g.Best == nil {
			continue
		}
		d := edgePath(p.Rows[from])
		if to, ok := at["nic "+g.Best.Device]; ok {
			d = arcPath(p.Rows[from], p.Rows[to])
		}
		p.Ways = append(p.Ways, way{D: d, State: findWay(g)})
	}
	return p
}

// drawBranch adds a box for a run of functions to a piece, and the boxes below it.
func (d *drawing) drawBranch(p *piece, b topo.Branch, depth int, at map[string]int) {
	n := b.Run[len(b.Run)-1]
	r := box{X: 1 + depth*indent, Y: 1, H: switchHeight}
	if k := len(p.Rows); k > 0 {
		r.Y = p.Rows[k-1].Y + p.Rows[k-1].H + rowGap
	}
	r.W = pieceWidth - gutter - r.X
	switch gpu, nic := d.findGPU(n.Address), d.findNIC(n.Address); {
	case gpu != nil:
		at["gpu "+gpu.Index] = len(p.Rows)
		d.fillGPU(&r, gpu)
	case nic != nil:
		at["nic "+nic.Device] = len(p.Rows)
		d.fillNIC(&r, nic)
	default:
		r.Kind, r.Title, r.Health = "switch", "PCIe switch ", page.OK
		if !pci.IsAddress(n.Parent) {
			r.Title = "Root port "
		}
		r.Title += d.m.Short(n.Address)
	}
	if r.Side == "" && n.Width != 0 {
		r.Side = fmt.Sprintf("x%d %s", n.Width, words.Transfers(n.Speed))
	}
	r.Whole = page.Shorten(words.Join("; ", r.Title, r.Side, r.Line, r.Mark), page.MaxText)
	r.shortenTexts()
	p.Rows = append(p.Rows, r)
	parent := len(p.Rows) - 1
	for _, next := range b.Next {
		child := len(p.Rows)
		d.drawBranch(p, next, depth+1, at)
		p.Connectors = append(p.Connectors, elbowPath(p.Rows[parent], p.Rows[child]))
	}
}

// findGPU returns the GPU at a PCI address; nil if there is none.
func (d *drawing) findGPU(address string) *topo.GPU {
	if i := slices.IndexFunc(d.m.GPUs, func(g topo.GPU) bool { return g.Address == address }); i >= 0 {
		return &d.m.GPUs[i]
	}
	return nil
}

// findNIC returns the NIC at a PCI address; nil if there is none.
func (d *drawing) findNIC(address string) *topo.NIC {
	if i := slices.IndexFunc(d.m.NICs, func(n topo.NIC) bool { return n.Address == address }); i >= 0 {
		return &d.m.NICs[i]
	}
	return nil
}

// elbowPath returns the path from below the left edge of a box to another box further down.
func elbowPath(a, b box) string {
	return fmt.Sprintf("M%d %dV%dH%d", a.X+indent/2, a.Y+a.H, b.Y+b.H/2, b.X)
}

// edgePath returns the path from the right edge of a box out of the piece.
func edgePath(a box) string { return fmt.Sprintf("M%d %dH%d", a.X+a.W, a.Y+a.H/2, pieceWidth-4) }

// arcPath returns the path from the right edge of a box to the right edge of another box.
func arcPath(a, b box) string {
	x, ya, yb := a.X+a.W, a.Y+a.H/2, b.Y+b.H/2
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x, ya, x+gutter-4, ya, b.X+b.W+gutter-4, yb, b.X+b.W, yb)
}
