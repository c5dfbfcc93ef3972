package fabricpage

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/words"
)

// Bounds of a fabric's first page; the rest is on the page of all links, and on those of the switches.
const (
	maxLinks    = 50
	maxErrors   = 20
	maxSwitches = 150
	maxNodes    = 20
)

// firstView is the data of the template of the first page.
type firstView struct {
	*Fabric
	page.Frame
	Findings     []page.Finding
	Holds        []page.Held
	Gaps         []page.Gap
	Map          fabricMap
	Filter       Filter // the empty one, for the form
	Wrong        linkTable
	Lost         []string
	NoLost       int // nodes that are not reached and not in Lost
	Head         string
	Speeds       []speedRow
	Rows         []switchRow
	NoRows       int // switches without problems that are not in Rows
	Errors       linkTable
	ErrorsOf     string // how long errors were counted for
	Sweep, Asked string
}

// speedRow is the number of links of one rate.
type speedRow struct {
	Text  string
	Count int
	rate  float64
}

// switchRow is a row in the table of switches.
type switchRow struct {
	Name, Href                 string
	Health                     page.Health
	Tier                       string
	Ports, Up, Gone, Slow, Set int
	Errors, Discards           string
	Over                       page.Cell
}

// Render writes the first page of a fabric.
func (p *Page) Render(w io.Writer, f *Fabric, now time.Time) error {
	v := firstView{Fabric: f, Frame: f.newFrame(now, p.Links(), "", "Fabric of "+f.Port+" on "+f.Host)}
	v.setVerdict()
	v.Findings, v.Holds, v.Gaps = page.ListFindings(f.in.Report, f.Waiting, f.in.Evaluated)
	v.Map = v.drawMap()
	v.addProblems()
	v.addLost()
	v.setHead(now)
	v.addSwitchRows()
	v.addErrors()
	return p.Write(w, "fabric.html", v)
}

// refresh is the usual time between sweeps, in seconds.
const refresh = 60

// newFrame returns the frame of the pages of a fabric.
func (f *Fabric) newFrame(now time.Time, links []page.Link, base, name string) page.Frame {
	out := page.Frame{Base: base, Name: name, Footer: links, From: "Swept from " + f.Port + " on " + f.Host + "."}
	out.SetTime(f.Time)
	out.Refresh = refresh
	if why := f.Stale(now); why != "" {
		out.SetStale(now.Sub(f.Time), why)
	}
	return out
}

// Stale returns the reason why the data is stale; empty if it is not.
func (f *Fabric) Stale(now time.Time) string {
	age := now.Sub(f.Time)
	if f.Time.IsZero() || f.Failed == "" && !page.IsStale(age, f.in.Interval) {
		return ""
	}
	return cmp.Or(f.Failed, "No sweep has finished since.")
}

// setVerdict sets the headline.
func (v *firstView) setVerdict() {
	starting := ""
	switch {
	case v.Time.IsZero() && v.Failed == "":
		starting = "The first sweep has not finished."
	case v.in.Rules && v.in.Report == nil:
		starting = "The first evaluation of the rules has not finished."
	}
	v.Conclude(v.in.Report, starting, "fabric")
	if v.Time.IsZero() && v.Failed != "" {
		v.Health, v.Word, v.Lead = page.NotEvaluated, "Unknown", "Sweep failed: "+v.Failed
	}
	v.SetTitle(v.Word + ": " + v.Name)
}

// addProblems adds the links with problems, the worst first.
func (v *firstView) addProblems() {
	// An unreachable switch has a finding.
	all := v.selectLinks(func(l *Link) bool { return l.Problem != "" && l.Problem != unreachableSwitch })
	sortByProblem(all)
	v.Wrong = v.newTable("Links with problems",
		"Worst first. Enabled at both ends: shown where it differs from the rate", all, maxLinks)
}

// selectLinks returns the links for which are returns true.
func (f *Fabric) selectLinks(are func(*Link) bool) (out []*Link) {
	for i := range f.Links {
		if l := &f.Links[i]; are(l) {
			out = append(out, l)
		}
	}
	return out
}

// newTable returns a table of the first of some links.
func (f *Fabric) newTable(name, caption string, links []*Link, most int) linkTable {
	out := linkTable{Name: name, Caption: caption, More: max(0, len(links)-most)}
	for _, l := range links[:len(links)-out.More] {
		out.Rows = append(out.Rows, f.newLinkRow(l, &l.Ends[0], &l.Ends[1], ""))
	}
	return out
}

// sortByProblem sorts links by their problems, the worst first, those without problems last.
func sortByProblem(links []*Link) {
	slices.SortStableFunc(links, func(a, b *Link) int { return problemRank(a.Problem) - problemRank(b.Problem) })
}

// addLost adds the unreachable nodes.
func (v *firstView) addLost() {
	v.NoLost = max(0, len(v.Unreachable)-maxNodes)
	for _, n := range v.Unreachable[:len(v.Unreachable)-v.NoLost] {
		v.Lost = append(v.Lost, fmt.Sprintf("%s %s, last seen %s", words.Spaced(n.Type), n.Node, page.FormatTime(n.Seen)))
	}
}

// setHead sets the numbers of nodes and links, and the state of the sweeps.
func (v *firstView) setHead(now time.Time) {
	if v.Time.IsZero() {
		v.Head = fmt.Sprintf("Known from before: %d nodes, %d links.", len(v.picture.Known.Nodes), len(v.Fabric.Links))
		return
	}
	v.Head = fmt.Sprintf("%d switches, %d adapters, %d routers, %d links.",
		v.Reached[mad.Switch.String()], v.Reached[mad.ChannelAdapter.String()], v.Reached[mad.Router.String()],
		len(v.picture.Fabric.Links)/2)
	at := map[string]*speedRow{}
	for _, l := range v.Fabric.Links {
		if l.Does == nil {
			continue
		}
		text := l.Does.describe()
		if at[text] == nil {
			at[text] = &speedRow{Text: text, rate: l.Does.Rate}
		}
		at[text].Count++
	}
	for _, r := range at {
		v.Speeds = append(v.Speeds, *r)
	}
	slices.SortFunc(v.Speeds,
		func(a, b speedRow) int { return cmp.Or(cmp.Compare(b.rate, a.rate), strings.Compare(a.Text, b.Text)) })
	v.Sweep = fmt.Sprintf(
		"Last sweep: started %s ago, took %ss.",
		page.FormatAge(now.Sub(v.Time)),
		page.FormatDigits(v.Took),
	)
	var silent []string
	for _, what := range slices.Sorted(maps.Keys(v.Unanswered)) {
		if n := v.Unanswered[what]; n > 0 {
			silent = append(silent, fmt.Sprintf("%d %s", n, words.Spaced(what)))
		}
	}
	v.Asked = fmt.Sprintf("%s requests since the start, %s timeouts.",
		page.FormatCount(float64(v.Requests)), page.FormatCount(float64(v.Timeouts)))
	if silent != nil {
		v.Asked += " Without an answer in the last sweep: " + strings.Join(silent, ", ") + "."
	}
}

// addSwitchRows adds the rows of the switches, those in trouble first.
func (v *firstView) addSwitchRows() {
	for i := range v.Switches {
		v.Rows = append(v.Rows, v.Switches[i].newRow())
	}
	slices.SortStableFunc(v.Rows, func(a, b switchRow) int { return a.Health.Compare(b.Health) })
	v.NoRows = max(0, len(v.Rows)-maxSwitches)
	v.Rows = v.Rows[:len(v.Rows)-v.NoRows]
}

// newRow returns the row of a switch.
func (s *Switch) newRow() switchRow {
	out := switchRow{
		Name: s.Node, Href: switchHref(s.GUID), Health: s.Health, Ports: s.Ports, Up: s.Active,
		Gone: s.Problems[linkGone] + s.Problems[unreachableSwitch], Slow: s.Problems["degraded"],
		Set: s.Problems[settingsDiffer], Errors: page.FormatCount(float64(s.Errors)),
		Discards: page.FormatCount(float64(s.Discards)), Tier: tierName(s.Tier),
	}
	out.Over = page.NotApplicable
	if s.Oversubscription != nil {
		out.Over = page.Cell{Text: fmt.Sprintf("%.1f:1", *s.Oversubscription)}
	}
	return out
}

// switchHref returns the path of the page of a switch, relative to the first page.
func switchHref(guid string) string { return "switches/" + guid }

// addErrors adds the links with the most errors.
func (v *firstView) addErrors() {
	if v.Since.IsZero() {
		return
	}
	v.ErrorsOf = page.FormatAge(v.Time.Sub(v.Since))
	all := v.selectLinks(func(l *Link) bool { return l.sumRisen(linkErrors)+l.sumRisen(discards) > 0 })
	sortByErrors(all)
	v.Errors = v.newTable("Errors on links",
		"Counters that rose in the last "+v.ErrorsOf+", with their rate, worst first", all, maxErrors)
}

// sortByErrors sorts links by their errors, then by their discards, the most first.
func sortByErrors(links []*Link) {
	slices.SortStableFunc(links, func(a, b *Link) int {
		return cmp.Or(
			cmp.Compare(b.sumRisen(linkErrors), a.sumRisen(linkErrors)),
			cmp.Compare(b.sumRisen(discards), a.sumRisen(discards)),
		)
	})
}
