package setup

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/setup/values"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

// intent is what is wanted of the priorities of a netdev: source of the priority, PFC and DSCP map. The rows of
// traffic compare each setting with it alone, so that one cause is one row, and all remedies together are consistent.
type intent struct {
	trust string
	pfc   []int // priorities; empty on a port that is not lossless
	// from is the basis of pfc, and because names it.
	from    hostdata.SetupBasis
	because string
	usual   []map[int]int // DSCP maps of the sibling ports
	site    map[int]int   // DSCP map of the site configuration
	pinned  []int         // DSCPs of classes that the site configuration wants
}

// guidePriority is the priority of the guides for lossless RoCE, guideDSCP its DSCP.
const (
	guidePriority = 3
	guideDSCP     = 26
)

const ofMost = "that of most ports of this role"

// siteValue returns the value of the site configuration; of several the first that parse accepts. any is set where the
// site configuration accepts whatever is found.
func (m *machine) siteValue(setting string, o object, parse func(string) bool) (value string, any bool) {
	if m.wants == nil {
		return "", false
	}
	want := m.wants(setting, o.device, o.port, o.netdev)
	if want == Any {
		return "", true
	}
	for alternative := range strings.SplitSeq(want, "|") {
		if alternative = strings.TrimSpace(alternative); parse(alternative) {
			return alternative, false
		}
	}
	return "", false
}

// mapped returns the priority of a DSCP once DSCPs are trusted; ok is false if the driver does not report the mapping.
// A table with all DSCPs is that of mlx5, whose default priority is the upper three bits (mlx5e_trust_initialize,
// drivers/net/ethernet/mellanox/mlx5/core/en_dcbnl.c); a DSCP that is missing in a smaller one has priority 0, as in
// dcb_ieee_getapp_mask.
func mapped(q *snapshot.NetdevQoS, driver string, dscp int) (priority int, ok bool) {
	if q.DSCPs == nil {
		return dscp >> 3, driver == "mlx5_core"
	}
	for p, list := range q.DSCPs {
		if slices.Contains(list, uint8(dscp)) {
			return p, true
		}
	}
	return 0, true
}

// wantedPriority returns the priority that a DSCP should have: as found, as on the sibling ports or by default, the
// first with PFC. Without such one the class with this DSCP is wrong, unless the site configuration wants it.
func (l *trafficLane) wantedPriority(dscp int) int {
	p, known := mapped(l.q, l.Driver, dscp)
	if to, ok := l.intent.site[dscp]; ok {
		return to
	}
	candidates := []int{p}
	if !known {
		candidates = nil
	}
	var siblings []string
	for _, other := range l.intent.usual {
		siblings = append(siblings, strconv.Itoa(other[dscp]))
	}
	if usual, err := strconv.Atoi(values.Majority(siblings, 2)); err == nil {
		candidates = append(candidates, usual)
	}
	for _, c := range append(candidates, dscp>>3) {
		if slices.Contains(l.intent.pfc, c) {
			return c
		}
	}
	if slices.Contains(l.intent.pinned, dscp) && len(l.intent.pfc) > 0 {
		return l.intent.pfc[0]
	}
	return p
}

// carries reports whether packets of a class are to have a priority with PFC.
func (l *trafficLane) carries(class int) bool {
	return l.intent.trust != byDSCP || slices.Contains(l.intent.pfc, l.wantedPriority(class>>2))
}

// wantedClass returns a traffic class for all of some lossless lanes: 106 (DSCP 26) if possible, otherwise that of the
// lowest DSCP. Its ECN field is ECT(0), 2. It returns 0 if there is none.
func wantedClass(lanes ...*trafficLane) int {
	var dscps []int
	for _, l := range lanes {
		dscps = slices.AppendSeq(dscps, maps.Keys(l.intent.site))
	}
	slices.Sort(dscps)
	dscps = append(dscps, guideDSCP)
	for d := range 64 {
		dscps = append(dscps, d)
	}
	for _, dscp := range dscps {
		if !slices.ContainsFunc(lanes, func(l *trafficLane) bool { return !l.carries(dscp << 2) }) {
			return dscp<<2 | 2
		}
	}
	return 0
}

// isPFC reports whether a text is a list of priorities.
func isPFC(text string) bool {
	_, ok := values.Priorities(text)
	return ok
}

// commonClass returns a traffic class for as many of some lossless lanes as possible, and these lanes.
func commonClass(lanes []*trafficLane) (class int, of []*trafficLane) {
	candidates := []int{wantedClass(lanes...)}
	for _, l := range lanes {
		candidates = append(candidates, wantedClass(l))
	}
	for _, candidate := range candidates {
		carrying := slices.DeleteFunc(slices.Clone(lanes), func(l *trafficLane) bool { return !l.carries(candidate) })
		if candidate != 0 && len(carrying) > len(of) {
			class, of = candidate, carrying
		}
	}
	return class, of
}

// classed returns the DSCP that packets of a lane certainly have; ok is false where no setting says so.
func (l *trafficLane) classed() (dscp int, ok bool) {
	for i := range l.chains {
		if c := &l.chains[i]; (c.job == nil || c.job.certain) && c.class>>2 != 0 {
			return c.class >> 2, true
		}
	}
	return 0, false
}

// selected returns the priority that the class of a lane selects by its map; -1: none, or that of other traffic.
func (l *trafficLane) selected() int {
	if dscp, ok := l.classed(); ok {
		if p, known := mapped(l.q, l.Driver, dscp); known && p > 0 {
			return p
		}
	}
	return -1
}

// setIntents completes the lanes with what is wanted of them.
func (m *machine) setIntents(lanes []*trafficLane) {
	for _, l := range lanes { // a port on which the site configuration wants PFC is lossless
		text, _ := m.siteValue("pfc_on_rdma_priority", l.object(), isPFC)
		if list, ok := values.Priorities(text); ok && text != "" {
			l.lossless = len(list) > 0 || l.lossless
		}
	}
	lossless := slices.DeleteFunc(slices.Clone(lanes), func(l *trafficLane) bool { return !l.lossless })
	for _, l := range lanes {
		l.intent.from = hostdata.SetupMachine
		l.intent.trust = usualOf(lanes, l.Role, func(l *trafficLane) string { return l.q.Trust })
		if l.lossless {
			l.intent.trust = byDSCP
			m.setPFCIntent(lossless, l)
		}
		if trust, any := m.siteValue("trust_mode", l.object(), func(v string) bool { return v != "" }); any {
			l.intent.trust = l.q.Trust
		} else if trust != "" {
			l.intent.trust = trust
		}
		l.intent.site = map[int]int{}
		text, _ := m.siteValue("dscp_map", l.object(), func(v string) bool { _, _, ok := values.Mappings(v); return ok })
		if _, to, ok := values.Mappings(text); ok {
			l.intent.site = to
		}
		for setting, o := range map[string]object{"default_traffic_class": l.roce.object(), "job_traffic_class": {}} {
			if text, _ := m.siteValue(setting, o, values.IsClass); text != "" {
				class, _ := strconv.Atoi(text)
				l.intent.pinned = append(l.intent.pinned, class>>2)
			}
		}
	}
	for _, l := range lossless {
		for _, o := range lossless {
			if o.Role != l.Role {
				continue
			}
			to := map[int]int{}
			for d := range 64 {
				to[d] = -1
				if p, ok := mapped(o.q, o.Driver, d); ok {
					to[d] = p
				}
			}
			l.intent.usual = append(l.intent.usual, to)
		}
		l.lossless = len(l.intent.pfc) > 0
	}
}

// setPFCIntent sets the wanted PFC of a lossless lane: that of the site configuration, of most siblings, its own, that
// of a sibling, by its class, by the guides.
func (m *machine) setPFCIntent(lossless []*trafficLane, l *trafficLane) {
	n := &l.intent
	found := priorities(l.q.PFC)
	text, any := m.siteValue("pfc_on_rdma_priority", l.object(), isPFC)
	switch {
	case any, m.wants != nil && values.Accepts(m.wants("pfc_on_rdma_priority", l.Name, l.Number, l.q.Name), pfcText(l)):
		n.pfc, n.from = found, hostdata.SetupSite
		return
	case text != "":
		n.pfc, _ = values.Priorities(text)
		n.from = hostdata.SetupSite
		return
	}
	enabled := slices.DeleteFunc(slices.Clone(lossless), func(o *trafficLane) bool {
		return o.Role != l.Role || len(priorities(o.q.PFC)) == 0
	})
	usual := usualOf(enabled, l.Role, pfcText)
	selected := l.selected()
	switch {
	case usual != "":
		n.pfc, _ = values.Priorities(usual)
		n.because = ofMost
	case len(found) > 0 && selected == guidePriority && !slices.Contains(found, guidePriority):
		// Class, map and guides agree: PFC is wrong.
		n.pfc, n.because = []int{guidePriority}, fmt.Sprintf("its class selects priority %d", selected)
	case len(found) > 0:
		n.pfc = found
	case len(enabled) > 0:
		n.pfc, n.because = priorities(enabled[0].q.PFC), "that of "+enabled[0].q.Name
	default:
		classes := usualOf(lossless, l.Role, func(o *trafficLane) string {
			if p := o.selected(); p > 0 {
				return strconv.Itoa(p)
			}
			return ""
		})
		if p, err := strconv.Atoi(classes); err == nil {
			selected = p
		}
		n.pfc = []int{selected}
		if n.because = fmt.Sprintf("the class selects priority %d", selected); selected <= 0 {
			n.pfc, n.from, n.because = []int{guidePriority}, hostdata.SetupGuide, ""
		}
	}
}
