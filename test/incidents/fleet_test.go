package incidents

import (
	"fmt"
	"slices"
	"time"
)

// Link layers, as rdma_port_info has them.
const (
	infiniBand = "InfiniBand"
	ethernet   = "Ethernet"
)

const (
	tick = 10 * time.Second // of the model
	// trainingTime is what a link needs to come up, loadTime what it needs after its driver has been loaded. An InfiniBand
	// port is in INIT until the subnet manager has configured it.
	trainingTime = 20 * time.Second
	loadTime     = time.Minute
	initTime     = 10 * time.Second
	// retryTime is less than a tick above 7.2 s, which 7 retries of NCCL_IB_TIMEOUT=18 take.
	retryTime = 10 * time.Second
	// restartTime is how long a scheduler takes to restart a failed job from its checkpoint.
	restartTime = 5 * time.Minute

	rate       = 50e9 // 400 Gb/s in bytes per second
	loadFactor = 0.6  // of the rate that a job transmits and receives
	packetSize = 4096
	rackSize   = 8 // hosts
	spines     = 2

	goodBER = 1e-10 // before FEC
	// normalNotifications is how many congestion notifications (CNP) a port handles a second under load.
	normalNotifications = 200
)

// spec describes the part of a fleet that is one cluster.
type spec struct {
	cluster string // empty: no label
	hosts   int
	ports   []int // of each host of a rack, an adapter each; the last one is that of further racks too
	layer   string
	racked  bool // a leaf for each rack instead of one for each rail
	pfc     bool // RoCE is lossless
	gpus    bool // one for each port
	fabric  bool // an exporter in fabric mode watches the InfiniBand subnet
	dual    bool // an adapter has two functions, each with a port
	optics  bool // each port has a transceiver
	// blind: no port knows its leaf (no LLDP). unplaced: an exporter without rdma_place_info.
	blind, unplaced bool

	// machines are recorded machines, one for each part of the hosts: those have all their series. Empty: what the
	// tables of series have.
	machines []string
	// speeds are the parts of the rate at which the links of each part of the hosts run. Empty: all at full rate.
	speeds []float64
	// jobs is how many jobs share the hosts, idle how many of the last hosts of each it does not use. 0: one job.
	jobs, idle int
	// course is the load of a job at a time, in parts of loadFactor. Nil: constant.
	course func(job int, now time.Duration) float64
}

type fleet struct {
	now       time.Duration // since the incident; negative before it
	clusters  []*cluster
	unwatched bool // the Prometheus does not run
}

// cluster is one cluster with the jobs that its hosts run.
type cluster struct {
	spec
	hosts   []*fleetHost
	leaves  []*netSwitch
	spines  []*netSwitch
	sweeper *sweeper
	jobs    []*job
	// subnetManager is the LID of the master, which configures the ports.
	subnetManager float64
	unmanaged     bool // there is no master
}

// netSwitch is a leaf or a spine.
type netSwitch struct {
	name, guid string
	off        bool
}

type fleetHost struct {
	cluster     *cluster
	name        string
	index       int
	ports       []*port
	gpus        []*fleetGPU
	boots       int
	booted      time.Duration
	loaded      time.Duration // when its driver was loaded
	unloaded    bool          // the driver
	maintenance bool
	drained     bool          // no job is started on it
	announced   time.Duration // end of its maintenance
	job         int           // number
	recording   *recording
	scrapeTarget
}

type fleetGPU struct {
	host    *fleetHost // of a recording
	index   int
	uuid    string
	lost    bool // does not answer on PCIe
	xids    float64
	lastXID float64
}

// port is the only port of a function.
type port struct {
	host   *fleetHost
	rail   int
	leaf   *netSwitch
	guid   string
	counts [counters]float64

	unplugged bool
	crashed   bool    // firmware
	stuck     bool    // commands to the firmware do not return
	missing   bool    // from PCIe
	pausing   float64 // part of the time for which it pauses its switch
	paused    float64 // part of the time for which its switch pauses it

	hot bool // its transceiver is above its alarm limit

	rate     float64 // of a good link, in bytes per second
	slowed   float64 // part of the rate that a link has lost
	starved  float64 // part of the traffic of its job that it does not carry
	lossy    float64 // packets that are retransmitted by those that are transmitted
	notified float64 // congestion notifications a second beyond those of its job
	noise    float64 // errors before FEC, by bits, beyond goodBER
	errors   float64 // symbol errors a second
	corrupt  float64 // blocks a second that FEC does not correct

	up      bool
	changed time.Duration // when up last changed
	managed bool          // the subnet manager has configured it since
	couldBe bool          // up: both ends and the cable allow it
	ready   time.Duration // when the link has been trained
	crashes float64
}

// counter is a counter of a port.
type counter int

const (
	transmitBytes counter = iota
	receiveBytes
	transmitPackets
	receivePackets
	linkDowned
	linkDownEvents
	transitionsDown
	transitionsUp
	carrierChanges
	symbolErrors
	uncorrectable // blocks
	ackTimeouts
	retriesExceeded
	pauseTransmit
	pauseReceive
	switchDowned // link_downed at the other end
	congestionNotifications
	adaptiveRetransmissions
	correctedBits // by FEC
	zero          // a counter that no incident moves
	counters
)

func newFleet(specs ...spec) *fleet {
	f := &fleet{now: -before}
	for n, s := range specs {
		f.clusters = append(f.clusters, newCluster(s, n))
	}
	return f
}

func newCluster(s spec, number int) *cluster {
	c := &cluster{spec: s, subnetManager: 1}
	leaves := slices.Max(s.ports)
	if s.racked {
		leaves = (s.hosts + rackSize - 1) / rackSize
	}
	for n := range leaves {
		c.leaves = append(c.leaves,
			&netSwitch{name: fmt.Sprintf("leaf-%d", n+1), guid: fmt.Sprintf("fc6a:1c03:%04x:1%03x", number, n)})
	}
	for n := range spines {
		c.spines = append(c.spines,
			&netSwitch{name: fmt.Sprintf("spine-%d", n+1), guid: fmt.Sprintf("fc6a:1c03:%04x:2%03x", number, n)})
	}
	for n := range s.hosts {
		h := &fleetHost{cluster: c, name: fmt.Sprintf("gpu-%02d:10879", n+1), index: n, booted: -40 * 24 * time.Hour}
		h.loaded = h.booted
		h.job = n * max(1, s.jobs) / s.hosts
		if len(s.machines) > 0 {
			h.recording = record(s.machines[n*len(s.machines)/s.hosts])
		}
		for r := range s.ports[min(n/rackSize, len(s.ports)-1)] {
			p := &port{host: h, rail: r, guid: fmt.Sprintf("b83f:d203:%04x:%02x%02x", number, n, r)}
			if s.racked {
				p.leaf = c.leaves[n/rackSize]
			} else {
				p.leaf = c.leaves[r]
			}
			p.rate = c.rateOf(h)
			p.up, p.managed, p.couldBe, p.ready, p.changed = true, true, true, h.booted, h.booted
			h.ports = append(h.ports, p)
			if s.gpus {
				h.gpus = append(h.gpus, &fleetGPU{index: r, uuid: fmt.Sprintf("GPU-%04x%04x-%04x", number, n, r)})
			}
		}
		h.bind()
		c.hosts = append(c.hosts, h)
	}
	if s.fabric {
		c.sweeper = newSweeper(c)
	}
	for n := range max(1, s.jobs) {
		j := &job{ended: -before - busy, number: n}
		j.start(c)
		c.jobs = append(c.jobs, j)
	}
	return c
}

// targets lists what is scraped of all clusters.
func (f *fleet) targets() (all []*scrapeTarget) {
	for _, c := range f.clusters {
		for _, h := range c.hosts {
			all = append(all, &h.scrapeTarget)
		}
		if c.sweeper != nil {
			all = append(all, &c.sweeper.scrapeTarget)
		}
	}
	return all
}

// host n of the first cluster.
func (f *fleet) host(n int) *fleetHost { return f.clusters[0].hosts[n] }

// step advances the model by a tick.
func (f *fleet) step() {
	f.now += tick
	for _, c := range f.clusters {
		for _, h := range c.hosts {
			for _, p := range h.ports {
				p.step(f.now)
			}
		}
		for _, j := range c.jobs {
			j.step(c, f.now)
		}
		if c.sweeper != nil {
			c.sweeper.step(f.now)
		}
	}
}

// step brings the link up or down as its two ends and the cable allow, and counts for a tick.
func (p *port) step(now time.Duration) {
	could := !p.host.down && !p.host.unloaded && !p.unplugged && !p.crashed && !p.missing && !p.leaf.off
	if could && !p.couldBe {
		p.ready = now + trainingTime
		if now <= p.host.loaded+tick {
			p.ready = now + loadTime
		}
	}
	p.couldBe = could
	switch {
	case p.up && !could:
		p.lose(now)
	case !p.up && could && now >= p.ready:
		p.up, p.changed = true, now
		p.counts[transitionsUp]++
		p.counts[symbolErrors] += 200 // until the receivers have settled
		p.counts[carrierChanges]++
	}
	p.managed = p.up && (p.managed || now >= p.changed+initTime && !p.host.cluster.unmanaged)
	seconds := tick.Seconds()
	if p.up {
		p.counts[pauseTransmit] += max(p.pausing, 0.001) * seconds
		p.counts[pauseReceive] += max(p.paused, 0.01) * seconds
		p.counts[symbolErrors] += p.errors * seconds
		p.counts[uncorrectable] += p.corrupt * seconds
		p.counts[correctedBits] += (goodBER + p.noise) * 8 * p.rate * seconds
	}
}

// lose counts a link that goes down, as the driver and the hardware at both ends do.
func (p *port) lose(now time.Duration) {
	p.up, p.changed = false, now
	p.counts[transitionsDown]++
	p.counts[carrierChanges]++
	if p.host.cluster.layer == infiniBand {
		p.counts[linkDowned]++
	} else {
		p.counts[linkDownEvents]++
		p.counts[uncorrectable] += 3
	}
	p.counts[switchDowned]++
}

// active reports whether the port is ACTIVE.
func (p *port) active() bool { return p.up && (p.host.cluster.layer == ethernet || p.managed) }

// carry counts what a job transmits at a demand and receives in a tick. Data waits while the link partner pauses the
// port.
func (p *port) carry(demand float64) {
	bytes := demand * loadFactor * p.rate * tick.Seconds()
	bytes *= (1 - max(p.paused, p.pausing)) * (1 - p.slowed) * (1 - p.starved)
	if p.pausing > 0.5 {
		bytes = 0 // the source of a storm receives < 1% of line rate
	}
	p.counts[transmitBytes] += bytes
	p.counts[receiveBytes] += bytes
	p.counts[transmitPackets] += bytes / packetSize
	p.counts[receivePackets] += bytes / packetSize
	p.counts[adaptiveRetransmissions] += bytes / packetSize * p.lossy
	p.counts[congestionNotifications] += (demand*normalNotifications + p.notified) * tick.Seconds()
}

// giveUp counts n requests whose retries ran out.
func (p *port) giveUp(n float64) {
	p.counts[retriesExceeded] += n
	p.counts[ackTimeouts] += 7 * n
}

// reset starts the counters of the port's hardware and driver again.
func (p *port) reset() {
	switchEnd := p.counts[switchDowned]
	p.counts = [counters]float64{}
	p.counts[switchDowned] = switchEnd
}

// job is a job of a cluster: collectives in a ring on each rail.
type job struct {
	hosts   []*fleetHost
	running bool
	ended   time.Duration
	number  int
	rests   bool // it is not started
}

func (j *job) start(c *cluster) {
	j.hosts, j.running = nil, true
	for _, h := range c.hosts {
		if h.job == j.number && !c.isIdle(h.index) && h.usable() {
			j.hosts = append(j.hosts, h)
		}
	}
}

// isIdle reports whether no job uses a host.
func (s spec) isIdle(host int) bool {
	size := s.hosts / max(1, s.jobs)
	return host%size >= size-s.idle
}

// rateOf returns the rate of good links of a host, in bytes per second.
func (s spec) rateOf(h *fleetHost) float64 {
	if len(s.speeds) == 0 {
		return rate
	}
	return rate * s.speeds[h.index*len(s.speeds)/s.hosts]
}

// usable reports whether a scheduler with a health check starts a job on the host.
func (h *fleetHost) usable() bool {
	ok := !h.down && !h.unloaded && !h.drained && !h.maintenance
	for _, p := range h.ports {
		ok = ok && p.up && !p.missing
	}
	for _, g := range h.gpus {
		ok = ok && !g.lost
	}
	return ok
}

func (j *job) step(c *cluster, now time.Duration) {
	if !j.running {
		if now >= j.ended+restartTime && !j.rests {
			j.start(c)
		}
		return
	}
	failed, demand := false, 1.0
	if c.course != nil {
		demand = c.course(j.number, now)
	}
	for _, h := range j.hosts {
		for _, p := range h.ports {
			if p.up && !h.down {
				p.carry(demand)
				continue
			}
			failed = failed || now >= p.changed+retryTime
		}
	}
	if failed {
		j.fail(now)
	}
}

// fail ends the job. Requests run out of retries on a port without a link, and on its two neighbours in the ring;
// processes that are killed leave some of their peers with the same.
func (j *job) fail(now time.Duration) {
	j.running, j.ended = false, now
	rings := map[int][]*port{}
	for _, h := range j.hosts {
		for _, p := range h.ports {
			rings[p.rail] = append(rings[p.rail], p)
		}
	}
	for _, ring := range rings {
		n := len(ring)
		for i, p := range ring {
			switch {
			case !p.up || !ring[(i+n-1)%n].up || !ring[(i+1)%n].up:
				p.giveUp(4)
			case i%2 == 0:
				p.giveUp(1)
			}
		}
	}
}

// boot starts a host again, with counters that begin at 0.
func (h *fleetHost) boot(now time.Duration) {
	h.down, h.booted = false, now
	h.boots++
	h.load(now)
	h.bind()
}

// load loads the driver, which resets the adapters.
func (h *fleetHost) load(now time.Duration) {
	h.unloaded, h.loaded = false, now
	for _, p := range h.ports {
		p.reset()
		p.crashed, p.stuck, p.couldBe, p.crashes = false, false, false, 0
	}
	for _, g := range h.gpus {
		g.lost, g.xids, g.lastXID = g.lost && h.booted != now, 0, 0
	}
}
