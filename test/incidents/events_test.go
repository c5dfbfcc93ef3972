package incidents

import "time"

// rack is the hosts of the first rack.
var rack = hostsBetween(0, rackSize)

// hostsBetween returns the hosts from one number to another.
func hostsBetween(from, to int) (all []int) {
	for n := from; n < to; n++ {
		all = append(all, n)
	}
	return all
}

// oneByOne does something to host after host.
func oneByOne(n int, start, apart time.Duration, do func(host int) func(*fleet)) (events []event) {
	for i := range n {
		events = append(events, event{start + time.Duration(i)*apart, do(i)})
	}
	return events
}

// rolling restarts the exporter of host after host.
func rolling(n int, apart, takes time.Duration) (events []event) {
	for i := range n {
		at := time.Duration(i) * apart
		events = append(events, event{at, stop(i)}, event{at + takes, run(i)})
	}
	return events
}

// onPorts does something to ports of a host.
func onPorts(do func(*port), host int, rails ...int) func(*fleet) {
	return func(f *fleet) {
		for _, r := range rails {
			do(f.host(host).ports[r])
		}
	}
}

// unplug pulls the cables of ports, plug connects one again.
func unplug(host int, rails ...int) func(*fleet) {
	return onPorts(func(p *port) { p.unplugged = true }, host, rails...)
}

func plug(host int, rails ...int) func(*fleet) {
	return onPorts(func(p *port) { p.unplugged = false }, host, rails...)
}

func unplugOn(rail int) func(int) func(*fleet) {
	return func(host int) func(*fleet) { return unplug(host, rail) }
}

func plugOn(rail int) func(int) func(*fleet) {
	return func(host int) func(*fleet) { return plug(host, rail) }
}

// unplugRail pulls the cables of as many hosts.
func unplugRail(rail, n int) func(*fleet) {
	return each(func(_ *fleet, h *fleetHost) { h.ports[rail].unplugged = true }, hostsBetween(0, n)...)
}

// lose takes adapters off PCIe.
func lose(host int, rails ...int) func(*fleet) {
	return onPorts(func(p *port) { p.missing = true }, host, rails...)
}

// overheat heats the transceiver of a port above its alarm limit.
func overheat(host, rail int) func(*fleet) {
	return onPorts(func(p *port) { p.hot = true }, host, rail)
}

// crash ends the firmware of an adapter: its health reporters are in error, its link is down, and commands to it do not
// return.
func crash(host, rail int) func(*fleet) {
	return func(f *fleet) {
		p := f.host(host).ports[rail]
		p.crashed, p.stuck = true, true
		p.crashes++
	}
}

// recoverFirmware ends a crash.
func recoverFirmware(host, rail int) func(*fleet) {
	return onPorts(func(p *port) { p.crashed, p.stuck = false, false }, host, rail)
}

// loseGPU takes a GPU off PCIe (XID 79), which ends the job.
func loseGPU(host, gpu int) func(*fleet) {
	return func(f *fleet) {
		g := f.host(host).gpus[gpu]
		g.lost, g.lastXID = true, 79
		g.xids++
		f.clusters[0].jobs[0].fail(f.now)
	}
}

func leafDown(n int) func(*fleet) { return func(f *fleet) { f.clusters[0].leaves[n].off = true } }

func leafUp(n int) func(*fleet) { return func(f *fleet) { f.clusters[0].leaves[n].off = false } }

func spineDown(n int) func(*fleet) { return func(f *fleet) { f.clusters[0].spines[n].off = true } }

// each does something to hosts.
func each(do func(*fleet, *fleetHost), hosts ...int) func(*fleet) {
	return func(f *fleet) {
		for _, n := range hosts {
			do(f, f.host(n))
		}
	}
}

func powerOff(hosts ...int) func(*fleet) {
	return each(func(_ *fleet, h *fleetHost) { h.down = true }, hosts...)
}

func boot(hosts ...int) func(*fleet) {
	return each(func(f *fleet, h *fleetHost) { h.boot(f.now) }, hosts...)
}

// stop ends the exporters of hosts, run starts them.
func stop(hosts ...int) func(*fleet) {
	return each(func(_ *fleet, h *fleetHost) { h.closed = true }, hosts...)
}

func run(hosts ...int) func(*fleet) {
	return each(func(_ *fleet, h *fleetHost) { h.closed = false }, hosts...)
}

// unwatch stops the Prometheus, watch starts it.
func unwatch(f *fleet) { f.unwatched = true }

func watch(f *fleet) { f.unwatched = false }

func unload(hosts ...int) func(*fleet) {
	return each(func(_ *fleet, h *fleetHost) { h.unloaded = true }, hosts...)
}

func load(hosts ...int) func(*fleet) {
	return each(func(f *fleet, h *fleetHost) { h.load(f.now) }, hosts...)
}

// drain takes the hosts out of their job, which the others go on with.
func drain(hosts ...int) func(*fleet) {
	return func(f *fleet) {
		each(func(_ *fleet, h *fleetHost) { h.drained = true }, hosts...)(f)
		for _, j := range f.clusters[0].jobs {
			if j.running {
				j.start(f.clusters[0])
			}
		}
	}
}

// announce drains the hosts and begins their maintenance; endMaintenance ends both.
func announce(hosts ...int) func(*fleet) {
	return func(f *fleet) {
		each(func(_ *fleet, h *fleetHost) { h.maintenance = true }, hosts...)(f)
		drain(hosts...)(f)
	}
}

func endMaintenance(hosts ...int) func(*fleet) {
	return each(func(_ *fleet, h *fleetHost) { h.maintenance, h.drained = false, false }, hosts...)
}

// storm has a port pause its switch, which pauses the same rail of as many other hosts.
func storm(source, rail, victims int) func(*fleet) {
	return func(f *fleet) {
		for n, h := range f.clusters[0].hosts {
			switch {
			case n == source:
				h.ports[rail].pausing = 0.97
			case victims > 0:
				h.ports[rail].paused = 0.95
				victims--
			}
		}
	}
}

// calm ends all storms.
func calm(f *fleet) {
	for _, h := range f.clusters[0].hosts {
		for _, p := range h.ports {
			p.pausing, p.paused = 0, 0
		}
	}
}

// managers sets the states of the subnet managers. The ports keep the LID of the last master.
func managers(states ...float64) func(*fleet) {
	return func(f *fleet) {
		c := f.clusters[0]
		c.unmanaged = true
		for n, state := range states {
			if c.sweeper != nil {
				c.sweeper.managers[n].state = state
			}
			if state == master {
				c.subnetManager, c.unmanaged = float64(n+1), false
			}
		}
	}
}
