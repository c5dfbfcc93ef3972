package collector

import "rdma_exporter/internal/reading"

// reads reports whether a metric of the reader's device is read.
func reads(r *reading.Reader, d *Desc) bool { return d != nil && r.Reads(d.Name) }
