package infiniband

import (
	"slices"
	"time"

	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/snapshot"
)

// lastDevice is a device at its last read.
type lastDevice struct {
	at     time.Time
	device snapshot.Device
}

// withLast stores the devices read, and adds the last state of devices that were not read in time.
func (c *infiniBand) withLast(
	reads []snapshot.DeviceRead, devices []snapshot.Device, now time.Time,
) ([]snapshot.Device, []snapshot.DataAge) {
	ages := make([]snapshot.DataAge, 0, len(reads))
	for i := range devices {
		d := &devices[i]
		if age, ok := ageOf(d); ok {
			ages = append(ages, snapshot.DataAge{Device: d.Name, Age: age})
			last := counters.Entry(c.last, d.Name)
			last.at, last.device = now.Add(-age), *d
		}
	}
	for _, read := range reads {
		last := c.last[read.Device]
		if last == nil || !read.Stuck && !read.Late {
			continue
		}
		age := now.Sub(last.at)
		ages = append(ages, snapshot.DataAge{Device: read.Device, Age: age})
		if age <= shared.LastStateTime {
			devices = append(devices, withoutCounters(&last.device))
		}
	}
	return devices, ages
}

// ageOf returns the age of the oldest port state, if all have been read.
func ageOf(d *snapshot.Device) (age time.Duration, ok bool) {
	for i := range d.Ports {
		p := &d.Ports[i]
		if p.Unread && p.Age == 0 {
			return 0, false
		}
		age = max(age, p.Age)
	}
	return age, true
}

// withoutCounters returns a copy without values that must not be served old.
func withoutCounters(d *snapshot.Device) snapshot.Device {
	out := *d
	out.Ports = slices.Clone(d.Ports)
	for i := range out.Ports {
		p := &out.Ports[i]
		p.Counters, p.FEC, p.Transitions = nil, nil, nil
		p.Netdev = slices.Clone(p.Netdev)
		for j := range p.Netdev {
			nd := &p.Netdev[j]
			nd.CarrierUps, nd.CarrierDowns, nd.Transitions, nd.DownEvents = nil, nil, nil, nil
		}
	}
	return out
}
