package collector

import (
	"context"
	"path"
	"slices"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

var (
	healthState = &Desc{
		Name: "rdma_device_health_state", Of: physicalFunctions, Asks: host.SourceDevlinkHealth.Name(), Type: gauge, Scope: scopeDevice,
		Help:   "Whether a devlink health reporter of the device's driver is in a state. state: error, from a report until the driver has recovered. A reporter without recovery (fw of mlx5) stays in error until the driver is reloaded.",
		Labels: []string{"device", "reporter", "state"},
		Source: "devlink HEALTH_REPORTER_GET, state",
	}
	healthErrors = &Desc{
		Name: "rdma_device_health_errors_total", Of: physicalFunctions, Asks: host.SourceDevlinkHealth.Name(), Type: counter, Scope: scopeDevice,
		Help:   "Errors reported to a devlink health reporter since the driver was loaded. An error of fw or fw_fatal is a fault of the firmware or of the hardware.",
		Labels: []string{"device", "reporter"},
		Source: "devlink HEALTH_REPORTER_GET, error count",
	}
	healthRecoveries = &Desc{
		Name: "rdma_device_health_recoveries_total", Beside: "rdma_device_health_errors_total", Type: counter, Scope: scopeDevice,
		Help:   "Successful recoveries of a devlink health reporter. Fewer recoveries than errors: some errors were not recovered, or need no recovery. Absent while there are no errors.",
		Labels: []string{"device", "reporter"},
		Source: "devlink HEALTH_REPORTER_GET, recover count",
	}
)

// healthError is the last state of a health reporter, enum devlink_health_reporter_state.
const healthError = 1 // 0 is healthy

// health keeps the devlink device of each RDMA device.
type health struct {
	Options
	devices map[string]devlinkDevice // belongs to the lane devlink
	last    *snapshot.Health
	lastAt  time.Time
}

// devlinkDevice is a devlink device, with time and registration of its RDMA device at the lookup.
type devlinkDevice struct {
	at           time.Time
	registration uint64
	bus, name    string
}

func newHealth(o Options) *Collector {
	c := &health{Options: o, devices: map[string]devlinkDevice{}}
	return &Collector{
		Name:    "health",
		Help:    "firmware and driver health from devlink health reporters",
		Default: true,
		Descs:   []*Desc{healthState, healthErrors, healthRecoveries},
		Read:    c.read,
		Emit:    emitHealth,
	}
}

// read requests all reporters in one dump. The kernel takes the lock of each devlink device, which a driver holds while it recovers or
// reloads: the lane prevents a second request while one waits, and keeps it from blocking others.
func (c *health) read(ctx context.Context, h *host.Host, n *snapshot.Node, done func(error)) {
	names, err := c.Options.devices(h, n)
	if err != nil {
		done(err)
		return
	}
	if len(names) == 0 {
		n.Health = &snapshot.Health{}
		done(nil)
		return
	}
	var section *snapshot.Health
	r := &reader{ctx: ctx, h: h, since: time.Now()}
	err = h.Lanes.Do(ctx, "devlink", func() { section = c.readDevlink(r, names) })
	n.Devices = append(n.Devices, snapshot.DeviceRead{Stuck: err != nil})
	if err != nil {
		n.Health = c.lastStates(h.Now(), names)
		n.Issues = append(n.Issues, snapshot.Issue{Reason: string(host.ReasonOf(err)), Err: err})
		done(err)
		return
	}
	c.last, c.lastAt = section, h.Now()
	n.Health, n.Issues = section, append(n.Issues, r.issues...)
	done(nil)
}

// lastStates are the last states of the reporters of present devices while a request is stuck: a device in error recovers while holding
// the lock that the request waits for. Old counts are not served.
func (c *health) lastStates(now time.Time, names []string) *snapshot.Health {
	if c.last == nil || now.Sub(c.lastAt) > lastStateTime {
		return nil
	}
	out := &snapshot.Health{}
	for _, reporter := range c.last.Reporters {
		if slices.Contains(names, reporter.Device) {
			reporter.Errors, reporter.Recoveries = nil, nil
			out.Reporters = append(out.Reporters, reporter)
		}
	}
	return out
}

func (c *health) readDevlink(r *reader, names []string) *snapshot.Health {
	defer r.end()
	out := &snapshot.Health{}
	r.begin(host.SourceDevlinkHealth)
	r.asked++
	reporters, err := r.h.Devlink.Health(r.ctx)
	if err != nil {
		if reason := host.ReasonOf(err); reason != host.Absent && reason != host.Unsupported { // kernels before 5.1
			r.issue(err)
		}
	}
	r.begin(host.SourceIdentity)
	c.lookUp(r, names)
	for _, name := range names {
		if c.nvlink.known(name) {
			continue
		}
		on := c.devices[name]
		for _, h := range reporters {
			// Reporters of ports (tx, rx) cover the queues of a netdev, which RDMA does not use.
			if h.Port == nil && h.Bus == on.bus && h.Device == on.name {
				out.Reporters = append(out.Reporters, snapshot.HealthReporter{
					Device: name, Name: h.Name, State: h.State, Errors: h.Errors, Recoveries: h.Recoveries,
				})
			}
		}
	}
	return out
}

// lookUp finds the devlink device of each RDMA device, once in slowInterval.
func (c *health) lookUp(r *reader, names []string) {
	now := r.now()
	for name := range c.devices {
		if !slices.Contains(names, name) {
			delete(c.devices, name)
		}
	}
	for _, name := range names {
		registration := r.h.Registration(name)
		if d, ok := c.devices[name]; !ok || now.Sub(d.at) >= slowInterval || d.registration != registration {
			bus, device := r.devlinkOf(name)
			c.devices[name] = devlinkDevice{now, registration, bus, device}
		}
	}
}

// devlinkOf returns the devlink device of an RDMA device: its own PCI function, virtual ones included, or the auxiliary device of a
// sub-function, whose reporters are not those of its parent. Software devices have none.
func (r *reader) devlinkOf(device string) (bus, name string) {
	dir := classDir + "/" + device
	kind, function := r.function(dir)
	if kind == snapshot.SubFunction {
		real, err := r.h.Files.Resolve(dir + "/device")
		if err != nil {
			return "", ""
		}
		return "auxiliary", path.Base(real)
	}
	if function == "" {
		return "", ""
	}
	return "pci", path.Base(function)
}

func emitHealth(n *snapshot.Node, s Sink) {
	if n.Health == nil {
		return
	}
	for _, h := range n.Health.Reporters {
		if h.State != nil && *h.State <= healthError {
			s.Emit(healthState, float64(*h.State), h.Device, h.Name, "error")
		}
		emitUint(s, healthErrors, h.Errors, h.Device, h.Name)
		if h.Errors == nil || *h.Errors > 0 {
			emitUint(s, healthRecoveries, h.Recoveries, h.Device, h.Name)
		}
	}
}
