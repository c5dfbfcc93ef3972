package incidents

// rack is the hosts of the first rack.
var rack = []int{0, 1, 2, 3, 4, 5, 6, 7}

// unplug pulls the cable of a port, plug connects it again.
func unplug(host, rail int) func(*fleet) {
	return func(f *fleet) { f.host(host).ports[rail].unplugged = true }
}

func plug(host, rail int) func(*fleet) {
	return func(f *fleet) { f.host(host).ports[rail].unplugged = false }
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

// loseGPU takes a GPU off PCIe (XID 79), which ends the job.
func loseGPU(host, gpu int) func(*fleet) {
	return func(f *fleet) {
		g := f.host(host).gpus[gpu]
		g.lost, g.lastXID = true, 79
		g.xids++
		f.clusters[0].job.fail(f.now)
	}
}

func leafDown(n int) func(*fleet) { return func(f *fleet) { f.clusters[0].leaves[n].off = true } }

func leafUp(n int) func(*fleet) { return func(f *fleet) { f.clusters[0].leaves[n].off = false } }

func spineDown(n int) func(*fleet) { return func(f *fleet) { f.clusters[0].spines[n].off = true } }

// each does something to hosts.
func each(do func(*fleet, *host), hosts ...int) func(*fleet) {
	return func(f *fleet) {
		for _, n := range hosts {
			do(f, f.host(n))
		}
	}
}

func powerOff(hosts ...int) func(*fleet) {
	return each(func(_ *fleet, h *host) { h.down = true }, hosts...)
}

func boot(hosts ...int) func(*fleet) {
	return each(func(f *fleet, h *host) { h.boot(f.now) }, hosts...)
}

func unload(hosts ...int) func(*fleet) {
	return each(func(_ *fleet, h *host) { h.unloaded = true }, hosts...)
}

func load(hosts ...int) func(*fleet) {
	return each(func(f *fleet, h *host) { h.load(f.now) }, hosts...)
}

// drain takes the hosts out of the job, which the others go on with.
func drain(hosts ...int) func(*fleet) {
	return func(f *fleet) {
		each(func(_ *fleet, h *host) { h.drained = true }, hosts...)(f)
		f.clusters[0].job.start(f.clusters[0])
	}
}

// announce drains the hosts and begins their maintenance; endMaintenance ends both.
func announce(hosts ...int) func(*fleet) {
	return func(f *fleet) {
		each(func(_ *fleet, h *host) { h.maintenance = true }, hosts...)(f)
		drain(hosts...)(f)
	}
}

func endMaintenance(hosts ...int) func(*fleet) {
	return each(func(_ *fleet, h *host) { h.maintenance, h.drained = false, false }, hosts...)
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
		for n, state := range states {
			c.sweeper.managers[n].state = state
			if state == master {
				c.subnetManager = float64(n + 1)
			}
		}
	}
}
