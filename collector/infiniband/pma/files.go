// Package pma reads the counters of a port's performance management agent, from files or by management datagrams.
package pma

import (
	"slices"
	"strconv"

	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
)

var counterSaturated = metric.Beside(
	"rdma_port_state_id",
	metric.Asks(source.PMA, metric.Function(
		"rdma_port_counter_saturated",
		"1 for a counter of 32 bits or fewer that has reached its maximum and no longer counts until it is cleared. Absent while it counts, and for drivers whose counters wrap.",
		"ports/N/counters/COUNTER; widths of PortCounters, IBA 16.1.3.5",
		"counter",
	)),
)

// saturatingBits: wider counters do not fill within the life of a machine.
const saturatingBits = 32

// Descs returns the metrics of the counters.
func Descs() []*metric.Desc {
	descs := []*metric.Desc{counterSaturated}
	for _, c := range counters.PMACounters {
		descs = append(descs, c.Desc)
	}
	return descs
}

// Files is the directory counters of a port, with its files as listed and those that are read.
type Files struct {
	Path         string
	infiniBand   bool // by the link layer of the port, as are the files read
	listed, read []string
}

// stats reads the counters. On mlx5 each file is one firmware command.
func (d *Files) stats(r *reading.Reader, layer string) []wire.Stat {
	names, files := d.files(r, layer), r.From(source.PMA)
	return slices.DeleteFunc(files.Stats(d.Path, names), func(st wire.Stat) bool {
		if st.Value != counters.AllOnes {
			return false
		}
		files.Issue(access.ErrGarbled(d.Path+"/"+st.Name, strconv.AppendUint(nil, st.Value, 10)))
		return true
	})
}

// files returns the files to be read.
func (d *Files) files(r *reading.Reader, layer string) []string {
	files := r.From(source.PMA)
	names, err := r.Host.Files.Attributes(d.Path)
	if err != nil {
		files.Issue(err)
		return nil
	}
	if infiniBand := layer == "InfiniBand"; infiniBand != d.infiniBand || !slices.Equal(names, d.listed) {
		d.infiniBand, d.listed = infiniBand, names
		d.read = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return infiniBand && slices.Contains(counters.UnusedOnInfiniBand, name)
		})
	}
	if !r.Reduced() {
		return d.read
	}
	return slices.DeleteFunc(slices.Clone(d.read), func(name string) bool {
		c := counters.PMAIndex[name]
		return c == nil || !shared.Wants(r, c.Desc)
	})
}

// wraps reports whether a driver wraps the narrow counters, so that all ones is a normal value.
func wraps(driver string) bool { return driver == "bnxt_en" }

// Emit emits the counters of a port.
func Emit(s metric.Sink, d *snapshot.Device, p *snapshot.Port, port string) {
	for _, st := range p.Counters {
		c := counters.PMAIndex[st.Name]
		if c == nil || p.LinkLayer == "InfiniBand" && slices.Contains(counters.UnusedOnInfiniBand, c.File) {
			continue
		}
		s.Emit(c.Desc, float64(st.Value)*c.Scale, d.Name, port)
		if c.Bits <= saturatingBits && !p.WideCounters && atEnd(st) && !wraps(d.Driver) {
			s.Emit(counterSaturated, 1, d.Name, port, c.File)
		}
	}
}
