// Package sensors reads the temperatures of adapters.
package sensors

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

var (
	deviceTemperature = metric.Of(
		metric.PhysicalFunctions,
		metric.Asks(source.Sensors, metric.Device(
			"rdma_device_temperature_celsius",
			"Temperature of a sensor of the adapter, such as its chip (asic). Read every 30 s.",
			"hwmon of the PCI function, tempN_input and tempN_label (mlx5 since Linux 6.7, bnxt_en, ice)",
			"sensor",
		)),
	)
	deviceTemperatureThreshold = metric.Of("rdma_device_temperature_celsius", metric.Asks(source.Sensors,
		metric.Device("rdma_device_temperature_threshold_celsius", "Temperature limit of the sensor. level: critical.",
			"hwmon of the PCI function, tempN_crit", "sensor", "level")))
	moduleSensor = metric.Of(moduleSensorName, metric.Asks(source.Sensors, metric.Port(moduleSensorName,
		"Temperature of the transceiver by the sensor of the adapter, also on InfiniBand. Read every 30 s.",
		"hwmon of the PCI function, tempN_input with a tempN_label of ModuleN (mlx5 since Linux 6.7)")))
	moduleSensorThreshold = metric.Of(moduleSensorName, metric.Asks(source.Sensors, metric.Port(
		"rdma_transceiver_sensor_threshold_celsius", "Temperature limit of the transceiver by the adapter. level: critical.",
		"hwmon of the PCI function, tempN_crit", "level")))
)

const moduleSensorName = "rdma_transceiver_sensor_celsius"

// sensorInterval is the interval of readings: each is a firmware command, and temperature changes slowly.
const sensorInterval = 30 * time.Second

// sensorState belongs to the reader of its device, one at a time.
type sensorState struct {
	found    reading.Last // of dir and channels
	dir      string       // of hwmon; empty where there is none
	channels []string     // temp1, temp2, …
	last     reading.Kept[hostdata.DeviceSensors]
}

// New returns the collector.
func New(with *shared.State) *shared.Collector {
	return &shared.Collector{
		Name:  "sensors",
		Help:  "temperature sensors of adapters",
		Descs: []*metric.Desc{deviceTemperature, deviceTemperatureThreshold, moduleSensor, moduleSensorThreshold},
		Read: shared.ReadDevices(
			with.Devices,
			"sensors",
			nil,
			readSensors,
			func(n *snapshot.Node, devices []hostdata.DeviceSensors) {
				n.Sensors = &hostdata.Sensors{Devices: devices}
			},
		),
		Emit: metric.EmitSection(func(n *snapshot.Node) *hostdata.Sensors { return n.Sensors }, emitSensors),
	}
}

func readSensors(r *reading.Reader, d *reading.Device, st *sensorState) (hostdata.DeviceSensors, bool) {
	st.read(r, d)
	return st.last.Value, len(st.last.Value.Sensors) > 0
}

func (st *sensorState) read(r *reading.Reader, d *reading.Device) {
	now := r.Now()
	if st.found.Due(now, shared.SlowInterval) {
		st.find(r.Host.Files, d)
		st.found.Read(now)
	}
	if st.dir == "" || !st.last.DueOf(r, sensorInterval) {
		return
	}
	out := hostdata.DeviceSensors{Device: d.Name}
	sensors := r.From(source.Sensors)
	for _, channel := range st.channels {
		s := hostdata.Sensor{
			Name:  cmp.Or(sensors.Optional(st.dir+"/"+channel+"_label"), channel),
			Value: readCelsius(sensors, st.dir, channel+"_input"),
		}
		if critical := readCelsius(sensors, st.dir, channel+"_crit"); critical != nil && *critical > 0 {
			s.Critical = critical
		}
		out.Sensors = append(out.Sensors, s)
	}
	st.last.Keep(out, now)
}

// find finds the hwmon device of a function. A virtual function has none.
func (st *sensorState) find(files host.Files, d *reading.Device) {
	st.dir, st.channels = "", nil
	if d.Path == "" || d.FunctionType != snapshot.Physical {
		return
	}
	names, err := files.List(d.Path + "/hwmon")
	if err != nil {
		return
	}
	for _, name := range names {
		channels, err := files.List(d.Path + "/hwmon/" + name)
		if err != nil {
			continue
		}
		for _, f := range channels {
			if channel, ok := strings.CutSuffix(f, "_input"); ok && strings.HasPrefix(channel, "temp") {
				st.dir = d.Path + "/hwmon/" + name
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
	minCelsius = -40
	maxCelsius = 150
)

// readCelsius reads thousandths of a degree; nil where absent or invalid.
func readCelsius(r reading.Reads, dir, name string) *float64 {
	c := reading.Parsed(r, dir+"/"+name, func(text string) (float64, bool) {
		n, err := strconv.ParseInt(text, 10, 64)
		return float64(n) / 1000, err == nil
	})
	if c == nil || *c < minCelsius || *c > maxCelsius {
		return nil
	}
	return c
}

func emitSensors(sensors *hostdata.Sensors, s metric.Sink) {
	for i := range sensors.Devices {
		d := &sensors.Devices[i]
		for _, t := range d.Sensors {
			if t.OfModule() { // of the only port of an mlx5 function
				metric.EmitNumber(s, moduleSensor, t.Value, d.Device, "1")
				metric.EmitNumber(s, moduleSensorThreshold, t.Critical, d.Device, "1", "critical")
				continue
			}
			metric.EmitNumber(s, deviceTemperature, t.Value, d.Device, t.Name)
			metric.EmitNumber(s, deviceTemperatureThreshold, t.Critical, d.Device, t.Name, "critical")
		}
	}
}
