package incidents

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sweepInterval is the default of --fabric.interval.
const sweepInterval = time.Minute

// sweeper is an exporter in fabric mode, on a management host.
type sweeper struct {
	cluster  *cluster
	swept    time.Duration
	nodes    []*node
	links    []*link
	managers []*manager
	scrapeTarget
}

// node is a switch or an adapter, as the last sweep has found it.
type node struct {
	guid, name, kind string
	answers          func() bool
	reachable        bool
}

// link is one end of a link, at a switch.
type link struct {
	at, to       *node
	port, toPort int
	end          string
	up           func() bool
	downs        func() float64
	missing      bool
	state, count float64
}

// States of subnet managers, as rdma_fabric_subnet_manager_state_id has them.
const (
	gone    = 0
	standby = 2
	master  = 3
)

type manager struct {
	node    *node
	state   float64
	seen    float64 // by the last sweep
	packets float64 // ActCount
}

func newSweeper(c *cluster) *sweeper {
	s := &sweeper{cluster: c, swept: -before - sweepInterval}
	add := func(guid, name, kind string, answers func() bool) *node {
		n := &node{guid: guid, name: name, kind: kind, answers: answers, reachable: true}
		s.nodes = append(s.nodes, n)
		return n
	}
	switches, ports := map[*netSwitch]*node{}, map[*netSwitch]int{}
	for _, n := range slices.Concat(c.leaves, c.spines) {
		switches[n] = add(n.guid, n.name, "switch", func() bool { return !n.off })
	}
	for i, leaf := range c.leaves {
		for _, spine := range c.spines {
			ports[leaf]++
			up, downs := func() bool { return !leaf.off && !spine.off }, func() float64 { return 0 }
			s.links = append(s.links,
				&link{at: switches[leaf], to: switches[spine], port: ports[leaf], toPort: i + 1, end: "1", up: up, downs: downs},
				&link{at: switches[spine], to: switches[leaf], port: i + 1, toPort: ports[leaf], end: "2", up: up, downs: downs})
		}
	}
	for _, h := range c.hosts {
		for _, p := range h.ports {
			a := add(p.guid, fmt.Sprintf("%s %s", h.name, p.device()), "channel_adapter",
				func() bool { return p.up && !p.leaf.off })
			ports[p.leaf]++
			s.links = append(s.links, &link{
				at: switches[p.leaf], to: a, port: ports[p.leaf], toPort: 1, end: "1",
				up: func() bool { return p.up }, downs: func() float64 { return p.counts[switchDowned] },
			})
		}
	}
	for n, state := range []float64{master, standby} {
		a := add(fmt.Sprintf("b83f:d203:ffff:000%x", n), fmt.Sprintf("mgmt-%d mlx5_0", n+1), "channel_adapter",
			func() bool { return true })
		s.managers = append(s.managers, &manager{node: a, state: state})
	}
	s.bind()
	return s
}

// step sweeps when it is time.
func (s *sweeper) step(now time.Duration) {
	for _, m := range s.managers {
		if m.state != gone {
			m.packets += 100
		}
	}
	if now < s.swept+sweepInterval {
		return
	}
	s.swept = now
	for _, n := range s.nodes {
		n.reachable = n.answers()
	}
	for _, l := range s.links {
		// A link of which neither end answers is neither there nor gone.
		l.missing = !l.up() && (l.at.reachable || l.to.reachable)
		l.state, l.count = absent, absent
		if l.at.reachable {
			l.state, l.count = 1+3*where(l.up()), l.downs()
		}
	}
	for _, m := range s.managers {
		m.seen = m.state
	}
}

// subnetManagers counts those that the last sweep has found in a state.
func (s *sweeper) subnetManagers(state float64) (n float64) {
	for _, m := range s.managers {
		n += where(m.seen == state)
	}
	return n
}

func (s *sweeper) bind() {
	i := identity{s.cluster.cluster, "mgmt-1:10880", "rdma_exporter_fabric"}
	s.scrapeTarget = scrapeTarget{up: i.sample("up", nil, nil), samples: bind(i, sweepSeries, s)}
	for _, n := range s.nodes {
		s.samples = append(s.samples, bind(i, nodeSeries, n)...)
	}
	for _, l := range s.links {
		s.samples = append(s.samples, bind(i, linkSeries, l)...)
	}
	for _, m := range s.managers {
		s.samples = append(s.samples, bind(i, managerSeries, m)...)
	}
}

var sweepSeries = []series[*sweeper]{
	{"rdma_fabric_sweep_timestamp_seconds", with[*sweeper](), func(s *sweeper, _ time.Duration) float64 { return float64(began.Add(s.swept).Unix()) }},
	{"rdma_fabric_sweep_interval_seconds", with[*sweeper](), func(*sweeper, time.Duration) float64 { return sweepInterval.Seconds() }},
	{"rdma_fabric_sweep_failed", with[*sweeper](), func(*sweeper, time.Duration) float64 { return 0 }},
	{"rdma_fabric_unanswered", with[*sweeper]("request", "node"), func(*sweeper, time.Duration) float64 { return 0 }},
	{"rdma_fabric_subnet_managers", with[*sweeper]("state", "master"), func(s *sweeper, _ time.Duration) float64 { return s.subnetManagers(master) }},
	{"rdma_fabric_subnet_managers", with[*sweeper]("state", "standby"), func(s *sweeper, _ time.Duration) float64 { return s.subnetManagers(standby) }},
}

var nodeSeries = []series[*node]{
	{"rdma_fabric_node_info", func(n *node) []string { return []string{"node_guid", n.guid, "node", n.name, "node_type", n.kind} }, func(*node, time.Duration) float64 { return 1 }},
	{"rdma_fabric_node_reachable", func(n *node) []string { return []string{"node_guid", n.guid} }, func(n *node, _ time.Duration) float64 { return where(n.reachable) }},
}

func ofLink(l *link) []string { return []string{"node_guid", l.at.guid, "port", strconv.Itoa(l.port)} }

func ofEnds(l *link) []string {
	return append(ofLink(l), "node", l.at.name, "neighbour_guid", l.to.guid, "neighbour_port", strconv.Itoa(l.toPort),
		"neighbour", l.to.name, "end", l.end)
}

var linkSeries = []series[*link]{
	{"rdma_fabric_link_info", ofEnds, func(*link, time.Duration) float64 { return 1 }},
	{"rdma_fabric_link_missing", func(l *link) []string {
		if l.to.kind == "switch" {
			return ofEnds(l)
		}
		host, _, _ := strings.Cut(l.to.name, " ")
		return append(ofEnds(l), "system", host)
	}, func(l *link, _ time.Duration) float64 { return only(l.missing, 1) }},
	{"rdma_fabric_port_state_id", ofLink, func(l *link, _ time.Duration) float64 { return l.state }},
	{"rdma_fabric_port_link_downed_total", ofLink, func(l *link, _ time.Duration) float64 { return l.count }},
}

func ofManager(m *manager) []string { return []string{"node_guid", m.node.guid} }

var managerSeries = []series[*manager]{
	{"rdma_fabric_subnet_manager_state_id", ofManager, func(m *manager, _ time.Duration) float64 { return only(m.seen != gone, m.seen) }},
	{"rdma_fabric_subnet_manager_activity_total", ofManager, func(m *manager, _ time.Duration) float64 { return only(m.seen != gone, m.packets) }},
}
