package gpudirect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/test/played"
)

// jobOn returns a process on the GPU of board.
func jobOn(lines string) string {
	return "-- processes/4711 --\ngpus: 0\nverbs: uverbs0\n" + lines
}

func TestJobsAreJudged(t *testing.T) {
	for _, c := range []struct {
		name, entries string
		job           gdr.Job
		reason        string
		pid           int
		issues        int
	}{
		{"none", "", gdr.Job{}, "direct", 0, 0},
		{"as it should be", jobOn("nccl: 2.27.3\n"), gdr.Job{}, "direct", 4711, 0},
		{"an unknown version", jobOn("nccl: unknown\n"), gdr.Job{}, "direct", 4711, 0},
		{"GDR level LOC", jobOn("nccl: 2.27.3\nenv_NCCL_NET_GDR_LEVEL: LOC\n"), gdr.Job{}, "gdr_level_set", 4711, 0},
		{"as nccl.conf says", collectortest.Files("etc/nccl.conf", "NCCL_NET_GDR_READ=0") + jobOn("nccl: 2.27.3\n"), gdr.Job{}, "gdr_read_disabled", 4711, 0},
		{"a net plugin", jobOn("nccl: 2.27.3\nnet_plugin: 1\n"), gdr.Job{}, "net_plugin", 4711, 0},
		{"no NCCL: somebody else", jobOn("env_NCCL_NET_GDR_LEVEL: LOC\n"), gdr.Job{}, "direct", 0, 0},
		{"another GPU's", "-- processes/4711 --\ngpus: 3\nverbs: uverbs0\nnccl: 2.27.3\nenv_NCCL_NET_GDR_LEVEL: LOC\n", gdr.Job{}, "direct", 0, 0},
		{"the minor number is the driver's", "-- processes/4711 --\ngpus: 3\nverbs: uverbs0\nnccl: 2.27.3\nenv_NCCL_NET_GDR_LEVEL: LOC\n", gdr.Job{}, "gdr_level_set", 4711, 0},
		{"what is asked for stands above it", jobOn("nccl: 2.27.3\nenv_NCCL_NET_GDR_LEVEL: LOC\n"), gdr.Job{NCCL: "2.27.3"}, "direct", 0, 0},
		{"what cannot be read costs no more", jobOn("nonsense\n"), gdr.Job{}, "direct", 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			machine := board(false, c.entries)
			if c.name == "the minor number is the driver's" {
				machine = strings.Replace(machine, "IRQ:", "Device Minor: \t 3\nIRQ:", 1)
			}
			got, issues := readSection(t, machine, c.job)
			g := got.GPUs[0]
			pid := 0
			if g.Process != nil {
				pid = g.Process.PID
			}
			if g.Best.Reason != c.reason || got.Pairs[0].Reason != c.reason || pid != c.pid || len(issues) != c.issues {
				t.Errorf("%s, pair %s, process %d, issues %v; want %s, process %d",
					g.Best.Reason, got.Pairs[0].Reason, pid, issues, c.reason, c.pid)
			}
		})
	}
}

func TestLiveRegistrations(t *testing.T) {
	const peers = "sys/kernel/mm/memory_peers/nv_mem/"
	got, _ := readSection(t, board(false, collectortest.Files("sys/module/nvidia_peermem/initstate", "live",
		"sys/module/nvidia_peermem/refcnt", "12",
		peers+"num_alloc_mrs", "900", peers+"num_dealloc_mrs", "840", peers+"num_reg_bytes", "8000", peers+"num_dereg_bytes",
		"9000")), gdr.Job{})
	r := got.Registrations
	if len(r) != 2 || collectortest.Value(r[0].Live) != uint64(12) || r[0].Bytes != nil ||
		collectortest.Value(r[1].Live) != uint64(60) ||
		collectortest.Value(r[1].Bytes) != uint64(0) || r[1].Client != "nv_mem" {
		t.Errorf("%+v", r)
	}
	low, high, verbs := uint64(1<<20), uint64(1<<30), []string{"uverbs0"}
	if got := lowestLimit([]accel.Process{
		{}, {LockedMemory: &high, Verbs: verbs}, {LockedMemory: &low, Verbs: verbs}, {LockedMemory: new(uint64)},
	}); collectortest.Value(got) != low {
		t.Errorf("%v", collectortest.Value(got))
	}
	if got := lowestLimit([]accel.Process{{}}); got != nil {
		t.Errorf("%v", collectortest.Value(got))
	}
}

// TestHolders: processes listed by RDMA netlink are read first, and a process has no registrations only if all devices
// answered.
func TestHolders(t *testing.T) {
	const whole = "-- rdma/a/holders --\n7: contexts=1 regions=2 bytes=10\n8: contexts=1 regions=0 bytes=0\n"
	for _, c := range []struct {
		name, entries string
		pids          []int
		regions       []any // of processes 7, 8 and 9
		issues        int
	}{
		{"everything is reported", whole + "-- rdma/b/holders --\n7: contexts=1 regions=3 bytes=5\n", []int{7, 8}, []any{uint64(5), uint64(0), uint64(0)}, 0},
		{"a region of somebody", whole + "-- rdma/b/holders --\n0: contexts=0 regions=1 bytes=1\n", []int{7, 8}, []any{uint64(2), nil, nil}, 0},
		{"a context of somebody", whole + "-- rdma/b/holders --\n0: contexts=1 regions=0 bytes=0\n", []int{7, 8}, []any{uint64(2), uint64(0), uint64(0)}, 0},
		{"a kernel without the command", "-- rdma/a/holders !EINVAL --\n-- rdma/b/holders !EOPNOTSUPP --\n", nil, []any{nil, nil, nil}, 0},
		{"no netlink", collectortest.Files("proc/uptime", "1 1"), nil, []any{nil, nil, nil}, 0},
		{"an error", whole + "-- rdma/b/holders !EIO --\n", []int{7, 8}, []any{uint64(2), nil, nil}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var n snapshot.Node
			got := readHolders(t.Context(), played.Machine(t, c.entries), &n, []string{"a", "b"}, nil)
			found := []accel.Process{{PID: 7}, {PID: 8}, {PID: 9}}
			got.addMemory(found)
			if !slices.Equal(got.pids(), c.pids) || len(n.Issues) != c.issues {
				t.Errorf("%v %+v", got.pids(), n.Issues)
			}
			for i := range found {
				if collectortest.Value(found[i].Regions) != c.regions[i] || (found[i].RegionBytes == nil) != (c.regions[i] == nil) {
					t.Errorf("process %d: %v", found[i].PID, collectortest.Value(found[i].Regions))
				}
			}
		})
	}
}

// TestProcessesThatAreNamed: RDMA netlink and NVML together list all processes to read; if one of them has no answer,
// all processes are searched.
func TestProcessesThatAreNamed(t *testing.T) {
	const holders = "-- rdma/a/holders --\n7: contexts=1 regions=2 bytes=10\n"
	for _, c := range []struct {
		name, entries string
		gpus          []gdrGPU
		first         []int
		only          bool
	}{
		{"both report", holders, []gdrGPU{{processes: []int{9, 7}}, {processes: []int{}}}, []int{7, 9}, true},
		{"a GPU does not", holders, []gdrGPU{{processes: []int{9}}, {}}, []int{7, 9}, false},
		{"netlink does not", collectortest.Files("proc/uptime", "1 1"), []gdrGPU{{processes: []int{9}}}, []int{9}, false},
		{"a context of another process", holders + "0: contexts=1 regions=0 bytes=0\n", []gdrGPU{{processes: []int{9}}}, []int{7, 9}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := played.Machine(t, c.entries)
			d := &fakeProcesses{}
			h.Processes = d
			var j gdrJobs
			j.update(t.Context(), h, &snapshot.Node{}, []string{"a"}, c.gpus, nil)
			if !slices.Equal(d.first, c.first) || d.only != c.only {
				t.Errorf("%v, only them: %v", d.first, d.only)
			}
		})
	}
}

// fakeProcesses returns processes, or hangs.
type fakeProcesses struct {
	found   []accel.Process
	refused bool
	hang    chan struct{}
	first   []int // of the last request
	only    bool
}

func (d *fakeProcesses) Processes(_ context.Context, first []int, only bool) ([]accel.Process, bool, error) {
	d.first, d.only = first, only
	if d.hang != nil {
		<-d.hang
	}
	return d.found, d.refused, nil
}

// stuckHolders hangs.
type stuckHolders struct {
	host.RDMA
	hang chan struct{}
}

func (r stuckHolders) Holders(context.Context, string, bool) ([]host.RDMAHolder, error) {
	<-r.hang
	return nil, nil
}

// TestHoldersThatAreStuck: hung devices and processes together delay a round no longer than one of them may, and
// devices alone leave time for the processes.
func TestHoldersThatAreStuck(t *testing.T) {
	for _, both := range []bool{false, true} {
		t.Run(fmt.Sprintf("both=%v", both), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hang := make(chan struct{})
				d := &fakeProcesses{found: []accel.Process{{PID: 1}}}
				if both {
					d.hang = hang
				}
				h := &host.Host{
					RDMA: stuckHolders{hang: hang}, Processes: d, Turns: access.NewTurns(), Meter: &source.Meter{}, Now: time.Now,
				}
				var j gdrJobs
				start := time.Now()
				j.update(t.Context(), h, &snapshot.Node{}, []string{"a", "b"}, nil, nil)
				most := processTimeout / 2
				if both {
					most = processTimeout
				}
				if took := time.Since(start); took > most || (len(j.found) == 0) != both {
					t.Errorf("processes stuck: %v: after %s: %+v", both, took, j.found)
				}
				close(hang)
			})
		})
	}
}

// TestProcessThatIsStuck: a round continues without a process list that hangs, and keeps the previous one for a while.
func TestProcessThatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeProcesses{found: []accel.Process{{PID: 1}}, refused: true}
		h := &host.Host{Processes: d, Turns: access.NewTurns(), Meter: &source.Meter{}, Now: time.Now}
		var j gdrJobs
		var n snapshot.Node
		j.update(t.Context(), h, &n, nil, nil, nil)
		if len(j.found) != 1 || len(n.Issues) != 1 || n.Issues[0].Needs == "" || !errors.Is(n.Issues[0].Err, syscall.EACCES) {
			t.Errorf("%+v %+v", j.found, n.Issues)
		}
		d.hang, d.found, d.refused = make(chan struct{}), nil, false
		for range 2 {
			time.Sleep(shared.SlowInterval)
			start := time.Now()
			n = snapshot.Node{}
			j.update(t.Context(), h, &n, nil, nil, nil)
			if took := time.Since(start); len(j.found) != 1 || took > processTimeout ||
				!slices.ContainsFunc(n.Issues, func(i snapshot.Issue) bool { return i.Reason == string(access.Stuck) }) {
				t.Errorf("after %s: %+v %+v", took, j.found, n.Issues)
			}
		}
		for time.Since(j.seen) <= processRetention-shared.SlowInterval {
			time.Sleep(shared.SlowInterval)
			j.update(t.Context(), h, &snapshot.Node{}, nil, nil, nil)
		}
		if len(j.found) != 1 {
			t.Errorf("too early: %+v", j.found)
		}
		time.Sleep(shared.SlowInterval)
		if j.update(t.Context(), h, &snapshot.Node{}, nil, nil, nil); len(j.found) != 0 {
			t.Errorf("after %s: %+v", processRetention, j.found)
		}
		close(d.hang)
		synctest.Wait()
		d.found = []accel.Process{{PID: 2}}
		time.Sleep(shared.SlowInterval)
		n = snapshot.Node{}
		if j.update(t.Context(), h, &n, nil, nil, nil); len(j.found) != 1 || j.found[0].PID != 2 || len(n.Issues) != 0 {
			t.Errorf("%+v %+v", j.found, n.Issues)
		}
	})
}
