// Package metric makes Descs and emits samples. Type and unit of a metric follow from its name.
package metric

import (
	"slices"
	"strings"

	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host/source"
)

// units are the base units in which a metric's name may end, the longer ones first.
var units = []string{
	"transfers_per_second", "bytes_per_second", "bytes", "seconds", "celsius", "ratio", "dbm", "amperes", "volts", "watts",
	"lanes", "ticks",
}

// New describes a metric. Its type and unit follow from its name (https://prometheus.io/docs/practices/naming): a
// counter ends in _total, and before that the name ends in the unit.
func New(scope exposition.Scope, name, help, from string, labels ...string) *Desc {
	d := &Desc{Name: name, Type: exposition.Gauge, Scope: scope, Help: help, Labels: labels, Source: from}
	base, counts := strings.CutSuffix(name, "_total")
	if counts {
		d.Type = exposition.Counter
	}
	if i := slices.IndexFunc(units, func(unit string) bool { return strings.HasSuffix(base, "_"+unit) }); i >= 0 {
		d.Unit = strings.ReplaceAll(units[i], "_", " ")
	}
	return d
}

// Host describes a metric of the host.
func Host(name, help, from string, labels ...string) *Desc {
	return New(exposition.ScopeHost, name, help, from, labels...)
}

// Device describes a metric of a device, with the label device before the given ones.
func Device(name, help, from string, labels ...string) *Desc {
	return New(exposition.ScopeDevice, name, help, from, append([]string{"device"}, labels...)...)
}

// Port describes a metric of a port, with the labels device and port before the given ones.
func Port(name, help, from string, labels ...string) *Desc {
	return New(exposition.ScopePort, name, help, from, append([]string{"device", "port"}, labels...)...)
}

// Function describes a metric of the traffic of one function, with the labels of Port.
func Function(name, help, from string, labels ...string) *Desc {
	return New(exposition.ScopeFunction, name, help, from, append([]string{"device", "port"}, labels...)...)
}

// GPU describes a metric of a GPU, with the labels gpu and UUID before the given ones: the names of the DCGM
// exporter for NVML index and UUID.
func GPU(name, help, from string, labels ...string) *Desc {
	return New(exposition.ScopeGPU, name, help, from, append([]string{"gpu", "UUID"}, labels...)...)
}

// Of sets Desc.Of.
func Of(selector string, d *Desc) *Desc {
	d.Of = selector
	return d
}

// Beside sets Desc.Beside.
func Beside(metric string, d *Desc) *Desc {
	d.Beside = metric
	return d
}

// Asks sets Desc.Asks, and Desc.AskedLabels if only some labels require the source.
func Asks(s source.Source, d *Desc, labels ...string) *Desc {
	d.Asks, d.AskedLabels = s.Name(), labels
	return d
}

// Unknown sets Desc.Unknown.
func Unknown(selectors map[string][]string, d *Desc) *Desc {
	d.Unknown = selectors
	return d
}
