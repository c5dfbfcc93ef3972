package shared

import (
	"rdma_exporter/collector/metric"
	"rdma_exporter/internal/reading"
)

// Wants reports whether a metric of the reader's device is read.
func Wants(r *reading.Reader, d *metric.Desc) bool { return d != nil && r.Wants(d.Name) }
