package collector

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

var (
	deviceTemperature = &Desc{
		Name: "rdma_device_temperature_celsius", Of: physicalFunctions, Asks: host.SourceSensors.Name(), Type: gauge, Unit: "celsius", Scope: scopeDevice,
		Help:   "Temperature of a sensor of the adapter: its chip (asic), or the transceiver where the driver exposes it. Read every 30 s.",
		Labels: []string{"device", "sensor"},
		Source: "hwmon of the PCI function, tempN_input and tempN_label (mlx5 since Linux 6.7, bnxt_en, ice)",
	}
	deviceTemperatureThreshold = &Desc{
		Name: "rdma_device_temperature_threshold_celsius", Of: "rdma_device_temperature_celsius", Asks: host.SourceSensors.Name(), Type: gauge, Unit: "celsius", Scope: scopeDevice,
		Help:   "Temperature limit of the sensor. level: critical.",
		Labels: []string{"device", "sensor", "level"},
		Source: "hwmon of the PCI function, tempN_crit",
	}
)

// sensorInterval is the interval of readings: each is a firmware command, and temperature changes slowly.
const sensorInterval = 30 * time.Second

// sensors keeps the readings of each device.
type sensors struct {
	Options
	devices perDevice[sensorState]
}

// sensorState belongs to the lane of its device.
type sensorState struct {
	foundAt, at time.Time
	dir         string   // of hwmon; empty where there is none
	channels    []string // temp1, temp2, …
	last        snapshot.DeviceSensors
	quarantine  quarantine
}

func newSensors(o Options) *Collector {
	c := &sensors{Options: o}
	return &Collector{
		Name:    "sensors",
		Help:    "temperature sensors of adapters",
		Default: true,
		Descs:   []*Desc{deviceTemperature, deviceTemperatureThreshold},
		Read:    c.read,
		Emit:    emitSensors,
	}
}

func (c *sensors) read(ctx context.Context, h *host.Host, n *snapshot.Node, done func(error)) {
	names, err := c.Options.devices(h, n)
	if err != nil {
		done(err)
		return
	}
	states := c.devices.of(h, names, func() *sensorState { return &sensorState{} })
	eachDevice(ctx, h, n, "sensors", names, func(r *reader, name string) (snapshot.DeviceSensors, bool) {
		st := states[name]
		r.quarantine = &st.quarantine
		st.read(r, name)
		return st.last, len(st.last.Sensors) > 0
	}, func(devices []snapshot.DeviceSensors) {
		n.Sensors = &snapshot.Sensors{Devices: devices}
	}, done)
}

func (st *sensorState) read(r *reader, device string) {
	now := r.now()
	if st.foundAt.IsZero() || now.Sub(st.foundAt) >= slowInterval {
		st.find(r, device)
		st.foundAt = now
	}
	if st.dir == "" || !st.at.IsZero() && (now.Sub(st.at) < sensorInterval || !r.deferrable()) {
		return
	}
	st.at = now
	st.last = snapshot.DeviceSensors{Device: device}
	r.begin(host.SourceSensors)
	for _, channel := range st.channels {
		s := snapshot.Sensor{Name: cmp.Or(r.optional(st.dir+"/"+channel+"_label"), channel), Value: r.celsius(st.dir, channel+"_input")}
		if critical := r.celsius(st.dir, channel+"_crit"); critical != nil && *critical > 0 {
			s.Critical = critical
		}
		st.last.Sensors = append(st.last.Sensors, s)
	}
}

// find finds the hwmon device of a function. A virtual function has none.
func (st *sensorState) find(r *reader, device string) {
	r.begin(host.SourceIdentity)
	st.dir, st.channels = "", nil
	kind, function := r.function(classDir + "/" + device)
	if function == "" || kind != snapshot.Physical {
		return
	}
	names, err := r.h.Files.List(function + "/hwmon")
	if err != nil {
		return
	}
	for _, name := range names {
		files, err := r.h.Files.List(function + "/hwmon/" + name)
		if err != nil {
			continue
		}
		for _, f := range files {
			if channel, ok := strings.CutSuffix(f, "_input"); ok && strings.HasPrefix(channel, "temp") {
				st.dir = function + "/hwmon/" + name
				st.channels = append(st.channels, channel)
			}
		}
		if st.dir != "" {
			return
		}
	}
}

// Valid range of an adapter's sensor: mlx5 prints a negative temperature as about 8190 °C.
const (
	coldest = -40
	hottest = 150
)

// celsius reads thousandths of a degree; nil where absent or invalid.
func (r *reader) celsius(dir, name string) *float64 {
	text := r.optional(dir + "/" + name)
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		r.issue(host.ErrGarbled(dir+"/"+name, []byte(text)))
		return nil
	}
	c := float64(n) / 1000
	if c < coldest || c > hottest {
		return nil
	}
	return &c
}

func emitSensors(n *snapshot.Node, s Sink) {
	if n.Sensors == nil {
		return
	}
	for i := range n.Sensors.Devices {
		d := &n.Sensors.Devices[i]
		for _, t := range d.Sensors {
			if t.Value != nil {
				s.Emit(deviceTemperature, *t.Value, d.Device, t.Name)
			}
			if t.Critical != nil {
				s.Emit(deviceTemperatureThreshold, *t.Critical, d.Device, t.Name, "critical")
			}
		}
	}
}
