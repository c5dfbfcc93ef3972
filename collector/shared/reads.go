package shared

import (
	"rdma_exporter/collector/metric"
	"rdma_exporter/internal/reading"
)

// Reads reports whether a metric of the reader's device is read.
func Reads(r *reading.Reader, d *metric.Desc) bool { return d != nil && r.Reads(d.Name) }
