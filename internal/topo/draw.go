package topo

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/terminal"
	"rdma_exporter/internal/words"
)

// legend explains the words for a pair in the matrix. They are in parentheses if the NIC is not eligible.
var legend = []struct{ word, meaning string }{
	{"direct", "GPUDirect RDMA"},
	{"direct*", "GPUDirect RDMA by way of the root complex, which costs bandwidth"},
	{"receive", "GPUDirect RDMA for receiving, sent through host memory"},
	{"receive*", "the same for receiving, sent through host memory"},
	{"host", "through host memory, which is normal for NODE and SYS; elsewhere the reason is below"},
	{"?", "unknown"},
	{"( )", "NIC not used by NCCL"},
}

func (p Pair) word() string {
	word := "?"
	switch {
	case p.Receive == "direct" && p.Send == "direct":
		word = "direct"
	case p.Receive == "direct" && p.Send == "staging":
		word = "receive"
	case p.Receive == "staging":
		return "host"
	}
	if p.Detour != "" {
		word += "*"
	}
	return word
}

// Draw writes the machine as text. At a width the matrix is in blocks of NICs, and lines go on below the text of their
// branch.
func (m *Machine) Draw(to io.Writer, style terminal.Style) error {
	w := new(strings.Builder)
	m.writeHead(w)
	for _, n := range m.Tree() {
		name := "NUMA node " + strconv.Itoa(n.ID)
		if n.ID < 0 {
			name = "NUMA node unknown"
		}
		if n.CPUs != "" {
			name += ", CPUs " + n.CPUs
		}
		fmt.Fprintf(w, "\n%s\n", name)
		m.writeTree(w, n.Branches, "  ")
	}
	for _, d := range m.Missing {
		fmt.Fprintf(w, "\n%s, PCI %s: missing (%s)\n", d.Device, cmp.Or(d.Address, "unknown"), d.Reason)
	}
	if len(m.Pairs) > 0 {
		m.writeMatrix(w, style)
	}
	m.writeVerdicts(w)
	m.writeUses(w)
	m.writeLibraries(w)
	m.writeRegistrations(w)
	m.writeSettings(w)
	_, err := io.WriteString(to, fitLines(w.String(), style))
	return err
}

// Marks colour what costs bandwidth.
var Marks = terminal.Marks{
	{regexp.MustCompile(`^[ │]*(!! .*)`), terminal.Yellow},
	{regexp.MustCompile(`^ *(Obstacle \d+: .*)`), terminal.Yellow},
	{regexp.MustCompile(`, (no ACTIVE port),`), terminal.Red},
	{regexp.MustCompile(`^.* PCI .*: (missing .*)`), terminal.Red},
	{regexp.MustCompile(`^  (?:Evaluated for|Process: ).*`), terminal.Grey},
}

// fitLines breaks the lines that do not fit. What follows stands below the text of the line, beside the branches that
// go on.
func fitLines(text string, style terminal.Style) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if prose := strings.TrimLeft(line, " │├└─"); !style.Fits(line, 0) && prose != "" {
			const deeper = 3
			begin := line[:len(line)-len(prose)]
			below := strings.NewReplacer("├", "│", "└", " ", "─", " ").Replace(begin)
			indent := terminal.Width(begin) + deeper
			line = begin + strings.ReplaceAll(style.Wrap(prose, indent), "\n"+strings.Repeat(" ", indent),
				"\n"+below+strings.Repeat(" ", deeper))
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}

func (m *Machine) writeHead(w io.Writer) {
	kind := ""
	if m.Virtual {
		kind = " (virtual machine)"
	}
	fmt.Fprintf(w, "%s%s: %s, %s\n", cmp.Or(m.Host, "this host"), kind,
		words.Count(len(m.GPUs), "GPU"), words.Count(len(m.NICs), "RDMA device"))
	if len(m.GPUs) == 0 {
		return
	}
	version := ""
	if m.NCCL != "" {
		version = ", evaluated for NCCL " + m.NCCL
	}
	fmt.Fprintf(w, "GPU driver %s, peer memory module %s%s\n",
		strings.TrimSpace(cmp.Or(m.Driver, "unknown")+" "+m.Flavour), cmp.Or(m.Peermem, "none"), version)
}

// writeTree writes branches, each below the one before.
func (m *Machine) writeTree(w io.Writer, branches []Branch, indent string) {
	for i, b := range branches {
		here, below := "├─ ", "│  "
		if i == len(branches)-1 {
			here, below = "└─ ", "   "
		}
		var way []string
		for _, n := range b.Run {
			way = append(way, m.Short(n.Address))
		}
		last := b.Run[len(b.Run)-1]
		fmt.Fprintf(w, "%s%s%s%s\n", indent, here, strings.Join(way, " ─ "), m.describeNode(last, b))
		for _, mark := range m.findMarks(last.Address) {
			fmt.Fprintf(w, "%s%s  !! %s\n", indent, below, mark)
		}
		m.writeTree(w, b.Next, indent+below)
	}
}

// describeNode returns the description of the function at the end of a branch, with its link.
func (m *Machine) describeNode(n Node, b Branch) string {
	var parts []string
	if len(b.Next) > 0 {
		parts = append(parts, "switch")
		if !pci.IsAddress(n.Parent) {
			parts[0] = "root port"
		}
	}
	for _, g := range m.GPUs {
		if g.Address == n.Address {
			parts = append(parts, strings.TrimSpace("GPU "+g.Index+" "+g.Model))
			if g.Coupled {
				parts = append(parts, "NVLink-C2C")
			}
		}
	}
	for _, d := range m.NICs {
		if d.Address != n.Address {
			continue
		}
		state := "no ACTIVE port"
		switch {
		case d.Active && d.Rate == 0:
			state = "ACTIVE, rate unknown"
		case d.Active:
			state = formatGigabits(d.Rate)
		}
		role := d.Role
		if role == string(pci.Unknown) {
			role = "role unknown"
		}
		parts = append(parts, d.Device, state, role)
		if d.Available != 0 {
			parts = append(parts, "PCIe "+formatGigabits(d.Available))
		}
	}
	for _, f := range m.Bare {
		if f.Address == n.Address {
			parts = append(parts, "no RDMA device", cmp.Or(f.Driver, "no driver bound"))
		}
	}
	if n.Width != 0 {
		parts = append(parts, fmt.Sprintf("x%d %s", n.Width, words.Transfers(n.Speed)))
	}
	if len(parts) == 0 {
		return ""
	}
	return "  " + strings.Join(parts, ", ")
}

func (m *Machine) findMarks(address string) (out []string) {
	for _, g := range m.GPUs {
		if g.Address == address {
			out = append(out, g.Marks...)
		}
	}
	for _, d := range m.NICs {
		if d.Address == address {
			out = append(out, d.Marks...)
		}
	}
	return out
}

// writeMatrix writes distances in the terms of nvidia-smi, or of NCCL if only a topology file has them.
func (m *Machine) writeMatrix(w io.Writer, style terminal.Style) {
	head := []string{""}
	for _, n := range m.NICs {
		head = append(head, n.Device)
	}
	rows, seen := [][]string{head}, map[string]bool{}
	for g := range m.GPUs {
		row := []string{"GPU " + m.GPUs[g].Index}
		for _, p := range m.Pairs[g*len(m.NICs) : (g+1)*len(m.NICs)] {
			word := p.word()
			seen[word] = true
			if !p.Eligible {
				word = "(" + word + ")"
				seen["( )"] = true
			}
			row = append(row, cmp.Or(p.Topology, p.Distance, "–")+" "+word)
		}
		rows = append(rows, row)
	}
	for _, block := range blocks(rows, style) {
		fmt.Fprintf(w, "\n%s", terminal.Align(block, ""))
	}
	for _, l := range legend {
		if seen[l.word] {
			fmt.Fprintf(w, "%s: %s\n", l.word, l.meaning)
		}
	}
}

// blocks splits the columns of a table into blocks that fit, each with the first column.
func blocks(rows [][]string, style terminal.Style) (out [][][]string) {
	const gap = 2
	widest := func(i int) (width int) {
		for _, row := range rows {
			width = max(width, terminal.Width(row[i]))
		}
		return width
	}
	for i := 1; i < len(rows[0]); {
		from, total := i, widest(0)
		for ; i < len(rows[0]) && (i == from || style.Width == 0 || total+gap+widest(i) <= style.Width); i++ {
			total += gap + widest(i)
		}
		var block [][]string
		for _, row := range rows {
			block = append(block, append([]string{row[0]}, row[from:i]...))
		}
		out = append(out, block)
	}
	return out
}

// groupGPUs groups GPUs by kind. Groups are in the order of their first GPU.
func groupGPUs[K comparable](gpus []GPU, kind func(*GPU) K) (groups [][]*GPU) {
	at := map[K]int{}
	for i := range gpus {
		k := kind(&gpus[i])
		if _, known := at[k]; !known {
			at[k] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[k]] = append(groups[at[k]], &gpus[i])
	}
	return groups
}

// writeVerdicts writes the verdict on each GPU, grouped by reason, obstacles and detour.
func (m *Machine) writeVerdicts(w io.Writer) {
	for _, group := range groupGPUs(m.GPUs, func(g *GPU) [4]string {
		return [4]string{g.Reason, g.detour(), fmt.Sprint(g.Obstacles), g.CanSend + g.CanReceive}
	}) {
		var which []string
		first := group[0]
		for _, g := range group {
			name := "GPU " + g.Index
			if g.Best != nil {
				name += " " + g.Best.Device
			}
			which = append(which, name)
		}
		fmt.Fprintf(w, "\n%s\n  %s (%s)", strings.Join(which, ", "), first.Words, first.Reason)
		if first.Best != nil && first.Best.Receive == "direct" && first.Best.Mechanism != "" {
			fmt.Fprintf(w, ", mechanism %s", first.Best.Mechanism)
		}
		fmt.Fprintln(w)
		if detour := first.detour(); detour != "" {
			fmt.Fprintf(w, "  By way of the root complex because of %s, which costs bandwidth: rdma_exporter check has the alert, check --setup the setting\n", detour)
		}
		for _, p := range m.Processes {
			if p.PID == first.Evaluated {
				fmt.Fprintf(w, "  Evaluated for NCCL %s of process %d%s\n",
					cmp.Or(p.NCCL, "(version unknown)"), p.PID, strings.TrimRight(", "+p.Job, ", "))
			}
		}
		first.writeObstacles(w)
	}
}

// writeObstacles writes all obstacles of a GPU in the order of removal, with the path after each.
func (g *GPU) writeObstacles(w io.Writer) {
	if len(g.Obstacles) == 0 && g.Remedy != "" {
		fmt.Fprintf(w, "  Action: %s\n", g.Remedy)
	}
	for i, o := range g.Obstacles {
		indent := "    "
		if len(g.Obstacles) == 1 && o.Words == g.Words {
			indent = "  "
		} else {
			fmt.Fprintf(w, "  Obstacle %d: %s (%s)\n", i+1, o.Words, o.Reason)
		}
		if o.Remedy != "" {
			fmt.Fprintf(w, "%sAction: %s\n", indent, o.Remedy)
		}
		fmt.Fprintf(w, "%sPath without it: %s\n", indent, o.Path)
	}
	if n := len(g.Obstacles); g.Limited() && n > 0 && g.Obstacles[n-1].Kind == "place" {
		fmt.Fprintln(w, "  Not possible with the slots of this host, as far as the PCI tree shows")
	} else if g.Limited() {
		fmt.Fprintln(w, "  Not possible with this hardware, whatever the settings and drivers")
	}
}

func describeNarrow(p pci.Pair) string {
	return fmt.Sprintf("link %s - %s is x%d %s, both ends support x%d %s",
		p.Upper, p.Lower, p.Width, words.Transfers(p.Speed), p.MaxWidth, words.Transfers(p.MaxSpeed))
}

func describeLimit(n *NIC, have float64) string {
	s := fmt.Sprintf("PCIe bandwidth %s, port rate %s, limited by %s",
		formatGigabits(have), formatGigabits(n.Rate), n.LimitedBy)
	if have != n.Available {
		s += " (with the other functions of the cable)"
	}
	return s
}

func formatGigabits(bits float64) string { return strconv.FormatFloat(bits/1e9, 'f', 0, 64) + " Gb/s" }
