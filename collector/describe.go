package collector

import (
	"slices"
	"strings"

	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host"
)

// units are the base units in which a metric's name may end, the longer ones first.
var units = []string{
	"transfers_per_second", "bytes_per_second", "bytes", "seconds", "celsius", "ratio", "dbm", "amperes", "volts", "watts",
	"lanes", "ticks",
}

// newDesc describes a metric. Its type and unit follow from its name (https://prometheus.io/docs/practices/naming): a
// counter ends in _total, and before that the name ends in the unit.
func newDesc(scope exposition.Scope, name, help, source string, labels ...string) *Desc {
	d := &Desc{Name: name, Type: gauge, Scope: scope, Help: help, Labels: labels, Source: source}
	base, counts := strings.CutSuffix(name, "_total")
	if counts {
		d.Type = counter
	}
	if i := slices.IndexFunc(units, func(unit string) bool { return strings.HasSuffix(base, "_"+unit) }); i >= 0 {
		d.Unit = strings.ReplaceAll(units[i], "_", " ")
	}
	return d
}

// hostDesc describes a metric of the host.
func hostDesc(name, help, source string, labels ...string) *Desc {
	return newDesc(scopeHost, name, help, source, labels...)
}

// deviceDesc describes a metric of a device, with the label device before the given ones.
func deviceDesc(name, help, source string, labels ...string) *Desc {
	return newDesc(scopeDevice, name, help, source, append([]string{"device"}, labels...)...)
}

// portDesc describes a metric of a port, with the labels device and port before the given ones.
func portDesc(name, help, source string, labels ...string) *Desc {
	return newDesc(scopePort, name, help, source, append([]string{"device", "port"}, labels...)...)
}

// functionDesc describes a metric of the traffic of one function, with the labels of portDesc.
func functionDesc(name, help, source string, labels ...string) *Desc {
	return newDesc(scopeFunction, name, help, source, append([]string{"device", "port"}, labels...)...)
}

// gpuDesc describes a metric of a GPU, with the labels gpu and UUID before the given ones: the names of the DCGM
// exporter for NVML index and UUID.
func gpuDesc(name, help, source string, labels ...string) *Desc {
	return newDesc(scopeGPU, name, help, source, append([]string{"gpu", "UUID"}, labels...)...)
}

// of sets Desc.Of.
func of(selector string, d *Desc) *Desc {
	d.Of = selector
	return d
}

// beside sets Desc.Beside.
func beside(metric string, d *Desc) *Desc {
	d.Beside = metric
	return d
}

// asks sets Desc.Asks, and Desc.AskedLabels if only some labels require the source.
func asks(s host.Source, d *Desc, labels ...string) *Desc {
	d.Asks, d.AskedLabels = s.Name(), labels
	return d
}

// unknown sets Desc.Unknown.
func unknown(selectors map[string][]string, d *Desc) *Desc {
	d.Unknown = selectors
	return d
}
