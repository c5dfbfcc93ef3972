package incidents

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// class is a kind of fault, and the alerts that are right for it. Patterns are of alert.String; HOST, PORT, DEVICE,
// LEAF, SPINE, RACK, RAIL and PART are those of the fault.
type class struct {
	name  string
	fits  func(spec) bool // nil: every fleet
	hosts func(spec) int  // that it takes; nil: one
	ports int             // that its host has at least
	whole bool            // hosts of one rack, the first one included
	leaf  bool            // hosts of one leaf, any of them
	alone bool            // no other fault at the same time
	lasts time.Duration
	// remembered is for how long rules know that it was there: a link that fails again is told at once. 0: linger.
	remembered time.Duration
	begin      func(*fault)
	end        func(*fault) // nil: heal
	more       func(*fault) []event
	want       string   // the alert that has to come
	also       []string // effects that may come
}

// fault is a fault of a class at a place of a cluster.
type fault struct {
	*class
	fleet      *fleet
	hosts      []int
	rail       int
	start, end time.Duration
	want       *regexp.Regexp
	also       []*regexp.Regexp
}

// effects may come with any fault: jobs lose their peers, and what is below a warning has no notification.
var effects = []string{
	"info .* HOST.*", "info (RDMARetriesExceeded|RDMALinkFlapping)/once .*", "warning RDMAJobSlow/degraded job .*",
	"info RDMAJobStalled/fault .*",
}

func manyPorts(s spec) bool  { return roCE(s) && s.ports[0] > 1 && s.hosts >= 2*rackSize }
func lossless(s spec) bool   { return s.pfc }
func roCE(s spec) bool       { return s.layer == ethernet }
func watched(s spec) bool    { return s.fabric }
func withGPUs(s spec) bool   { return s.gpus }
func comparable(s spec) bool { return s.hosts >= 16 && len(s.speeds) == 0 }

func sixHosts(spec) int    { return 6 }
func tenHosts(s spec) int  { return min(10, s.perLeaf()) }
func allHosts(s spec) int  { return s.hosts }
func rackHosts(s spec) int { return min(rackSize, s.hosts) }

// perLeaf returns how many hosts have a port at one leaf.
func (s spec) perLeaf() int {
	if s.racked {
		return rackSize
	}
	return s.hosts
}

func (x *fault) host() *fleetHost { return x.fleet.host(x.hosts[0]) }
func (x *fault) port() *port      { return x.host().ports[x.rail] }

// railOf returns the rail of the fault on its nth host: a part is on any, a switch is of one.
func (x *fault) railOf(n int) int {
	if x.whole || x.leaf {
		return x.rail
	}
	return (x.rail + n) % len(x.fleet.host(x.hosts[n]).ports)
}

// onPort changes the port of the fault, onHosts its hosts, onPorts one port of each.
func onPort(do func(*port)) func(*fault) { return func(x *fault) { do(x.port()) } }

func onHosts(do func(*fleetHost)) func(*fault) {
	return func(x *fault) {
		for _, n := range x.hosts {
			do(x.fleet.host(n))
		}
	}
}

// oneAfterTheOther changes a port of each host, 4m apart.
func oneAfterTheOther(do func(*port)) func(*fault) []event {
	return func(x *fault) (events []event) {
		for i, n := range x.hosts {
			events = append(events, event{
				time.Duration(4*i) * time.Minute, func(f *fleet) { do(f.host(n).ports[x.railOf(i)]) },
			})
		}
		return events
	}
}

// heal mends all that a fault of a class may have changed.
func heal(x *fault) {
	for _, n := range x.hosts {
		h := x.fleet.host(n)
		h.heal()
		if h.down {
			h.boot(x.fleet.now)
		}
		if h.unloaded {
			h.load(x.fleet.now)
		}
		h.closed = false
		for _, p := range h.ports {
			*p = port{
				host: p.host, rail: p.rail, leaf: p.leaf, guid: p.guid, counts: p.counts, rate: h.cluster.rateOf(h), up: p.up,
				changed: p.changed, managed: p.managed, couldBe: p.couldBe, ready: p.ready, crashes: p.crashes,
			}
		}
		for _, g := range h.gpus {
			g.lost = false
		}
	}
	c := x.fleet.clusters[0]
	for _, s := range append(c.leaves, c.spines...) {
		s.off = false
	}
}

const partNumber = "LOT-7"

// faulty cables: an error in each 200 ms, some of which FEC does not correct.
func bad(p *port) { p.errors, p.corrupt = 5, 0.05 }

var classes = []*class{
	{
		name: "port down", lasts: 20 * time.Minute,
		begin: onPort(func(p *port) { p.unplugged = true }),
		want:  "critical RDMAPortDown/port HOST PORT .*", also: []string{"warning RDMAFabricLinkDegraded/gone .*"},
	},
	{
		name: "slow link", lasts: 20 * time.Minute,
		begin: onPort(func(p *port) { p.slowed = 0.5 }),
		want:  "(critical|warning) RDMALinkDegraded/rate HOST PORT .*",
	},
	{
		name: "flapping link", lasts: 30 * time.Minute,
		more: func(x *fault) (events []event) {
			for n := range 4 {
				at := time.Duration(n) * 6 * time.Minute
				events = append(events,
					event{at, func(*fleet) { x.port().unplugged = true }},
					event{at + 20*time.Second, func(*fleet) { x.port().unplugged = false }})
			}
			return events
		},
		want: "warning RDMALinkFlapping/hour HOST PORT .*", remembered: day,
		also: []string{"warning RDMAFabricLinkDegraded/flapping .*", "warning RDMARetriesExceeded/lasting .*"},
	},
	{
		name: "errors by a cable", lasts: 40 * time.Minute, begin: onPort(bad), remembered: day,
		want: "warning RDMALinkErrors/(symbols|symbols_again|errors) HOST PORT .*",
	},
	{
		name: "module part number", lasts: time.Hour, fits: manyPorts, hosts: sixHosts, ports: 2, alone: true,
		begin: func(x *fault) {
			lot := func(string) string { return partNumber }
			for i, n := range x.hosts {
				h := x.fleet.host(n)
				device := h.ports[x.railOf(i)].device()
				h.relabel("part_number", lot, "rdma_transceiver_info", "device", device)
				h.relabel("part", lot, "rdma_place_info", "device", device)
				h.relabel("lot", lot, "rdma_place_info", "device", device)
			}
		},
		more: oneAfterTheOther(bad), remembered: day,
		want: "warning RDMALinkErrors/.* .*module.*PART.*", also: []string{"warning RDMALinkErrors/.* HOST.*"},
	},
	{
		name: "leaf with errors on ten hosts", lasts: time.Hour, hosts: tenHosts, leaf: true, alone: true,
		more: oneAfterTheOther(bad), remembered: day,
		want: "warning RDMALinkErrors/.* switch LEAF .*", also: []string{"warning RDMALinkErrors/.* HOST PORT .*"},
	},
	{
		name: "leaf dead", lasts: 20 * time.Minute, alone: true, whole: true, hosts: tenHosts,
		fits: func(s spec) bool { return !s.blind }, begin: func(x *fault) { x.port().leaf.off = true },
		want: "critical RDMAPortDown/port switch LEAF .*", also: []string{"warning RDMARetriesExceeded/peers .*"},
	},
	{
		name: "spine dead", lasts: 20 * time.Minute, alone: true, fits: watched,
		begin: func(x *fault) { x.fleet.clusters[0].spines[1].off = true },
		want:  "critical RDMAFabricSwitchUnreachable/.* SPINE.*",
	},
	{
		name: "rail", lasts: 20 * time.Minute, alone: true, hosts: allHosts, fits: func(s spec) bool { return s.blind },
		begin: func(x *fault) { x.port().leaf.off = true },
		want:  "critical RDMAPortDown/port rail RAIL .*", also: []string{"warning RDMARetriesExceeded/peers .*"},
	},
	{
		name: "rack power", lasts: 25 * time.Minute, alone: true, whole: true, hosts: rackHosts,
		begin: onHosts(func(h *fleetHost) { h.down = true }),
		want:  "critical RDMAExporterDown/down rack RACK .*", also: []string{"warning RDMARetriesExceeded/peers .*"},
	},
	{
		name: "host off", lasts: 20 * time.Minute, begin: onHosts(func(h *fleetHost) { h.down = true }),
		want: "warning RDMAExporterDown/down HOST.*",
	},
	{
		name: "exporter down", lasts: 20 * time.Minute, begin: onHosts(func(h *fleetHost) { h.closed = true }),
		want: "warning RDMAExporterDown/down HOST.*",
	},
	{
		name: "PFC storm", lasts: 15 * time.Minute, fits: lossless, alone: true, hosts: allHosts,
		begin: func(x *fault) {
			for i, n := range x.hosts[:min(40, len(x.hosts))] {
				p := x.fleet.host(n).ports[x.rail]
				if i == 0 {
					p.pausing = 0.97
				} else {
					p.paused = 0.95
				}
			}
		},
		want: "critical RDMAPFCStormSource/storm FIRST PORT .*",
	},
	{
		name: "slow receiver", lasts: 20 * time.Minute, fits: lossless, begin: onPort(func(p *port) { p.pausing = 0.3 }),
		want: "warning RDMASlowReceiver/.* HOST PORT .*",
	},
	{
		name: "host without PFC", lasts: 90 * time.Minute, fits: lossless, begin: onHosts(withoutPFC),
		want: "warning RDMAFleetDrift/lossless HOST.*",
	},
	{
		name: "PFC lost by all in one push", lasts: 45 * time.Minute, fits: lossless, alone: true, hosts: allHosts,
		begin: onHosts(withoutPFC), want: "warning RDMAFleetDrift/changed .*",
		also: []string{"info RDMAFleetDrift/changed .*"}, // it is undone in one push
	},
	{
		name: "MTU of a host", lasts: 90 * time.Minute, fits: roCE, begin: onHosts(smallMTU),
		want: "(warning|info) RDMAFleetDrift/.* HOST.*",
	},
	{
		name: "MTU of a port", lasts: 30 * time.Minute, fits: roCE, ports: 3,
		begin: func(x *fault) {
			x.host().set(1500, "rdma_port_mtu_bytes", "device", x.port().device())
			x.host().set(1024, "rdma_port_active_mtu_bytes", "device", x.port().device())
			x.host().setting(".*mtu", "1024", 1)
		},
		want: "warning RDMAPortMisconfigured/mtu.* HOST PORT .*", also: []string{"(info|warning) RDMAFleetDrift/.* HOST.*"},
	},
	{
		name: "firmware of a host", lasts: 90 * time.Minute, begin: onHosts(upgraded("28.39.1002")),
		want: "info RDMAFleetDrift/.* HOST.*",
	},
	{
		name: "settings of NCCL", lasts: 90 * time.Minute,
		begin: onHosts(func(h *fleetHost) { h.setting("nccl_.*", "NCCL_IB_QPS_PER_CONNECTION=4", 0) }),
		want:  "info RDMAFleetDrift/.* HOST.*",
	},
	{
		name: "GPUDirect lost", lasts: 40 * time.Minute, fits: withGPUs, begin: onHosts(withoutGPUDirect),
		want: "warning RDMAGPUDirectUnavailable/no_mechanism HOST.*",
		also: []string{"warning RDMAFleetDrift/gpu_direct HOST.*"},
	},
	{
		name: "hot module", lasts: 25 * time.Minute, fits: roCE,
		begin: func(x *fault) {
			x.host().set(81, "rdma_transceiver_temperature_celsius", "device", x.port().device())
		},
		want: "warning RDMATransceiverHot/alarm HOST PORT .*",
	},
	{
		name: "dark lane", lasts: 25 * time.Minute, fits: roCE,
		begin: func(x *fault) {
			x.host().set(-40, "rdma_transceiver_receive_power_dbm", "device", x.port().device(), "lane", "2")
		},
		want: "warning RDMATransceiverOutOfRange/lane_dark HOST PORT .*",
	},
	{
		// Its alert waits for a day: on a small fleet.
		name: "module ageing", lasts: 27 * time.Hour, fits: func(s spec) bool { return s.hosts <= 8 },
		begin: func(x *fault) {
			x.host().change(func(was float64, _ time.Duration) float64 { return was - 2.5 },
				"rdma_transceiver_receive_power_dbm", "device", x.port().device())
		},
		want: "info RDMALinkWearing/optics HOST PORT .*",
	},
	{
		name: "bit error rate rising", lasts: 100 * time.Minute, begin: onPort(func(p *port) { p.noise = 5e-7 }),
		want: "(warning|info) (RDMALinkWearing|RDMALinkErrors)/ber HOST PORT .*",
	},
	{
		name: "device missing", lasts: 20 * time.Minute, begin: onPort(func(p *port) { p.missing = true }),
		want: "critical RDMADeviceMissing/gone HOST DEVICE .*",
	},
	{
		name: "firmware crash", lasts: 20 * time.Minute,
		begin: onPort(func(p *port) { p.crashed, p.stuck, p.crashes = true, true, p.crashes+1 }),
		want:  "critical RDMADeviceFailed/firmware HOST DEVICE .*",
	},
	{
		// 25m: a driver container may build it.
		name: "driver removed", lasts: 45 * time.Minute,
		begin: func(x *fault) {
			x.host().unloaded = true
			x.host().grow(x.start, 1, "rdma_stack_settled_seconds")
		},
		want: "critical RDMADeviceMissing/stack HOST.*",
	},
	{
		name: "GPU lost", lasts: 20 * time.Minute, fits: withGPUs,
		begin: onHosts(func(h *fleetHost) { h.gpus[0].lost = true }),
		want:  "critical RDMADeviceMissing/gone HOST.*",
	},
	{
		name: "GPU needs a reset", lasts: 20 * time.Minute, fits: withGPUs,
		begin: onHosts(func(h *fleetHost) { h.set(1, "rdma_gpu_recovery_action_id", "gpu", "0") }),
		want:  "warning RDMAGPUXid/.* HOST.*",
	},
	{
		name: "PCIe width", lasts: 30 * time.Minute,
		begin: func(x *fault) { x.host().set(8, "rdma_pcie_link_width_lanes", "pci_address", x.port().pciAddress()) },
		want:  "critical RDMAPCIeDegraded/link HOST DEVICE .*",
	},
	{
		name: "all links of a host slow", lasts: 30 * time.Minute, fits: comparable,
		begin: onHosts(func(h *fleetHost) {
			for _, p := range h.ports {
				p.rate /= 2
			}
		}),
		want: "warning RDMALinkDegraded/fleet HOST.*", also: []string{"warning RDMAJobSlow/straggler HOST.*"},
	},
	{
		name: "host slow in a job", lasts: 40 * time.Minute, begin: onPort(func(p *port) { p.starved = 0.6 }),
		want: "warning (RDMAPortOutlier|RDMAJobSlow)/.* HOST PORT .*",
	},
	{
		name: "congestion notifications of a port", lasts: 45 * time.Minute, fits: roCE,
		begin: onPort(func(p *port) { p.notified = 30000 }),
		want:  "(warning|info) RDMAPortOutlier/.* HOST PORT .*",
	},
	{
		name: "retransmissions of a port", lasts: 40 * time.Minute, fits: roCE,
		begin: onPort(func(p *port) { p.lossy = 0.001 }),
		want:  "warning RDMARetransmissions/.* HOST PORT .*",
		also:  []string{"(info|warning) RDMAPortOutlier/.* HOST PORT .*"},
	},
	{
		name: "few retransmissions of a port", lasts: 45 * time.Minute, fits: roCE,
		begin: onPort(func(p *port) { p.lossy = 5e-5 }),
		want:  "(warning|info) RDMAPortOutlier/.* HOST PORT .*",
	},
	{
		name: "subnet manager gone", lasts: 20 * time.Minute, fits: watched, alone: true,
		begin: func(x *fault) { managers(gone, gone)(x.fleet) },
		end:   func(x *fault) { managers(master, standby)(x.fleet) },
		want:  "critical RDMANoSubnetManager/fabric .*",
	},
}

// String is an alert as patterns of classes have it: severity, name, reason, where, and its other labels.
func (a alert) String() string {
	l := a.labels
	return fmt.Sprintf("%s %s/%s %s; %s ",
		l.Get("severity"), l.Get("alertname"), l.Get("reason"), l.Get("where"), objectOf(l))
}

// patterns compiles the patterns of the class for a place.
func (x *fault) patterns() {
	c := x.fleet.clusters[0]
	var names []string
	for _, n := range x.hosts {
		names = append(names, strings.Split(c.hosts[n].name, ":")[0])
	}
	p := x.port()
	words := strings.NewReplacer(
		"HOST PORT", "("+strings.Join(names, "|")+") "+p.device()+"/1;",
		"FIRST PORT", names[0]+" "+p.device()+"/1;",
		"HOST DEVICE", "("+strings.Join(names, "|")+") "+p.device()+";",
		"HOST", `(.*\b)?(`+strings.Join(names, "|")+`)\b`,
		"LEAF", p.leaf.name+";", "SPINE", "node_guid="+c.spines[len(c.spines)-1].guid, "RACK", x.host().rack()+";",
		"RAIL", fmt.Sprintf("%d;", p.rail), "PART", partNumber,
	)
	compile := func(pattern string) *regexp.Regexp { return regexp.MustCompile("^" + words.Replace(pattern) + "$") }
	x.want = compile(x.class.want)
	for _, pattern := range append(effects, x.class.also...) {
		x.also = append(x.also, compile(pattern))
	}
}
