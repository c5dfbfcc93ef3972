package fabricpage

import (
	"cmp"
	"slices"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/words"
)

// Input is the data of the pages of a fabric.
type Input struct {
	Exporter string        // version of the program
	Host     string        // of the exporter
	Port     string        // local port of the sweeps: "mlx5_0/1"
	Interval time.Duration // between sweeps
	Picture  *fabric.Picture

	Rules     bool             // they are evaluated
	Report    *check.Report    // of the last evaluation; nil: there is none
	Alerts    []alerting.Alert // of that evaluation
	Evaluated time.Time
	Parts     []map[string]string // ends of links whose switch has the finding (link:rdma_fabric_finding:of_switch)
}

// Fabric is the data of the pages of a fabric, and the answer of GET /api/v1/fabric (docs/api.md). It is immutable.
type Fabric struct {
	Version     int             `json:"version"`
	Exporter    string          `json:"exporter"`
	Host        string          `json:"host"` // of the exporter
	Port        string          `json:"port"` // local port of the sweeps
	Time        time.Time       `json:"time"` // of the last sweep that has not failed
	Took        float64         `json:"sweep_duration_seconds"`
	Failed      string          `json:"failed,omitempty"`  // why the sweep after that has
	Reached     map[string]int  `json:"nodes"`             // by type
	Unanswered  map[string]int  `json:"unanswered"`        // by what was asked for
	Managers    []SubnetManager `json:"subnet_managers"`   // that answer, the master first
	Unreachable []Node          `json:"unreachable_nodes"` // that are remembered
	Switches    []Switch        `json:"switches"`
	Links       []Link          `json:"links"`
	Since       time.Time       `json:"counters_since"`
	Requests    uint64          `json:"requests_total"`
	Timeouts    uint64          `json:"request_timeouts_total"`

	Report  *check.Report  `json:"report"`  // null with --no-alerting, and before the first evaluation
	Waiting []page.Waiting `json:"waiting"` // alerts that are pending and not among the findings

	in        Input
	findings  map[fabric.End][]check.Finding // groupByPort
	pending   map[fabric.End][]check.Finding
	picture   *fabric.Picture
	latest    map[fabric.End]fabric.KnownLink // of each port
	former    map[fabric.End]bool             // ports with another link that is missing
	nameNodes map[fabric.GUID]string
}

// SubnetManager is a subnet manager that answers.
type SubnetManager struct {
	State    string `json:"state"`
	GUID     string `json:"node_guid,omitempty"`
	Node     string `json:"node,omitempty"`
	PortGUID string `json:"port_guid"`
	Priority int    `json:"priority"`
}

// Node is a switch, an adapter or a router.
type Node struct {
	GUID string    `json:"node_guid"`
	Node string    `json:"node"`
	Type string    `json:"node_type"`
	Seen time.Time `json:"last_seen"`
}

// Switch sums up the ports of a switch that have a link, or had one.
type Switch struct {
	GUID      string         `json:"node_guid"`
	Node      string         `json:"node"`
	Reachable bool           `json:"reachable"`
	Ports     int            `json:"ports"`
	Active    int            `json:"ports_active"`
	Health    page.Health    `json:"health"` // the worst of its findings and of those on its links
	Alerts    []string       `json:"alerts,omitempty"`
	Problems  map[string]int `json:"problems,omitempty"` // links that have it
	Errors    uint64         `json:"errors"`             // of links, at its ports, since counters_since
	Discards  uint64         `json:"discards"`           // at its ports, since counters_since
	Tier      int            `json:"tier,omitempty"`     // hops from the nearest host: 1 is a leaf; 0: no path to one
	// Oversubscription is, for a leaf, the ratio of the data rate of its links to hosts to that of its links to
	// switches that are up.
	Oversubscription *float64 `json:"oversubscription_ratio,omitempty"`
	UplinksMissing   int      `json:"uplinks_missing,omitempty"` // links to switches that are remembered
}

// smStates are the states of subnet managers in words, by their number in SMInfo.
var smStates = []string{
	mad.SMNotActive: "not active", mad.SMDiscovering: "discovering", mad.SMStandby: "standby", mad.SMMaster: "master",
}

// New returns the data of the pages of a fabric. Before the first sweep these are the remembered nodes and links.
func New(in Input) *Fabric {
	p := in.Picture
	f := &Fabric{
		Version: page.Version, Exporter: in.Exporter, Host: exposition.ValidLabel(in.Host),
		Port: exposition.ValidLabel(in.Port), Since: p.Since.UTC(),
		Reached: map[string]int{}, Unanswered: map[string]int{}, Managers: []SubnetManager{}, Unreachable: []Node{},
		Switches: []Switch{}, Links: []Link{},
		Requests: p.Stats.Sent, Timeouts: p.Stats.Timeouts, in: in, picture: p, nameNodes: nameNodes(p.Known.Nodes),
		Report: in.Report, Waiting: page.ListWaiting(in.Alerts, in.Report),
	}
	if in.Report != nil {
		f.findings, f.pending = groupByPort(in.Report.Findings), groupByPort(in.Report.Pending)
		shareWithLinks(f.findings, in.Parts)
		shareWithLinks(f.pending, in.Parts)
	}
	if p.Failed != nil {
		f.Failed = page.Shorten(p.Failed.Error(), page.MaxText)
	}
	if p.Fabric != nil {
		f.Time, f.Took = p.Fabric.At.UTC(), p.Fabric.Took.Seconds()
		for q, n := range p.Fabric.Unanswered {
			f.Unanswered[string(q)] = n
		}
		for _, n := range p.Fabric.Nodes {
			f.Reached[n.Type.String()]++
		}
		f.addManagers()
	}
	f.addUnreachable()
	f.addLinks()
	f.addSwitches()
	return f
}

// nameNodes returns the names of nodes. A name that is empty or not unique includes the GUID.
func nameNodes(nodes []fabric.KnownNode) map[fabric.GUID]string {
	of := map[string]int{}
	for _, n := range nodes {
		of[n.Description]++
	}
	out := map[fabric.GUID]string{}
	for _, n := range nodes {
		name := page.Shorten(exposition.ValidLabel(n.Description), page.MaxName)
		if name == "" || of[n.Description] > 1 {
			name = words.Join(" ", name, n.GUID.String())
		}
		out[n.GUID] = name
	}
	return out
}

// addUnreachable adds the remembered nodes that were not reached.
func (f *Fabric) addUnreachable() {
	for _, n := range f.picture.Known.Nodes {
		if !f.isReached(n.GUID) {
			f.Unreachable = append(f.Unreachable, Node{n.GUID.String(), f.nameNodes[n.GUID], n.Type.String(), n.Seen.UTC()})
		}
	}
	slices.SortFunc(f.Unreachable, func(a, b Node) int { // switches are the last of the types
		return cmp.Or(cmp.Compare(b.Type, a.Type), page.CompareNames(a.Node, b.Node))
	})
}

// isReached reports whether the last sweep has reached a node; before the first sweep, all count as reached.
func (f *Fabric) isReached(guid fabric.GUID) bool {
	return f.picture.Fabric == nil || f.picture.Fabric.Nodes[guid] != nil
}

// addManagers adds the subnet managers that answer, the master first.
func (f *Fabric) addManagers() {
	for _, m := range f.picture.Fabric.Managers {
		state := uint64(m.Info.State)
		x := SubnetManager{
			State: snapshot.NameOf(smStates, &state), PortGUID: fabric.GUID(m.Info.GUID).String(), Priority: m.Info.Priority,
		}
		if m.Node != 0 {
			x.GUID, x.Node = m.Node.String(), f.nameNodes[m.Node]
		}
		f.Managers = append(f.Managers, x)
	}
	slices.SortStableFunc(f.Managers, func(a, b SubnetManager) int {
		return cmp.Or(slices.Index(smStates, b.State)-slices.Index(smStates, a.State), b.Priority-a.Priority)
	})
}

// addSwitches adds the switches, sorted by name.
func (f *Fabric) addSwitches() {
	at := map[fabric.GUID]*Switch{}
	for _, n := range f.picture.Known.Nodes {
		if n.Type == mad.Switch {
			s := &Switch{
				GUID: n.GUID.String(), Node: f.nameNodes[n.GUID], Reachable: f.isReached(n.GUID), Ports: n.Ports,
				Problems: map[string]int{},
			}
			s.Health, s.Alerts = f.findHealth(fabric.End{GUID: n.GUID}, func(check.Finding) bool { return true })
			if s.Health == page.OK && (!s.Reachable || !page.IsEvaluated(f.in.Report)) {
				s.Health = page.NotEvaluated
			}
			at[n.GUID] = s
		}
	}
	for _, l := range f.Links {
		for _, e := range l.Ends {
			s := at[e.end.GUID]
			if s == nil {
				continue
			}
			if e.State == snapshot.PortStates[snapshot.PortActive] {
				s.Active++
			}
			if l.Problem != "" {
				s.Problems[l.Problem]++
			}
			if l.Problem != unreachableSwitch {
				s.Health = page.Worst(s.Health, l.Health)
			}
			s.Errors += e.sumRisen(linkErrors)
			s.Discards += e.sumRisen(discards)
		}
	}
	for _, l := range f.picture.Leaves {
		if s := at[l.GUID]; s != nil && l.Up > 0 && s.Reachable {
			ratio := l.Ratio()
			s.Oversubscription, s.UplinksMissing = &ratio, l.Missing
		}
	}
	tiers := f.findTiers()
	for guid, s := range at {
		s.Tier = tiers[guid]
		f.Switches = append(f.Switches, *s)
	}
	slices.SortFunc(f.Switches,
		func(a, b Switch) int { return cmp.Or(page.CompareNames(a.Node, b.Node), cmp.Compare(a.GUID, b.GUID)) })
}
