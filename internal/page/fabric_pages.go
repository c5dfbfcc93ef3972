package page

import (
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"time"
)

type linksView struct {
	frame
	All    linkTable
	Filter Filter
}

type switchView struct {
	frame
	Switch   *Switch
	Rows     []fabricPort
	ErrorsOf string
}

// RenderLinks writes the page of the links that a filter takes, those with problems first.
func (p *Page) RenderLinks(w io.Writer, f *Fabric, now time.Time, filter Filter) error {
	v := linksView{frame: f.frame(now, p.links, "", "Links of "+f.Port+" on "+f.Host), Filter: filter}
	all := f.linksThat(filter.takes)
	byProblem(all)
	v.All = f.table("Links", "Links with problems first. Enabled at both ends: shown where it differs from the rate. Utilisation: → to the far end, ← from it, between the last two sweeps", all, len(all))
	v.Health = f.healthOf(all)
	v.Word = v.Health.Heading()
	v.Lead = fmt.Sprintf("%d links, %d of them with a problem.", len(f.Links),
		len(f.linksThat(func(l *FabricLink) bool { return l.Problem != "" })))
	if !filter.empty() {
		v.Lead += fmt.Sprintf(" The filter matches %d.", len(all))
	}
	v.title(v.Word + ": " + v.Name)
	v.Refresh = 0 // a large page, and the filter is filled in
	return p.write(w, "links.html", v)
}

// healthOf is the worst health of some links.
func (f *Fabric) healthOf(links []*FabricLink) Health {
	if f.Time.IsZero() {
		return NotEvaluated
	}
	out := OK
	for _, l := range links {
		out = worst(out, l.Health)
	}
	return out
}

// unknownSwitchError is for a GUID that no switch has; it is fs.ErrNotExist.
type unknownSwitchError string

func (e unknownSwitchError) Error() string {
	return "switch " + string(e) + ": none of that GUID is known, see the list of switches on the first page"
}

// Is reports whether the error counts as fs.ErrNotExist.
func (e unknownSwitchError) Is(target error) bool { return target == fs.ErrNotExist }

// RenderSwitch writes the page of a switch; fs.ErrNotExist where there is none of that GUID.
func (p *Page) RenderSwitch(w io.Writer, f *Fabric, now time.Time, guid string) error {
	i := slices.IndexFunc(f.Switches, func(s Switch) bool { return s.GUID == guid })
	if i < 0 {
		return unknownSwitchError(short(guid, maxName))
	}
	s := &f.Switches[i]
	v := switchView{frame: f.frame(now, p.links, "../", s.Node), Switch: s, Rows: f.portsOf(guid, "../")}
	r := s.row()
	v.Health, v.Word = r.Health, r.Health.Heading()
	v.Lead = fmt.Sprintf("Switch %s (%s): %d ports, %d ACTIVE. Links: %d gone, %d degraded, %d with lower settings at one end. Errors: %s, discards: %s.",
		s.GUID, r.Tier, s.Ports, r.Up, r.Gone, r.Slow, r.Set, r.Errors, r.Discards)
	if !s.Reachable {
		v.Lead = "Switch " + s.GUID + " is unreachable. Links as last known:"
	}
	if !f.Since.IsZero() {
		v.ErrorsOf = ago(f.Time.Sub(f.Since))
	}
	v.title(v.Word + ": " + v.Name)
	return p.write(w, "switch.html", v)
}

// Filter chooses links: ?node=TEXT&faulty=1.
type Filter struct {
	Node   string // part of the name or the GUID of a node at one end
	Faulty bool   // with a problem
}

// FilterOf reads a query. Unknown parameters are ignored.
func FilterOf(q url.Values) Filter {
	return Filter{Node: short(strings.TrimSpace(q.Get("node")), maxName), Faulty: q.Get("faulty") != ""}
}

func (f Filter) empty() bool { return f == Filter{} }

// takes reports whether a link is among those wanted.
func (f Filter) takes(l *FabricLink) bool {
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
