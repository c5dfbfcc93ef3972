package fabricpage

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/words"
)

// fabricMap is the drawing of the switches by tier, hosts at the bottom.
type fabricMap struct {
	Drawings []mapDrawing // for a screen, and for a phone
	Pairs    []mapPair    // tiers, the lowest first
	NotDrawn int          // switches without problems, since there are too many
	MoreWays int          // pairs of switches with problems that have no line
}

// mapDrawing is an SVG in its own pixels.
type mapDrawing struct {
	Class         string
	Width, Height int
	Ways          []mapWay
	Tiers         []mapTier
}

// mapTier is a row of switches in the drawing.
type mapTier struct {
	Name  string
	Y     int // of the name
	Boxes []mapBox
}

// mapBox is a switch in the drawing.
type mapBox struct {
	X, Y, W, H              int
	Href, Name, Side, Whole string
	Health                  page.Health
}

// mapWay is the line for the links between two switches.
type mapWay struct {
	D, Whole string
	Health   page.Health
	Width    int
}

// mapPair sums up the links between two tiers.
type mapPair struct {
	Health page.Health
	Text   string
}

// Bounds of the drawing, beyond which it would not be readable.
const (
	maxBoxes   = 256
	maxWays    = 60
	maxAllWays = 120 // up to here pairs of switches without problems have lines as well
)

// mapSizes are the sizes of the boxes: on a screen, and on a phone, where the drawing is about as wide as the window.
var mapSizes = []struct {
	class                  string
	columns, width, height int
}{{"wide", 10, 118, 26}, {"narrow", 3, 112, 30}}

const (
	mapGap     = 6
	tierGap    = 44 // between tiers, for the lines
	tierHeader = 20
)

// drawMap returns the drawings of the switches and the links between them.
func (f *Fabric) drawMap() (m fabricMap) {
	bundles := f.groupLinks()
	m.Pairs = f.sumPairs()
	shown := f.chooseSwitches()
	m.NotDrawn = len(f.Switches) - len(shown)
	drawn := bundles
	if len(bundles) > maxAllWays {
		drawn = slices.DeleteFunc(bundles, func(b bundle) bool { return b.problem == "" || b.problem == unreachableSwitch })
		m.MoreWays = max(0, len(drawn)-maxWays)
		drawn = drawn[:len(drawn)-m.MoreWays]
	}
	for _, size := range mapSizes {
		d := mapDrawing{Class: size.class, Width: size.columns*(size.width+mapGap) - mapGap + 2}
		boxes := d.placeTiers(shown, size.columns, size.width, size.height)
		for _, b := range drawn {
			d.drawWay(b, boxes)
		}
		slices.Reverse(d.Ways) // the worst on top
		if len(shown) > 0 {
			m.Drawings = append(m.Drawings, d)
		}
	}
	return m
}

// chooseSwitches returns the switches that are drawn: all, or of too many those with problems.
func (f *Fabric) chooseSwitches() (out []*Switch) {
	for i := range f.Switches {
		out = append(out, &f.Switches[i])
	}
	if len(out) > maxBoxes {
		out = slices.DeleteFunc(out, func(s *Switch) bool { return s.newRow().Health == page.OK })
	}
	return out[:min(len(out), maxBoxes)]
}

// placeTiers adds the boxes, the highest tier on top.
func (d *mapDrawing) placeTiers(shown []*Switch, columns, width, height int) map[*Switch]mapBox {
	byTier := map[int][]*Switch{}
	for _, s := range shown {
		byTier[s.Tier] = append(byTier[s.Tier], s)
	}
	at := map[*Switch]mapBox{}
	y := 0
	for _, tier := range slices.Backward(slices.Sorted(maps.Keys(byTier))) {
		row := byTier[tier]
		t := mapTier{Name: fmt.Sprintf("%s: %d", tierName(tier), len(row)), Y: y + 13}
		y += tierHeader
		for i, s := range row {
			b := s.newBox(width, height)
			b.X, b.Y = 1+i%columns*(width+mapGap), y+i/columns*(height+mapGap)
			at[s] = b
			t.Boxes = append(t.Boxes, b)
		}
		y += (len(row)+columns-1)/columns*(height+mapGap) - mapGap
		d.Height = y + 2
		y += tierGap
		d.Tiers = append(d.Tiers, t)
	}
	return at
}

// newBox returns the box of a switch, with the number of its links that have a problem.
func (s *Switch) newBox(width, height int) mapBox {
	r := s.newRow()
	b := mapBox{W: width, H: height, Href: r.Href, Health: r.Health, Whole: s.Node + ": " + r.Health.Word()}
	wrong := 0
	for _, p := range problems {
		if n := s.Problems[p.name]; n > 0 {
			b.Whole += fmt.Sprintf(", %d %s", n, p.brief)
			if p.name != unreachableSwitch || !s.Reachable {
				wrong += n
			}
		}
	}
	if wrong > 0 {
		b.Side = page.FormatCount(float64(wrong))
	}
	b.Name = cutMiddle(hostOfSwitch(s.Node), (width-12)/page.CharWidth-len([]rune(b.Side))-1)
	return b
}

// nodeDescription matches the descriptions of NVIDIA's switches: MF0;leaf-1:MQM9700/U1.
var nodeDescription = regexp.MustCompile(`^MF\d;([^:]+):[^:]+$`)

// hostOfSwitch returns the host name in the description of a switch; all of it if it has another form.
func hostOfSwitch(description string) string {
	if m := nodeDescription.FindStringSubmatch(description); m != nil {
		return m[1]
	}
	return description
}

// cutMiddle cuts a text to n letters in its middle: names of switches differ at the end.
func cutMiddle(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return string(r)
	}
	front := max(0, n/3)
	return string(r[:front]) + "…" + string(r[len(r)-max(0, n-front-1):])
}

// drawWay draws a bundle from the lower edge of one box to the upper edge of the other.
func (d *mapDrawing) drawWay(b bundle, boxes map[*Switch]mapBox) {
	x, ok := boxes[b.a]
	y, also := boxes[b.b]
	if !ok || !also {
		return
	}
	if x.Y > y.Y {
		x, y = y, x
	}
	w := mapWay{
		Health: b.health, Width: 1, Whole: fmt.Sprintf("%s to %s: %s", b.a.Node, b.b.Node, words.Count(b.links, "link")),
	}
	if b.problem != "" {
		w.Width, w.Whole = 3, w.Whole+fmt.Sprintf(", %d %s", b.n, findProblem(b.problem).brief)
	}
	x1, y1, x2, y2 := x.X+x.W/2, x.Y+x.H, y.X+y.W/2, y.Y
	w.D = fmt.Sprintf("M%d %dL%d %d", x1, y1, x2, y2)
	d.Ways = append(d.Ways, w)
}

// aggregation is part of the name of the adapter inside a switch for in-network reduction (SHARP), which is not a host.
const aggregation = "Aggregation Node"

// findTiers returns the hops of each switch from the nearest host, over all known links, so that a link that is gone
// does not move a switch.
func (f *Fabric) findTiers() map[fabric.GUID]int {
	next := map[fabric.GUID][]fabric.GUID{}
	for _, l := range f.links() {
		next[l.A.GUID] = append(next[l.A.GUID], l.B.GUID)
		next[l.B.GUID] = append(next[l.B.GUID], l.A.GUID)
	}
	isSwitch := map[fabric.GUID]bool{}
	var level []fabric.GUID
	for _, n := range f.picture.Known.Nodes {
		isSwitch[n.GUID] = n.Type == mad.Switch
		if n.Type != mad.Switch && !strings.Contains(n.Description, aggregation) {
			level = append(level, n.GUID)
		}
	}
	out := map[fabric.GUID]int{}
	for hops := 1; len(level) > 0; hops++ {
		var found []fabric.GUID
		for _, guid := range level {
			for _, to := range next[guid] {
				if isSwitch[to] && out[to] == 0 {
					out[to] = hops
					found = append(found, to)
				}
			}
		}
		level = found
	}
	return out
}

// tierNames are the names of the tiers of a fat tree.
var tierNames = []string{"unconnected", "leaf", "spine", "core"}

// tierName returns the name of a tier.
func tierName(tier int) string {
	if tier < len(tierNames) {
		return tierNames[tier]
	}
	return fmt.Sprintf("tier %d", tier)
}
