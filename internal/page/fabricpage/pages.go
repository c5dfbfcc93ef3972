package fabricpage

import (
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/page"
)

// linksView is the data of the template of links.
type linksView struct {
	page.Frame
	All    linkTable
	Filter Filter
}

// switchView is the data of the template of a switch.
type switchView struct {
	page.Frame
	Switch   *Switch
	Rows     []portRow
	ErrorsOf string
}

// RenderLinks writes the page of the links that match a filter, those with problems first.
func (p *Page) RenderLinks(w io.Writer, f *Fabric, now time.Time, filter Filter) error {
	v := linksView{Frame: f.newFrame(now, p.Links(), "", "Links of "+f.Port+" on "+f.Host), Filter: filter}
	all := f.selectLinks(filter.matches)
	sortByProblem(all)
	v.All = f.newTable("Links", "Links with problems first. Enabled at both ends: shown where it differs from the rate. Utilisation: → to the far end, ← from it, between the last two sweeps", all, len(all))
	v.Health = f.worstHealth(all)
	v.Word = v.Health.Heading()
	v.Lead = fmt.Sprintf("%d links, %d of them with a problem.", len(f.Links),
		len(f.selectLinks(func(l *Link) bool { return l.Problem != "" })))
	if !filter.isEmpty() {
		v.Lead += fmt.Sprintf(" The filter matches %d.", len(all))
	}
	v.SetTitle(v.Word + ": " + v.Name)
	v.Refresh = 0 // a large page, and the filter is filled in
	return p.Write(w, "links.html", v)
}

// worstHealth returns the worst health of some links.
func (f *Fabric) worstHealth(links []*Link) page.Health {
	if f.Time.IsZero() {
		return page.NotEvaluated
	}
	out := page.OK
	for _, l := range links {
		out = page.Worst(out, l.Health)
	}
	return out
}

// unknownSwitchError is the error for a GUID that no switch has; it is fs.ErrNotExist.
type unknownSwitchError string

func (e unknownSwitchError) Error() string {
	return "switch " + string(e) + ": none of that GUID is known, see the list of switches on the first page"
}

// Is reports whether the error counts as fs.ErrNotExist.
func (e unknownSwitchError) Is(target error) bool { return target == fs.ErrNotExist }

// RenderSwitch writes the page of a switch; the error is fs.ErrNotExist if none has that GUID.
func (p *Page) RenderSwitch(w io.Writer, f *Fabric, now time.Time, guid string) error {
	i := slices.IndexFunc(f.Switches, func(s Switch) bool { return s.GUID == guid })
	if i < 0 {
		return unknownSwitchError(page.Shorten(guid, page.MaxName))
	}
	s := &f.Switches[i]
	v := switchView{Frame: f.newFrame(now, p.Links(), "../", s.Node), Switch: s, Rows: f.listPorts(guid, "../")}
	r := s.newRow()
	v.Health, v.Word = r.Health, r.Health.Heading()
	v.Lead = fmt.Sprintf("Switch %s (%s): %d ports, %d ACTIVE. Links: %d gone, %d degraded, %d with lower settings at one end. Errors: %s, discards: %s.",
		s.GUID, r.Tier, s.Ports, r.Up, r.Gone, r.Slow, r.Set, r.Errors, r.Discards)
	if !s.Reachable {
		v.Lead = "Switch " + s.GUID + " is unreachable. Links as last known:"
	}
	if !f.Since.IsZero() {
		v.ErrorsOf = page.FormatAge(f.Time.Sub(f.Since))
	}
	v.SetTitle(v.Word + ": " + v.Name)
	return p.Write(w, "switch.html", v)
}

// Filter selects links: ?node=TEXT&faulty=1.
type Filter struct {
	Node   string // part of the name or the GUID of a node at one end
	Faulty bool   // with a problem
}

// ParseFilter returns the filter of a query. Unknown parameters are ignored.
func ParseFilter(q url.Values) Filter {
	return Filter{Node: page.Shorten(strings.TrimSpace(q.Get("node")), page.MaxName), Faulty: q.Get("faulty") != ""}
}

// isEmpty reports whether the filter matches all links.
func (f Filter) isEmpty() bool { return f == Filter{} }

// matches reports whether a link matches the filter.
func (f Filter) matches(l *Link) bool {
	if f.Faulty && l.Problem == "" {
		return false
	}
	text := strings.ToLower(f.Node)
	for i := range l.Ends {
		if e := &l.Ends[i]; strings.Contains(strings.ToLower(e.Node), text) || strings.Contains(e.GUID, text) {
			return true
		}
	}
	return false
}
