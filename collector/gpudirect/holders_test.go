package gpudirect

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/test/played"
)

// TestPortJobs: the workloads of each device, the busiest first.
func TestPortJobs(t *testing.T) {
	const (
		rank   = "-- processes/%d --\ngpus: %d\nverbs: uverbs0 uverbs1\nnccl: 2.27.3\njob: slurm/%d\nstep: 0\n"
		daemon = "-- processes/30 --\nverbs: uverbs0\nunit: wekanode.service\n"
	)
	two := fmt.Sprintf(rank, 10, 0, 77) + fmt.Sprintf(rank, 11, 1, 77) + fmt.Sprintf(rank, 20, 2, 78)
	for _, c := range []struct {
		name, entries string
		want          []string // DEVICE: SCHEDULER/ID PROCESSES REGIONS BYTES QPS
	}{
		{"none", collectortest.Files("proc/uptime", "1 1"), nil},
		{
			"two jobs with all devices open, each with memory on one",
			two + "-- rdma/a/holders --\n10: contexts=1 regions=7 bytes=700\n11: contexts=1 regions=7 bytes=700\n20: contexts=1 regions=0 bytes=0\n" +
				"-- rdma/b/holders --\n10: contexts=1 regions=0 bytes=0\n11: contexts=1 regions=0 bytes=0\n20: contexts=1 regions=9 bytes=90\n",
			[]string{"a: slurm/77 2 14 1400 -", "b: slurm/78 1 9 90 -"},
		},
		{
			"a storage daemon beside a job",
			two + daemon + "-- rdma/a/holders --\n10: contexts=1 regions=7 bytes=700\n30: contexts=2 regions=512 bytes=9000\n",
			[]string{"a: systemd/wekanode.service 1 512 9000 -", "a: slurm/77 1 7 700 -"},
		},
		{
			"queue pairs without memory",
			two + "-- rdma/a/holders --\n10: contexts=1 regions=0 bytes=0 qps=4\n11: contexts=1 regions=0 bytes=0 qps=0\n",
			[]string{"a: slurm/77 1 0 0 4"},
		},
		{
			"processes that are not visible",
			"-- rdma/a/holders --\n0: contexts=3 regions=8 bytes=80\n99: contexts=1 regions=1 bytes=10\n",
			[]string{"a: unknown/ 2 9 90 -"},
		},
		{
			"a process with a name and a control group only",
			"-- processes/10 --\ncommand: python3\nhidden: 1\njob: slurm/77\n-- rdma/a/holders --\n10: contexts=1 regions=1 bytes=10\n",
			[]string{"a: slurm/77 1 1 10 -"},
		},
		{
			"a kernel that does not list holders",
			two + daemon + collectortest.Files("sys/class/infiniband_verbs/uverbs0/ibdev", "a", "sys/class/infiniband_verbs/uverbs1/ibdev", "b"),
			[]string{"a: slurm/77 2 - 0 -", "a: slurm/78 1 - 0 -", "a: systemd/wekanode.service 1 - 0 -", "b: slurm/77 2 - 0 -", "b: slurm/78 1 - 0 -"},
		},
		{
			"a pod on a virtual function",
			"-- processes/40 --\nverbs: uverbs1\njob: kubernetes/0a1b2c3d-1111-2222-3333-444455556666\n-- rdma/b/holders --\n40: contexts=1 regions=1 bytes=10\n-- rdma/a/holders --\n" +
				"-- sys/class/infiniband/b/device -> ../../../devices/pci0000:15/0000:15:01.1 --\n-- sys/devices/pci0000:15/0000:15:01.1/physfn -> ../0000:15:01.0 --\n" +
				collectortest.Files("sys/devices/pci0000:15/0000:15:01.0/vendor", "0x15b3"),
			[]string{"a: kubernetes/0a1b2c3d-1111-2222-3333-444455556666 1 1 10 -", "b: kubernetes/0a1b2c3d-1111-2222-3333-444455556666 1 1 10 -"},
		},
		{
			"a subfunction",
			daemon + "-- rdma/b/holders --\n30: contexts=1 regions=1 bytes=10\n-- rdma/a/holders --\n" +
				"-- sys/class/infiniband/b/device -> ../../../devices/pci0000:15/0000:15:01.0/mlx5_core.sf.4 --\n" +
				collectortest.Files("sys/devices/pci0000:15/0000:15:01.0/mlx5_core.sf.4/sfnum", "88"),
			[]string{"a: systemd/wekanode.service 1 1 10 -", "b: systemd/wekanode.service 1 1 10 -"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := played.Machine(t, c.entries)
			devices := []snapshot.Device{
				{Name: "a", PCIAddress: "0000:15:01.0", Ports: []snapshot.Port{{Number: 1}}},
				{Name: "b", PCIAddress: "0000:15:01.1", Ports: []snapshot.Port{{Number: 1}}},
			}
			var j gdrJobs
			j.update(t.Context(), h, &snapshot.Node{}, []string{"a", "b"}, nil, devices)
			var got []string
			for _, d := range j.ports {
				for _, job := range d.Jobs {
					show := func(n *uint64) string { return strings.ReplaceAll(fmt.Sprint(collectortest.Value(n)), "<nil>", "-") }
					got = append(got, fmt.Sprintf("%s: %s/%s %d %s %d %s",
						d.Device, job.Scheduler, job.ID, job.Processes, show(job.Regions), job.RegionBytes, show(job.QPs)))
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if slices.ContainsFunc(j.found, func(p accel.Process) bool { return p.Hidden }) {
				t.Error("a hidden process is evaluated as one that holds nothing")
			}
		})
	}
}

func gdrSamples(n *snapshot.Node) []string {
	c := New(shared.NewState(shared.Options{}))
	return collectortest.Samples(c.Descs, func(s metric.Sink) { c.Emit(n, s) })
}

// TestQPsAreListedFromMemory: queue pairs are requested only from drivers that do not ask the firmware.
func TestQPsAreListedFromMemory(t *testing.T) {
	devices := []snapshot.Device{{Name: "mlx5_0", Driver: "mlx5_core"}, {Name: "rxe0", Driver: "rxe"}}
	for name, want := range map[string]bool{"mlx5_0": false, "rxe0": true, "none": false} {
		if got := listsQPs(name, devices); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestJobSeries: at most 16 workloads of a port, and all are counted; names only where they were read.
func TestJobSeries(t *testing.T) {
	d := &accel.GDR{
		GPUs:     []accel.GDRGPU{{Index: "0", UUID: "GPU-a", Best: accel.GDRPair{NIC: -1}}},
		PortJobs: []accel.DeviceJobs{{Device: "a", Ports: []int{1, 2}}},
	}
	for i := range 40 {
		w := accel.Workload{Scheduler: "slurm", ID: fmt.Sprint(100 + i)}
		d.PortJobs[0].Jobs = append(d.PortJobs[0].Jobs, accel.PortJob{Workload: w})
		d.Jobs = append(d.Jobs, accel.JobInfo{Workload: w, GPUs: []int{0}})
	}
	d.Jobs[0].Name, d.Jobs[0].User = "llama", "1001"
	got := gdrSamples(&snapshot.Node{GDR: d})
	count := func(prefix string) (n int) {
		for _, line := range got {
			if strings.HasPrefix(line, prefix) {
				n++
			}
		}
		return n
	}
	for prefix, want := range map[string]int{
		`rdma_port_job_info{device="a",job_id=`: 32, `rdma_port_jobs{device="a",port="1"} 40`: 1,
		`rdma_gpu_job_info{UUID="GPU-a",gpu="0"`: 16, `rdma_job_info{`: 1,
		`rdma_job_info{job_id="100",name="llama",scheduler="slurm",user="1001"} 1`: 1,
		`rdma_port_job_info{device="a",job_id="115",port="1",scheduler="slurm"} 1`: 1,
		`rdma_port_job_info{device="a",job_id="116"`:                               0,
	} {
		if n := count(prefix); n != want {
			t.Errorf("%s: %d, want %d", prefix, n, want)
		}
	}
}

// TestAffinity: the nearest ports do not depend on which are up, and the labels are those of the DCGM exporter.
func TestAffinity(t *testing.T) {
	host, gpus, nics := eightPlanes()
	of := func(active func(device string) bool) (out []string) {
		var devices []snapshot.Device
		for i := range nics {
			role := pci.Compute
			if i >= 8 {
				role = pci.Other
			}
			id := uint64(1)
			if active(nics[i].Device) {
				id = 4
			}
			devices = append(devices,
				snapshot.Device{Name: nics[i].Device, Ports: []snapshot.Port{{Number: 1, State: &id, Role: string(role)}}})
			nics[i].applyPorts(devices)
		}
		d, _ := evaluateGDR(host, gpus, nics, nil, gdr.Job{})
		for _, line := range gdrSamples(&snapshot.Node{GDR: d}) {
			if strings.HasPrefix(line, "rdma_gpu_nic_affinity_info") {
				out = append(out, line)
			}
		}
		return out
	}
	up := of(func(string) bool { return true })
	if len(up) != 8 ||
		up[3] != `rdma_gpu_nic_affinity_info{device="mlx5_3",distance="PIX",gpu="3",pci_bus_id="00000000:33:00.0",port="1"} 1` {
		t.Errorf("%d:\n%s", len(up), strings.Join(up, "\n"))
	}
	if down := of(func(device string) bool { return device != "mlx5_3" }); !slices.Equal(down, up) {
		t.Errorf("with one port down:\n%s", strings.Join(down, "\n"))
	}
	for address, want := range map[string]string{
		"0000:1b:00.0": "00000000:1B:00.0", "10000:01:00.0": "00010000:01:00.0", "odd": "odd",
	} {
		if got := dcgmBusID(address); got != want {
			t.Errorf("%s: %s", address, got)
		}
	}
	if nics, _ := affinity(
		&accel.GDR{GPUs: make([]accel.GDRGPU, 1), NICs: make([]accel.GDRNIC, 1), Pairs: []accel.GDRPair{{}}}, 0,
	); nics != nil {
		t.Errorf("unknown distance: %v", nics)
	}
}
