package incidents

import (
	"math"
	"math/rand/v2"
	"time"
)

const day = 24 * time.Hour

// training is the load of a job of all-reduces: a checkpoint of 2m each half hour, an evaluation of 10m each 4h.
func training(number int, now time.Duration) float64 {
	now += time.Duration(number) * 7 * time.Minute
	switch positive := now + 365*day; {
	case positive%(30*time.Minute) < 2*time.Minute:
		return 0.02
	case positive%(4*time.Hour) < 10*time.Minute:
		return 0.3
	}
	return 0.9 + 0.1*math.Sin(now.Minutes())
}

// noise is what happens in a healthy cluster: each host reboots once a week, announced, for firmware, and its links
// flap while they train; exporters are upgraded; jobs are killed and rest; cables are touched; a setting is rolled out.
func noise(f *fleet, source *rand.Rand, lasts time.Duration) (events []event) {
	c := f.clusters[0]
	anytime := func() time.Duration { return time.Duration(source.Int64N(int64(lasts * 9 / 10))).Truncate(tick) }
	add := func(at time.Duration, do func(*fleet)) {
		if at < lasts {
			events = append(events, event{at, do})
		}
	}
	apart := lasts / time.Duration(2*len(c.hosts)) // the rollout takes half of the time
	for i, n := range source.Perm(len(c.hosts)) {
		if lasts < day && i%32 > 0 {
			continue
		}
		h, at := c.hosts[n], time.Duration(i)*apart.Truncate(tick)
		add(at, func(f *fleet) {
			h.announced = f.now + 40*time.Minute
			announce(n)(f)
		})
		add(at+2*time.Minute, powerOff(n))
		add(at+10*time.Minute, func(f *fleet) {
			h.boot(f.now)
			upgraded("28.45.1200")(h)
		})
		rail := source.IntN(len(h.ports))
		add(at+12*time.Minute, unplug(n, rail))
		add(at+12*time.Minute+20*time.Second, plug(n, rail))
		add(at+40*time.Minute, endMaintenance(n))
		// Without a reboot, host after host in half of the time.
		add(lasts/2+time.Duration(i)*apart.Truncate(tick), func(*fleet) { h.setting("max_read_request", "2048", 0) })
	}
	restart := anytime()
	for n := range c.hosts {
		at := restart + time.Duration(n)*min(30*time.Second, lasts/720)
		add(at, stop(n))
		add(at+40*time.Second, run(n))
	}
	for range int(lasts / (40 * time.Hour)) { // a cable is touched
		n := source.IntN(len(c.hosts))
		rail, at := source.IntN(len(c.hosts[n].ports)), anytime()
		add(at, unplug(n, rail))
		add(at+20*time.Second, plug(n, rail))
	}
	for _, j := range c.jobs {
		for d := time.Duration(0); d < lasts; d += day {
			add(d+anytime()%day, func(f *fleet) { j.fail(f.now) })
			rest := d + 2*time.Hour + time.Duration(5*j.number%20)*time.Hour
			add(rest, func(f *fleet) { j.running, j.rests, j.ended = false, true, f.now })
			add(rest+3*time.Hour, func(*fleet) { j.rests = false })
		}
	}
	return events
}
