package page

import (
	"cmp"
	"slices"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/words"
)

// FabricInput is the data of the pages of a fabric.
type FabricInput struct {
	Exporter string        // version of the program
	Host     string        // of the exporter
	Port     string        // local port of the sweeps: "mlx5_0/1"
	Interval time.Duration // between sweeps
	Picture  *fabric.Picture

	Rules     bool             // they are evaluated
	Report    *check.Report    // of the last evaluation; nil: there is none
	Alerts    []alerting.Alert // of that evaluation
	Evaluated time.Time
}

// Fabric is what the pages of a fabric show, and what GET /api/v1/fabric answers: docs/api.md. It does not change.
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
	Unreachable []FabricNode    `json:"unreachable_nodes"` // that are remembered
	Switches    []Switch        `json:"switches"`
	Links       []FabricLink    `json:"links"`
	Since       time.Time       `json:"counters_since"`
	Requests    uint64          `json:"requests_total"`
	Timeouts    uint64          `json:"request_timeouts_total"`

	Report  *check.Report `json:"report"`  // null with --no-alerting, and before the first evaluation
	Waiting []Waiting     `json:"waiting"` // alerts that are pending and not among the findings

	in       FabricInput
	findings map[fabric.End][]check.Finding // byPort
	pending  map[fabric.End][]check.Finding
	picture  *fabric.Picture
	names    map[fabric.GUID]string
}

// SubnetManager is one that answers.
type SubnetManager struct {
	State    string `json:"state"`
	GUID     string `json:"node_guid,omitempty"`
	Node     string `json:"node,omitempty"`
	PortGUID string `json:"port_guid"`
	Priority int    `json:"priority"`
}

// FabricNode is a switch, an adapter or a router.
type FabricNode struct {
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
	Health    Health         `json:"health"` // the worst of its findings and of those on its links
	Alerts    []string       `json:"alerts,omitempty"`
	Problems  map[string]int `json:"problems,omitempty"` // links that have it
	Errors    uint64         `json:"errors"`             // of links, at its ports, since counters_since
	Discards  uint64         `json:"discards"`           // at its ports, since counters_since
	Tier      int            `json:"tier,omitempty"`     // hops from the nearest host: 1 is a leaf; 0: no path to one
	// Oversubscription is the data rate of its links to hosts, to that of its links to switches that are up; of a leaf.
	Oversubscription *float64 `json:"oversubscription_ratio,omitempty"`
	UplinksMissing   int      `json:"uplinks_missing,omitempty"` // links to switches that are remembered
}

// smStates are states of subnet managers in words, by the number that SMInfo has.
var smStates = []string{
	mad.SMNotActive: "not active", mad.SMDiscovering: "discovering", mad.SMStandby: "standby", mad.SMMaster: "master",
}

// NewFabric makes the picture. Before the first sweep there is what is remembered.
func NewFabric(in FabricInput) *Fabric {
	p := in.Picture
	f := &Fabric{
		Version: Version, Exporter: in.Exporter, Host: exposition.ValidLabel(in.Host), Port: exposition.ValidLabel(in.Port),
		Since:   p.Since.UTC(),
		Reached: map[string]int{}, Unanswered: map[string]int{}, Managers: []SubnetManager{}, Unreachable: []FabricNode{},
		Switches: []Switch{}, Links: []FabricLink{},
		Requests: p.Stats.Sent, Timeouts: p.Stats.Timeouts, in: in, picture: p, names: names(p.Known.Nodes),
		Report: in.Report, Waiting: waiting(in.Alerts, in.Report),
	}
	if in.Report != nil {
		f.findings, f.pending = byPort(in.Report.Findings), byPort(in.Report.Pending)
	}
	if p.Failed != nil {
		f.Failed = short(p.Failed.Error(), maxText)
	}
	if p.Fabric != nil {
		f.Time, f.Took = p.Fabric.At.UTC(), p.Fabric.Took.Seconds()
		for q, n := range p.Fabric.Unanswered {
			f.Unanswered[string(q)] = n
		}
		for _, n := range p.Fabric.Nodes {
			f.Reached[n.Type.String()]++
		}
		f.managers()
	}
	f.nodes()
	f.links()
	f.switches()
	return f
}

// maxName is how long a name may be, in letters: NodeDescription has 64 bytes (IBA 14.2.5.2).
const maxName = 64

// names are those of nodes. What has none of its own has its GUID too.
func names(nodes []fabric.KnownNode) map[fabric.GUID]string {
	of := map[string]int{}
	for _, n := range nodes {
		of[n.Description]++
	}
	out := map[fabric.GUID]string{}
	for _, n := range nodes {
		name := short(exposition.ValidLabel(n.Description), maxName)
		if name == "" || of[n.Description] > 1 {
			name = words.Join(" ", name, n.GUID.String())
		}
		out[n.GUID] = name
	}
	return out
}

// nodes lists those that are remembered and were not reached.
func (f *Fabric) nodes() {
	for _, n := range f.picture.Known.Nodes {
		if !f.reached(n.GUID) {
			f.Unreachable = append(f.Unreachable, FabricNode{n.GUID.String(), f.names[n.GUID], n.Type.String(), n.Seen.UTC()})
		}
	}
	slices.SortFunc(f.Unreachable, func(a, b FabricNode) int { // switches are the last of the types
		return cmp.Or(cmp.Compare(b.Type, a.Type), byNumber(a.Node, b.Node))
	})
}

// reached reports whether the last sweep has reached a node; before the first sweep, all count as reached.
func (f *Fabric) reached(guid fabric.GUID) bool {
	return f.picture.Fabric == nil || f.picture.Fabric.Nodes[guid] != nil
}

func (f *Fabric) managers() {
	for _, m := range f.picture.Fabric.Managers {
		state := uint64(m.Info.State)
		x := SubnetManager{
			State: snapshot.NameOf(smStates, &state), PortGUID: fabric.GUID(m.Info.GUID).String(), Priority: m.Info.Priority,
		}
		if m.Node != 0 {
			x.GUID, x.Node = m.Node.String(), f.names[m.Node]
		}
		f.Managers = append(f.Managers, x)
	}
	slices.SortStableFunc(f.Managers, func(a, b SubnetManager) int {
		return cmp.Or(slices.Index(smStates, b.State)-slices.Index(smStates, a.State), b.Priority-a.Priority)
	})
}

func (f *Fabric) switches() {
	at := map[fabric.GUID]*Switch{}
	for _, n := range f.picture.Known.Nodes {
		if n.Type == mad.Switch {
			s := &Switch{
				GUID: n.GUID.String(), Node: f.names[n.GUID], Reachable: f.reached(n.GUID), Ports: n.Ports,
				Problems: map[string]int{},
			}
			s.Health, s.Alerts = f.found(fabric.End{GUID: n.GUID})
			if s.Health == OK && (!s.Reachable || !evaluated(f.in.Report)) {
				s.Health = NotEvaluated
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
				s.Health = worst(s.Health, l.Health)
			}
			s.Errors += e.rose(linkErrors)
			s.Discards += e.rose(discards)
		}
	}
	for _, l := range f.picture.Leaves {
		if s := at[l.GUID]; s != nil && l.Up > 0 && s.Reachable {
			ratio := l.Ratio()
			s.Oversubscription, s.UplinksMissing = &ratio, l.Missing
		}
	}
	tiers := f.tiers()
	for guid, s := range at {
		s.Tier = tiers[guid]
		f.Switches = append(f.Switches, *s)
	}
	slices.SortFunc(f.Switches,
		func(a, b Switch) int { return cmp.Or(byNumber(a.Node, b.Node), cmp.Compare(a.GUID, b.GUID)) })
}
