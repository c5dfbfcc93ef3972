package page

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
	"rdma_exporter/internal/topo"
	"rdma_exporter/internal/words"
)

// view is the data of the template: text and geometry.
type view struct {
	*Node
	frame
	Findings []finding
	Holds    []held

	// TopologyFirst: something is wrong with the topology, else the ports come first.
	TopologyFirst bool

	Head     string // of the machine
	NUMA     []numa
	NotDrawn int // NICs, since there are too many
	Paths    []path
	Rows     []portRow
	Plots    string // what the plots cover; empty where there are none
	NoPlot   string // why there are none
	Pauses   bool   // there is a port that may have PFC
	BER      bool   // there is a plot of bit error rates
	NoPlots  int    // ports without plots, since there are too many
	Objects  []group
	Gaps     []gap
	Loops    []loop
	Setup    *setupView // nil: not read
	Kernel   []kernelMessage
}

// frame is what all pages have around what they show.
type frame struct {
	Title    string
	Base     string // the way from the page to the prefix of all paths: empty, "../"
	Health   Health // of all that is shown
	Word     string
	Name     string // of the node, the fabric or the switch
	Subject  string // of the report: node, fabric
	Lead     string // what there is
	Coverage string // of the rules
	When     string
	ISO      string   // When, for the script
	From     string   // the data source
	Stale    string   // why the data is old; empty where it is not
	Age      string   // of stale data
	Refresh  int      // seconds after which a browser without JavaScript loads the page again; 0: never
	Notices  []string // announced maintenance, released GPUs
	Footer   []Link
}

// Link is one of the footer, relative to the page.
type Link struct{ Href, Text string }

// path is the way of the data of GPUs.
type path struct {
	GPU, Model, NIC, Distance, Mechanism string
	State                                string // direct, staging, unknown
	Words, Remedy                        string
	Now                                  string // what a job makes of it
}

// gap is a group of rules that are not evaluated.
type gap struct {
	Count  int
	Text   string
	Alerts string
}

// group are objects of one kind and class.
type group struct {
	Health Health
	What   string // 8 compute ports
	Class  string
	Reason string
	Names  string
}

// loop is a collector.
type loop struct {
	Collector
	Took, Old, Faults string
}

// maxText is how long a text may be, in letters.
const maxText = 1000

// maxFindings limits the findings of the page.
const maxFindings = 50

func newView(in Input, n *Node, m *topo.Machine, links []Link) view {
	v := view{Node: n, Head: machineHead(m), frame: frame{Name: n.Host, From: "Reads " + n.Machine + ".", Footer: links}}
	v.NUMA, v.NotDrawn = draw(m, n)
	v.TopologyFirst = slices.ContainsFunc(v.NUMA, numa.wrong)
	v.Refresh = nodeRefresh
	v.Setup, v.Kernel = setupOf(in.Node), kernelMessages(in.Node)
	v.verdict(in)
	v.when(in.Read)
	requested := check.Seen{Maintenance: n.Maintenance, GPUsReleased: n.GPUsReleased}
	for _, notice := range requested.Notices() {
		v.Notices = append(v.Notices, short(notice, maxText))
	}
	if age := in.Now.Sub(in.Read); !in.Read.IsZero() && tooOld(age, in.Interval) {
		v.stale(age, "No round of readings has finished since: a read hangs, or the exporter does.")
	}
	v.title(v.Word + ": " + n.Host)
	for _, g := range m.GPUs {
		v.Paths = append(v.Paths, pathOf(m, g))
	}
	v.Findings, v.Holds, v.Gaps = listed(in.Report, n.Waiting, in.Read)
	if in.Report != nil {
		for _, g := range account.Groups(in.Report.Objects) {
			v.Objects = append(v.Objects, groupOf(g))
		}
	}
	v.ports(in)
	if in.NoHistory != nil {
		v.NoPlot = short(in.NoHistory.Error(), maxText)
	}
	for _, c := range n.Collectors {
		v.Loops = append(v.Loops, loopOf(c))
	}
	return v
}

// verdict is the headline of the node.
func (v *view) verdict(in Input) {
	starting := ""
	if in.Read.IsZero() {
		starting = "The first round of readings has not finished."
	}
	v.conclude(in.Report, starting, "node", len(v.Waiting))
}

// conclude is the headline of the report on a node or a fabric, with the number of alerts that are pending and no
// findings. starting is why there is no report yet; empty: there is one, or no rules are evaluated.
func (v *frame) conclude(r *check.Report, starting, of string, pending int) {
	v.Subject = of
	switch {
	case starting != "":
		v.Health, v.Word, v.Lead = NotEvaluated, "Starting", starting
	case r == nil:
		v.Health, v.Word = NotEvaluated, NotEvaluated.Heading()
		v.Lead = "No rules are evaluated (--no-alerting): state as read, without a verdict or a history."
	case r.Error != "", r.ExitCode == check.ExitUnknown:
		v.Health, v.Word, v.Lead = NotEvaluated, "Unknown", cmp.Or(r.Error, unknownText(r))
	default:
		v.Health = Health(cmp.Or(r.Headline, r.Verdict))
		v.Word, v.Lead = v.Health.Heading(), "No finding on this "+of+", as far as rules are evaluated."
		switch {
		case len(r.Findings) > 0:
			v.Lead = words.Join(" ", tally(r), r.Watching())
		case r.Watching() != "":
			v.Lead = r.Watching() + " No finding."
		case pending > 0:
			v.Lead = "No finding. Pending alerts are listed below."
		}
		v.Lead = words.Join(" ", v.Lead, r.DrainNote())
	}
	if r != nil && starting == "" {
		for _, note := range r.Notes() {
			v.Lead = short(v.Lead+" "+note+".", maxText)
		}
		v.Coverage = r.Coverage() + "."
	}
}

// unknownText is why the state of a node is unknown, as a sentence.
func unknownText(r *check.Report) string {
	why := r.Why()
	return strings.ToUpper(why[:1]) + why[1:] + "."
}

// tally counts the findings by severity.
func tally(r *check.Report) string {
	parts := check.Tally(r.Findings, "%d %s", check.Severities()...)
	if len(parts) == 1 {
		return words.Count(len(r.Findings), r.Findings[0].Severity+" finding") + "."
	}
	return words.Count(len(r.Findings), "finding") + ": " + strings.Join(parts, ", ") + "."
}

// staleRounds is after how many intervals without a round what is shown is old; never before staleLeast.
const (
	staleRounds = 3
	staleLeast  = time.Minute
)

// tooOld reports whether rounds or sweeps have stopped.
func tooOld(age, interval time.Duration) bool { return age > max(staleRounds*interval, staleLeast) }

// nodeRefresh is the usual time between rounds, in seconds.
const nodeRefresh = 15

func (f *frame) when(t time.Time) {
	if !t.IsZero() {
		f.When, f.ISO = clock(t), t.UTC().Format(time.RFC3339)
	}
}

// stale notes that what is shown is of a time ago.
func (f *frame) stale(age time.Duration, why string) { f.Age, f.Stale = ago(age), why }

// title is that of the tab, which shows that the data is stale before anything else.
func (f *frame) title(text string) {
	f.Title = text
	if f.Stale != "" {
		f.Title = "STALE " + f.Age + " – " + f.Name
	}
}

func gapOf(g check.ReasonGroup) gap {
	names := words.Of(g.Alerts, check.NotEvaluated.Name)
	text := g.Reason
	if g.InPart {
		text = "evaluated in part: " + text
	}
	return gap{len(g.Alerts), short(text, maxText), short(strings.Join(names, ", "), 4*maxText)}
}

// classHealth is the colour of a class.
var classHealth = map[account.Class]Health{
	account.Healthy: OK, account.Faulty: Warning, account.NotExpected: Inactive, account.Unknown: NotEvaluated,
}

func groupOf(g account.Group) group {
	return group{
		classHealth[g.Class], words.Count(len(g.Names), g.Noun), g.Class.Text(), short(g.Reason, maxText),
		short(strings.Join(g.Names, ", "), 4*maxText),
	}
}

func pathOf(m *topo.Machine, g topo.GPU) path {
	out := path{
		GPU: exposition.ValidLabel(g.Index), Model: exposition.ValidLabel(g.Model), State: "unknown",
		Words: short(g.Words, maxText), Remedy: short(g.Remedy, maxText),
	}
	if g.Best != nil {
		out.NIC, out.Distance = exposition.ValidLabel(g.Best.Device),
			exposition.ValidLabel(cmp.Or(g.Best.Topology, g.Best.Distance))
		out.Mechanism = exposition.ValidLabel(g.Best.Mechanism)
		out.State = stateOf(g.Best)
	}
	if t := g.Transport; t != nil {
		out.Now = fmt.Sprintf("%s (process %d): %s",
			t.State, t.PID, short(words.Join(". Action: ", t.Words, t.Remedy), maxText))
		if kept := m.Kept(t.PID); kept != "" {
			out.Now += "; keeps " + exposition.ValidLabel(kept)
		}
	}
	return out
}

func machineHead(m *topo.Machine) string {
	s := words.Count(len(m.GPUs), "GPU") + ", " + words.Count(len(m.NICs), "RDMA device") + " on PCI"
	if len(m.GPUs) == 0 {
		return s
	}
	return s + fmt.Sprintf("; GPU driver %s, peer memory module %s",
		cmp.Or(exposition.ValidLabel(words.Join(" ", m.Driver, m.Flavour)), "unknown"),
		cmp.Or(exposition.ValidLabel(m.Peermem), "none"))
}

func loopOf(c Collector) loop {
	l := loop{
		Collector: c, Took: fmt.Sprintf("%.0f ms", 1000*c.Duration), Old: ago(time.Duration(c.Age * float64(time.Second))),
	}
	var faults []string
	if len(c.Stuck) > 0 {
		faults = append(faults, "stuck: "+strings.Join(c.Stuck, ", "))
	}
	if n := len(c.Late); n > 0 {
		faults = append(faults, words.Count(n, "device")+" not read in time")
	}
	if c.Quarantined > 0 {
		faults = append(faults, large(c.Quarantined)+" items no longer read")
	}
	for _, reason := range slices.Sorted(maps.Keys(c.Errors)) {
		faults = append(faults, large(c.Errors[reason])+" "+reason)
	}
	l.Faults = cmp.Or(strings.Join(faults, "; "), "none")
	return l
}
