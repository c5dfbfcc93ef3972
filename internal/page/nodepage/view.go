package nodepage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/account"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/topo"
	"rdma_exporter/internal/words"
)

// view is the data of the template: texts and geometry.
type view struct {
	*Node
	page.Frame
	Findings []page.Finding
	Holds    []page.Held

	// TopologyFirst is set if the topology is degraded; otherwise the ports come first.
	TopologyFirst bool

	Head     string // of the machine
	NUMA     []numa
	NotDrawn int // NICs, since there are too many
	Paths    []gpuPath
	Rows     []portRow
	Expected string // rates that several ports have as expected
	Plots    string // time range of the plots; empty if there are none
	NoPlot   string // why there are none
	Pauses   bool   // at least one port may have PFC
	BER      bool   // at least one plot of bit error rates
	NoPlots  int    // ports without plots, since there are too many
	Objects  []group
	Gaps     []page.Gap
	Loops    []collectorRow
	Setup    *setupView // nil: not read
	Kernel   []kernelMessage
}

// gpuPath is the data path of a GPU.
type gpuPath struct {
	GPU, Model, NIC, Distance, Mechanism string
	State                                string // direct, staging, limited, unknown
	Words, Remedy                        string
	Obstacles                            []string // if there are several, in the order of removal
	Now                                  string   // as used by a job
}

// group holds the objects of one kind and class.
type group struct {
	Health page.Health
	What   string // 8 compute ports
	Class  string
	Reason string
	Names  string
}

// collectorRow is a row in the table of collectors.
type collectorRow struct {
	Collector
	Took, Old, Faults string
}

// newView returns the data of the template.
func newView(in Input, n *Node, m *topo.Machine, links []page.Link) view {
	v := view{
		Node:  n,
		Head:  describeMachine(m),
		Frame: page.Frame{Name: n.Host, From: "Reads " + n.Machine + ".", Footer: links},
	}
	v.NUMA, v.NotDrawn = drawMachine(m, n)
	v.TopologyFirst = slices.ContainsFunc(v.NUMA, numa.isDegraded)
	v.Refresh = refresh
	v.Setup, v.Kernel = newSetupView(in.Node, in.Report), listKernelMessages(in.Node)
	v.setVerdict(in)
	v.SetTime(in.Read)
	requested := check.Seen{Maintenance: n.Maintenance, GPUsReleased: n.GPUsReleased}
	for _, notice := range requested.Notices() {
		v.Notices = append(v.Notices, page.Shorten(notice, page.MaxText))
	}
	if age := in.Now.Sub(in.Read); !in.Read.IsZero() && page.IsStale(age, in.Interval) {
		v.SetStale(age, "No round of readings has finished since: a read hangs, or the exporter does.")
	}
	v.SetTitle(v.Word + ": " + n.Host)
	for _, g := range m.GPUs {
		v.Paths = append(v.Paths, newGPUPath(m, g))
	}
	v.Findings, v.Holds, v.Gaps = page.ListFindings(in.Report, n.Waiting, in.Read)
	if in.Report != nil {
		for _, g := range account.Groups(in.Report.Objects) {
			v.Objects = append(v.Objects, newGroup(g))
		}
	}
	v.addPorts(in)
	if in.NoHistory != nil {
		v.NoPlot = page.Shorten(in.NoHistory.Error(), page.MaxText)
	}
	for _, c := range n.Collectors {
		v.Loops = append(v.Loops, newCollectorRow(c))
	}
	return v
}

// setVerdict sets the headline.
func (v *view) setVerdict(in Input) {
	starting := ""
	if in.Read.IsZero() {
		starting = "The first round of readings has not finished."
	}
	v.Conclude(in.Report, starting, "node")
}

// refresh is the usual time between rounds, in seconds.
const refresh = 15

// classHealth are the colours of classes of objects.
var classHealth = map[account.Class]page.Health{
	account.Healthy: page.OK, account.Faulty: page.Warning, account.NotExpected: page.Inactive,
	account.Unknown: page.NotEvaluated,
}

// newGroup returns a group of objects as the page shows it.
func newGroup(g account.Group) group {
	return group{
		classHealth[g.Class], words.Count(len(g.Names), g.Noun), g.Class.Text(), page.Shorten(g.Reason, page.MaxText),
		page.Shorten(strings.Join(g.Names, ", "), 4*page.MaxText),
	}
}

// newGPUPath returns the data path of a GPU as the page shows it.
func newGPUPath(m *topo.Machine, g topo.GPU) gpuPath {
	out := gpuPath{
		GPU: exposition.ValidLabel(g.Index), Model: exposition.ValidLabel(g.Model), State: "unknown",
		Words: page.Shorten(g.Words, page.MaxText), Remedy: page.Shorten(g.Remedy, page.MaxText),
	}
	if g.Best != nil {
		out.NIC, out.Distance = exposition.ValidLabel(g.Best.Device),
			exposition.ValidLabel(cmp.Or(g.Best.Topology, g.Best.Distance))
		out.Mechanism = exposition.ValidLabel(g.Best.Mechanism)
		out.State = pairState(g.Best)
	}
	if g.Limited() {
		out.State = "limited"
	}
	for i, o := range g.Obstacles {
		if len(g.Obstacles) > 1 || o.Words != g.Words {
			out.Obstacles = append(out.Obstacles, page.Shorten(fmt.Sprintf("Obstacle %d: %s", i+1,
				words.Join(". ", o.Words, "Action: "+o.Remedy, "Path without it: "+o.Path)), 2*page.MaxText))
		}
	}
	if t := g.Transport; t != nil {
		out.Now = fmt.Sprintf("%s (process %d): %s",
			t.State, t.PID, page.Shorten(words.Join(". Action: ", t.Words, t.Remedy), page.MaxText))
		if kept := m.Kept(t.PID); kept != "" {
			out.Now += "; keeps " + exposition.ValidLabel(kept)
		}
	}
	return out
}

// describeMachine returns the number of GPUs and devices, and the drivers, in words.
func describeMachine(m *topo.Machine) string {
	s := words.Count(len(m.GPUs), "GPU") + ", " + words.Count(len(m.NICs), "RDMA device") + " on PCI"
	if len(m.GPUs) == 0 {
		return s
	}
	return s + fmt.Sprintf("; GPU driver %s, peer memory module %s",
		cmp.Or(exposition.ValidLabel(words.Join(" ", m.Driver, m.Flavour)), "unknown"),
		cmp.Or(exposition.ValidLabel(m.Peermem), "none"))
}

// newCollectorRow returns the row of a collector.
func newCollectorRow(c Collector) collectorRow {
	l := collectorRow{
		Collector: c, Took: fmt.Sprintf("%.0f ms", 1000*c.Duration),
		Old: page.FormatAge(time.Duration(c.Age * float64(time.Second))),
	}
	var faults []string
	if len(c.Stuck) > 0 {
		faults = append(faults, "stuck: "+strings.Join(c.Stuck, ", "))
	}
	if n := len(c.Late); n > 0 {
		faults = append(faults, words.Count(n, "device")+" not read in time")
	}
	if c.Quarantined > 0 {
		faults = append(faults, page.FormatCount(c.Quarantined)+" items no longer read")
	}
	for _, reason := range slices.Sorted(maps.Keys(c.Errors)) {
		faults = append(faults, page.FormatCount(c.Errors[reason])+" "+reason)
	}
	l.Faults = cmp.Or(strings.Join(faults, "; "), "none")
	return l
}
