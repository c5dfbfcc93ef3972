package page

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/words"
)

// Bounds of a fabric's first page; the rest is on the page of all links, and on those of the switches.
const (
	maxLinks    = 50
	maxErrors   = 20
	maxSwitches = 150
	maxNodes    = 20
)

// fabricView is what the template of the first page shows.
type fabricView struct {
	*Fabric
	frame
	Findings     []finding
	Holds        []held
	Gaps         []gap
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

// speedRow counts the links that do the same.
type speedRow struct {
	Text  string
	Count int
	rate  float64
}

type switchRow struct {
	Name, Href                 string
	Health                     Health
	Tier                       string
	Ports, Up, Gone, Slow, Set int
	Errors, Discards           string
	Over                       value
}

// RenderFabric writes the first page of a fabric.
func (p *Page) RenderFabric(w io.Writer, f *Fabric, now time.Time) error {
	v := fabricView{Fabric: f, frame: f.frame(now, p.links, "", "Fabric of "+f.Port+" on "+f.Host)}
	v.verdict()
	v.Findings, v.Holds, v.Gaps = listed(f.in.Report, f.Waiting, f.in.Evaluated)
	v.Map = v.drawMap()
	v.wrong()
	v.lost()
	v.head(now)
	v.switches()
	v.errors()
	return p.write(w, "fabric.html", v)
}

// fabricRefresh is the usual time between sweeps, in seconds.
const fabricRefresh = 60

// frame is what is around the pages of a fabric.
func (f *Fabric) frame(now time.Time, links []Link, base, name string) frame {
	out := frame{Base: base, Name: name, Footer: links, From: "Swept from " + f.Port + " on " + f.Host + "."}
	out.when(f.Time)
	out.Refresh = fabricRefresh
	if why := f.Stale(now); why != "" {
		out.stale(now.Sub(f.Time), why)
	}
	return out
}

// Stale is the reason why the data is old; empty where it is not.
func (f *Fabric) Stale(now time.Time) string {
	age := now.Sub(f.Time)
	if f.Time.IsZero() || f.Failed == "" && !tooOld(age, f.in.Interval) {
		return ""
	}
	return cmp.Or(f.Failed, "No sweep has finished since.")
}

// verdict is the headline of the fabric.
func (v *fabricView) verdict() {
	starting := ""
	switch {
	case v.Time.IsZero() && v.Failed == "":
		starting = "The first sweep has not finished."
	case v.in.Rules && v.in.Report == nil:
		starting = "The first evaluation of the rules has not finished."
	}
	v.conclude(v.in.Report, starting, "fabric", len(v.Waiting))
	if v.Time.IsZero() && v.Failed != "" {
		v.Health, v.Word, v.Lead = NotEvaluated, "Unknown", "Sweep failed: "+v.Failed
	}
	v.title(v.Word + ": " + v.Name)
}

// wrong lists links with problems, the worst first.
func (v *fabricView) wrong() {
	// An unreachable switch has a finding.
	all := v.linksThat(func(l *FabricLink) bool { return l.Problem != "" && l.Problem != unreachableSwitch })
	byProblem(all)
	v.Wrong = v.table("Links with problems",
		"Worst first. Enabled at both ends: shown where it differs from the rate", all, maxLinks)
}

func (f *Fabric) linksThat(are func(*FabricLink) bool) (out []*FabricLink) {
	for i := range f.Links {
		if l := &f.Links[i]; are(l) {
			out = append(out, l)
		}
	}
	return out
}

// table shows the first of some links.
func (f *Fabric) table(name, caption string, links []*FabricLink, most int) linkTable {
	out := linkTable{Name: name, Caption: caption, More: max(0, len(links)-most)}
	for _, l := range links[:len(links)-out.More] {
		out.Rows = append(out.Rows, f.row(l, &l.Ends[0], &l.Ends[1], ""))
	}
	return out
}

// byProblem puts the worst first, those without problems last.
func byProblem(links []*FabricLink) {
	slices.SortStableFunc(links, func(a, b *FabricLink) int { return problemRank(a.Problem) - problemRank(b.Problem) })
}

func (v *fabricView) lost() {
	v.NoLost = max(0, len(v.Unreachable)-maxNodes)
	for _, n := range v.Unreachable[:len(v.Unreachable)-v.NoLost] {
		v.Lost = append(v.Lost, fmt.Sprintf("%s %s, last seen %s", words.Spaced(n.Type), n.Node, clock(n.Seen)))
	}
}

// head counts what there is.
func (v *fabricView) head(now time.Time) {
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
		text := l.Does.text()
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
	v.Sweep = fmt.Sprintf("Last sweep: started %s ago, took %ss.", ago(now.Sub(v.Time)), digits(v.Took))
	var silent []string
	for _, what := range slices.Sorted(maps.Keys(v.Unanswered)) {
		if n := v.Unanswered[what]; n > 0 {
			silent = append(silent, fmt.Sprintf("%d %s", n, words.Spaced(what)))
		}
	}
	v.Asked = fmt.Sprintf("%s requests since the start, %s timeouts.",
		large(float64(v.Requests)), large(float64(v.Timeouts)))
	if silent != nil {
		v.Asked += " Without an answer in the last sweep: " + strings.Join(silent, ", ") + "."
	}
}

// switches are rows, those in trouble first.
func (v *fabricView) switches() {
	for i := range v.Switches {
		v.Rows = append(v.Rows, v.Switches[i].row())
	}
	slices.SortStableFunc(v.Rows,
		func(a, b switchRow) int { return slices.Index(healths, a.Health) - slices.Index(healths, b.Health) })
	v.NoRows = max(0, len(v.Rows)-maxSwitches)
	v.Rows = v.Rows[:len(v.Rows)-v.NoRows]
}

func (s *Switch) row() switchRow {
	out := switchRow{
		Name: s.Node, Href: switchHref(s.GUID), Health: s.Health, Ports: s.Ports, Up: s.Active,
		Gone: s.Problems[linkGone] + s.Problems[unreachableSwitch], Slow: s.Problems["degraded"],
		Set: s.Problems[settingsDiffer], Errors: large(float64(s.Errors)), Discards: large(float64(s.Discards)),
		Tier: tierName(s.Tier),
	}
	out.Over = notApplicable
	if s.Oversubscription != nil {
		out.Over = value{Text: fmt.Sprintf("%.1f:1", *s.Oversubscription)}
	}
	return out
}

func switchHref(guid string) string { return "switches/" + guid }

// errors lists the links with the most errors.
func (v *fabricView) errors() {
	if v.Since.IsZero() {
		return
	}
	v.ErrorsOf = ago(v.Time.Sub(v.Since))
	all := v.linksThat(func(l *FabricLink) bool { return l.rose(linkErrors)+l.rose(discards) > 0 })
	byErrors(all)
	v.Errors = v.table("Errors on links",
		"Counters that rose in the last "+v.ErrorsOf+", with their rate, worst first", all, maxErrors)
}

// byErrors puts links with the most errors first, then those with the most discards.
func byErrors(links []*FabricLink) {
	slices.SortStableFunc(links, func(a, b *FabricLink) int {
		return cmp.Or(cmp.Compare(b.rose(linkErrors), a.rose(linkErrors)), cmp.Compare(b.rose(discards), a.rose(discards)))
	})
}
