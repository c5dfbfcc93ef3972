package page

import (
	"net/url"
	"strings"
)

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
