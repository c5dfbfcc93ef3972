package gpudirect

import (
	"fmt"
	"testing"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/test/played"
)

// BenchmarkJobsOfPorts finds the workloads of eight ports, of 200 processes in 25 jobs with memory on each.
func BenchmarkJobsOfPorts(b *testing.B) {
	o := holderSearch{devices: map[string][]host.RDMAHolder{}}
	var found []accel.Process
	var names []string
	var devices []snapshot.Device
	for i := range 200 {
		found = append(found, accel.Process{PID: 1000 + i, Job: fmt.Sprintf("slurm/%d", i/8)})
	}
	for d := range 8 {
		name := fmt.Sprintf("mlx5_%d", d)
		names, devices = append(names, name),
			append(devices, snapshot.Device{Name: name, Driver: "mlx5_core", Ports: []snapshot.Port{{Number: 1}}})
		for _, p := range found {
			o.devices[name] = append(o.devices[name],
				host.RDMAHolder{PID: p.PID, Contexts: 1, Regions: 200, RegionBytes: 1 << 30})
		}
	}
	h := played.Machine(b, collectortest.Files("proc/uptime", "1 1"))
	b.ReportAllocs()
	for b.Loop() {
		if got := o.jobs(h, found, names, devices); len(got) != 8 || len(got[0].Jobs) != 25 {
			b.Fatalf("%+v", got)
		}
	}
}
