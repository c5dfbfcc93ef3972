// Package health reads the devlink health reporters of devices.
package health

import (
	"context"
	"maps"
	"path"
	"slices"
	"time"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

var (
	healthState = metric.Of(
		metric.PhysicalFunctions,
		metric.Asks(source.DevlinkHealth, metric.Device(
			"rdma_device_health_state",
			"Whether a devlink health reporter of the device's driver is in a state. state: error, from a report until the driver has recovered. A reporter without recovery (fw of mlx5) stays in error until the driver is reloaded.",
			"devlink HEALTH_REPORTER_GET, state",
			"reporter",
			"state",
		)),
	)
	healthErrors = metric.Of(
		metric.PhysicalFunctions,
		metric.Asks(source.DevlinkHealth, metric.Device(
			"rdma_device_health_errors_total",
			"Errors reported to a devlink health reporter since the driver was loaded. An error of fw or fw_fatal is a fault of the firmware or of the hardware.",
			"devlink HEALTH_REPORTER_GET, error count",
			"reporter",
		)),
	)
	healthRecoveries = metric.Beside(
		"rdma_device_health_errors_total",
		metric.Device(
			"rdma_device_health_recoveries_total",
			"Successful recoveries of a devlink health reporter. Fewer recoveries than errors: some errors were not recovered, or need no recovery. Absent while there are no errors.",
			"devlink HEALTH_REPORTER_GET, recover count",
			"reporter",
		),
	)
)

// healthError is the last state of a health reporter, enum devlink_health_reporter_state.
const healthError = 1 // 0 is healthy

// health keeps the devlink device of each RDMA device.
type health struct {
	devices map[string]devlinkDevice // belongs to the lane devlink
	last    reading.Kept[*hostdata.Health]
}

// devlinkDevice is the devlink device of an RDMA device.
type devlinkDevice struct {
	of        *reading.Device
	bus, name string
}

// New returns the collector.
func New(with *shared.State) *shared.Collector {
	c := &health{devices: map[string]devlinkDevice{}}
	return &shared.Collector{
		Name:  "health",
		Help:  "firmware and driver health from devlink health reporters",
		Descs: []*metric.Desc{healthState, healthErrors, healthRecoveries},
		Read:  with.Devices.Read(c.read),
		Emit:  metric.EmitSection(func(n *snapshot.Node) *hostdata.Health { return n.Health }, emitHealth),
	}
}

// read requests all reporters in one dump. The kernel takes the lock of each devlink device, which a driver holds while
// it recovers or reloads: one at a time: no second request while one waits, and keeps it from blocking others.
func (c *health) read(ctx context.Context, h *host.Host, n *snapshot.Node, roster *reading.Roster, done func(error)) {
	if len(roster.Names) == 0 {
		n.Health = &hostdata.Health{}
		done(nil)
		return
	}
	var section *hostdata.Health
	issues, err := reading.OfHost(ctx, h, "devlink", source.DevlinkHealth,
		func(r reading.Reads) { section = c.readDevlink(r, roster) })
	n.Devices = append(n.Devices, reading.Ended("", err))
	if err != nil {
		n.Health = c.lastStates(h.Now(), roster.Names)
		n.Issues = append(n.Issues, snapshot.Issue{Reason: string(access.ReasonOf(err)), Err: err})
		done(err)
		return
	}
	c.last.Keep(section, h.Now())
	n.Health, n.Issues = section, append(n.Issues, issues...)
	done(nil)
}

// lastStates returns the last states of the reporters of present devices while a request is stuck: a device in error
// recovers while holding the lock that the request waits for. Old counts are not served.
func (c *health) lastStates(now time.Time, names []string) *hostdata.Health {
	if !c.last.Within(now, shared.LastStateTime) {
		return nil
	}
	out := &hostdata.Health{}
	for _, reporter := range c.last.Value.Reporters {
		if slices.Contains(names, reporter.Device) {
			reporter.Errors, reporter.Recoveries = nil, nil
			out.Reporters = append(out.Reporters, reporter)
		}
	}
	return out
}

func (c *health) readDevlink(r reading.Reads, roster *reading.Roster) *hostdata.Health {
	out := &hostdata.Health{}
	r.Ask(1)
	reporters, err := r.Host.Devlink.Health(r.Ctx)
	r.IssueUnless(err, access.Absent, access.Unsupported) // kernels before 5.1
	c.findDevlinks(r.Reader, roster)
	for _, name := range roster.Names {
		on := c.devices[name]
		if on.of.ManagesNVLink {
			continue
		}
		for _, h := range reporters {
			// Reporters of ports (tx, rx) cover the queues of a netdev, which RDMA does not use.
			if h.Port == nil && h.Bus == on.bus && h.Device == on.name {
				out.Reporters = append(out.Reporters, hostdata.HealthReporter{
					Device: name, Name: h.Name, State: h.State, Errors: h.Errors, Recoveries: h.Recoveries,
				})
			}
		}
	}
	return out
}

// findDevlinks finds the devlink device of each RDMA device.
func (c *health) findDevlinks(r *reading.Reader, roster *reading.Roster) {
	maps.DeleteFunc(c.devices, func(name string, _ devlinkDevice) bool { return !slices.Contains(roster.Names, name) })
	for _, name := range roster.Names {
		if d := roster.Device(r, name); c.devices[name].of != d {
			bus, device := devlinkOf(r.Host.Files, d)
			c.devices[name] = devlinkDevice{d, bus, device}
		}
	}
}

// devlinkOf returns the devlink device of an RDMA device: its own PCI function, virtual ones included, or the auxiliary
// device of a sub-function, whose reporters are not those of its parent. Software devices have none.
func devlinkOf(files host.Files, d *reading.Device) (bus, name string) {
	if d.FunctionType == snapshot.SubFunction {
		real, err := files.Resolve(sysfs.ClassDir + "/" + d.Name + "/device")
		if err != nil {
			return "", ""
		}
		return "auxiliary", path.Base(real)
	}
	if d.Path == "" {
		return "", ""
	}
	return "pci", d.PCIAddress
}

func emitHealth(section *hostdata.Health, s metric.Sink) {
	for _, h := range section.Reporters {
		if h.State != nil && *h.State <= healthError {
			s.Emit(healthState, float64(*h.State), h.Device, h.Name, "error")
		}
		metric.EmitNumber(s, healthErrors, h.Errors, h.Device, h.Name)
		if h.Errors == nil || *h.Errors > 0 {
			metric.EmitNumber(s, healthRecoveries, h.Recoveries, h.Device, h.Name)
		}
	}
}
