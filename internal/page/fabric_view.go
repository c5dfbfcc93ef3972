package page

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/mad"
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
	Facts        []fabricFact
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

// fabricFact is something that is wrong, by the alert that tells of it.
type fabricFact struct {
	Health  Health
	Alert   string
	Summary string
	Runbook string
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
	Ports, Up, Gone, Slow, Set int
	Errors                     string
}

// RenderFabric writes the first page of a fabric.
func (p *Page) RenderFabric(w io.Writer, f *Fabric, now time.Time) error {
	v := fabricView{Fabric: f, frame: f.frame(now, p.links, "", "Fabric of "+f.Port+" on "+f.Host)}
	v.facts()
	v.verdict()
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
	out := frame{Base: base, Name: name, Footer: links, From: "Looks from " + f.Port + " on " + f.Host + "."}
	out.when(f.Time)
	out.Refresh = fabricRefresh
	if why := f.Stale(now); why != "" {
		out.stale(now.Sub(f.Time), why)
	}
	return out
}

// Stale says why what is shown is not of now; empty where it is.
func (f *Fabric) Stale(now time.Time) string {
	age := now.Sub(f.Time)
	if f.Time.IsZero() || f.Failed == "" && !tooOld(age, f.interval) {
		return ""
	}
	return cmp.Or(f.Failed, "No sweep has finished since.")
}

// facts are what is wrong, the worst first.
func (v *fabricView) facts() {
	add := func(h Health, alert, summary string) {
		v.Facts = append(v.Facts, fabricFact{h, alert, summary, runbookPath(alert)})
	}
	if v.Failed != "" {
		add(Warning, "RDMAFabricUnseen", "The fabric cannot be looked at: "+v.Failed)
	}
	if v.Time.IsZero() {
		return
	}
	if len(v.Managers) == 0 || v.Managers[0].State != smStates[mad.SMMaster] {
		add(Critical, "RDMAFabricNoSubnetManager", "No master subnet manager answers.")
	}
	if n := v.unreachable(); n > 0 {
		add(Critical, "RDMAFabricSwitchUnreachable", either(n, "1 switch does not answer.", "%d switches do not answer."))
	}
	if n := v.silent(); n > 0 {
		add(Warning, "RDMAFabricPartlySeen", either(n, "1 part of the fabric does not answer.", "%d parts of the fabric do not answer."))
	}
	for _, p := range problems {
		n := 0
		for _, l := range v.Fabric.Links {
			if l.Problem == p.name {
				n++
			}
		}
		if n > 0 && p.alert != "" {
			add(p.health, p.alert, either(n, "1 link is "+p.text+".", "%d links are "+p.text+"."))
		}
	}
	slices.SortStableFunc(v.Facts, func(a, b fabricFact) int { return slices.Index(healths, a.Health) - slices.Index(healths, b.Health) })
}

// either is for one, or for many with their number.
func either(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(many, n)
}

// unreachable counts switches.
func (f *Fabric) unreachable() (n int) {
	for _, x := range f.Unreachable {
		if x.Type == mad.Switch.String() {
			n++
		}
	}
	return n
}

// silent counts what did not answer, subnet managers aside, which are told of by themselves.
func (f *Fabric) silent() (n int) {
	for what, k := range f.Unanswered {
		if what != string(fabric.AskManager) {
			n += k
		}
	}
	return n
}

func (v *fabricView) verdict() {
	v.Health = OK
	for _, x := range v.Facts {
		v.Health = worst(v.Health, x.Health)
	}
	v.Word, v.Coverage = v.Health.Heading(), "Alerts are evaluated by the Prometheus that scrapes this exporter, and wait some minutes."
	switch {
	case v.Time.IsZero() && v.Failed != "":
		v.Health, v.Word, v.Lead = NotEvaluated, "Unseen", v.Facts[0].Summary
	case v.Time.IsZero():
		v.Health, v.Word, v.Lead = NotEvaluated, "Starting", "The first sweep has not ended."
	case v.Health == OK:
		v.Lead = "Nothing is wrong with the fabric, as far as a sweep sees."
	default:
		var parts []string
		for _, x := range v.Facts {
			parts = append(parts, x.Summary)
		}
		v.Lead = strings.Join(parts, " ")
	}
	v.title(v.Word + ": " + v.Name)
}

// wrong lists links with problems, the worst first.
func (v *fabricView) wrong() {
	var all []*FabricLink
	for i := range v.Fabric.Links {
		if v.Fabric.Links[i].Problem != "" {
			all = append(all, &v.Fabric.Links[i])
		}
	}
	byProblem(all)
	v.Wrong = v.table("Links that are wrong", "The worst first; what both ends enable stands where the link does something else", all, maxLinks)
}

// table shows the first of some links.
func (f *Fabric) table(name, caption string, links []*FabricLink, most int) linkTable {
	out := linkTable{Name: name, Caption: caption, More: max(0, len(links)-most)}
	for _, l := range links[:len(links)-out.More] {
		out.Rows = append(out.Rows, f.row(l, ""))
	}
	return out
}

// byProblem puts the worst first, those without problems last.
func byProblem(links []*FabricLink) {
	rank := func(l *FabricLink) int {
		if i := slices.IndexFunc(problems, func(p problem) bool { return p.name == l.Problem }); i >= 0 {
			return i
		}
		return len(problems)
	}
	slices.SortStableFunc(links, func(a, b *FabricLink) int { return rank(a) - rank(b) })
}

func (v *fabricView) lost() {
	v.NoLost = max(0, len(v.Unreachable)-maxNodes)
	for _, n := range v.Unreachable[:len(v.Unreachable)-v.NoLost] {
		v.Lost = append(v.Lost, fmt.Sprintf("%s %s, last seen %s", strings.ReplaceAll(n.Type, "_", " "), n.Node, clock(n.Seen)))
	}
}

// head counts what there is.
func (v *fabricView) head(now time.Time) {
	if v.Time.IsZero() {
		v.Head = fmt.Sprintf("Remembered: %d nodes and %d links.", len(v.picture.Known.Nodes), len(v.Fabric.Links))
		return
	}
	v.Head = fmt.Sprintf("%d switches, %d adapters, %d routers, %d links.",
		v.Reached[mad.Switch.String()], v.Reached[mad.ChannelAdapter.String()], v.Reached[mad.Router.String()], len(v.picture.Fabric.Links)/2)
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
	slices.SortFunc(v.Speeds, func(a, b speedRow) int { return cmp.Or(cmp.Compare(b.rate, a.rate), strings.Compare(a.Text, b.Text)) })
	v.Sweep = fmt.Sprintf("The last sweep began %s ago and took %s s.", ago(now.Sub(v.Time)), digits(v.Took))
	var silent []string
	for _, what := range sortedQuestions(v.Unanswered) {
		silent = append(silent, fmt.Sprintf("%d of %s", v.Unanswered[what], strings.ReplaceAll(what, "_", " ")))
	}
	v.Asked = fmt.Sprintf("%s requests since the start, %s of them without an answer.", large(float64(v.Requests)), large(float64(v.Timeouts)))
	if silent != nil {
		v.Asked += " In the last sweep no answer to questions: " + strings.Join(silent, ", ") + "."
	}
}

func sortedQuestions(m map[string]int) (out []string) {
	for what, n := range m {
		if n > 0 {
			out = append(out, what)
		}
	}
	slices.Sort(out)
	return out
}

// switches are rows, those in trouble first.
func (v *fabricView) switches() {
	for i := range v.Switches {
		v.Rows = append(v.Rows, v.Switches[i].row())
	}
	slices.SortStableFunc(v.Rows, func(a, b switchRow) int { return slices.Index(healths, a.Health) - slices.Index(healths, b.Health) })
	v.NoRows = max(0, len(v.Rows)-maxSwitches)
	v.Rows = v.Rows[:len(v.Rows)-v.NoRows]
}

func (s *Switch) row() switchRow {
	out := switchRow{
		Name: s.Node, Href: switchHref(s.GUID), Health: OK, Ports: s.Ports, Up: s.Active,
		Gone: s.Problems["gone"] + s.Problems["switch_unreachable"], Slow: s.Problems["degraded"], Set: s.Problems["settings_differ"], Errors: large(float64(s.Errors)),
	}
	for _, p := range problems {
		if s.Problems[p.name] > 0 {
			out.Health = worst(out.Health, p.health)
		}
	}
	if !s.Reachable {
		out.Health = Critical
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
	var all []*FabricLink
	for i := range v.Fabric.Links {
		if l := &v.Fabric.Links[i]; l.errors() > 0 {
			all = append(all, l)
		}
	}
	slices.SortStableFunc(all, func(a, b *FabricLink) int { return cmp.Compare(b.errors(), a.errors()) })
	v.Errors = v.table("Errors on links", "Counters that rose in the last "+v.ErrorsOf+", the most first", all, maxErrors)
}

func (l *FabricLink) errors() uint64 { return l.Ends[0].linkErrors() + l.Ends[1].linkErrors() }
