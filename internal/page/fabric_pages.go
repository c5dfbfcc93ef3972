package page

import (
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"
)

type linksView struct {
	frame
	All linkTable
}

type switchView struct {
	frame
	*Switch
	Rows     []fabricPort
	ErrorsOf string
}

// RenderLinks writes the page of all links, those with problems first.
func (p *Page) RenderLinks(w io.Writer, f *Fabric, now time.Time) error {
	v := linksView{frame: f.frame(now, p.links, "", "All links of "+f.Port+" on "+f.Host)}
	all := make([]*FabricLink, len(f.Links))
	wrong := 0
	for i := range f.Links {
		all[i] = &f.Links[i]
		if all[i].Problem != "" {
			wrong++
		}
	}
	byProblem(all)
	v.All = f.table("All links", "Those that are wrong first; what both ends enable stands where the link does something else", all, len(all))
	v.Health, v.Word = NotEvaluated, "Links"
	v.Lead = fmt.Sprintf("%d links, %d of them with a problem.", len(all), wrong)
	v.title(v.Name)
	v.Refresh = 0 // a large page, and the filter is filled in
	return p.write(w, "links.html", v)
}

// unknownSwitchError is for a GUID that no switch has; it is fs.ErrNotExist.
type unknownSwitchError string

func (e unknownSwitchError) Error() string {
	return "switch " + string(e) + ": none of that GUID is known: the first page lists those that are"
}

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
	v.Lead = fmt.Sprintf("Switch %s: %d ports, %d ACTIVE; links gone %d, degraded %d, set lower at one end %d.", s.GUID, s.Ports, r.Up, r.Gone, r.Slow, r.Set)
	if !s.Reachable {
		v.Lead = "Switch " + s.GUID + " does not answer. Its links were:"
	}
	if !f.Since.IsZero() {
		v.ErrorsOf = ago(f.Time.Sub(f.Since))
	}
	v.title(v.Word + ": " + v.Name)
	return p.write(w, "switch.html", v)
}
