package gpudirect

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/metric"
	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/gdr/library"
	"rdma_exporter/internal/gdr/transport"
	"rdma_exporter/internal/snapshot/accel"
)

func TestPeerMapping(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "unknown"},
		{"ImexChannelCount: 2048\n", "unknown"},
		{"RegistryDwords: \"\"\nRegistryDwordsPerDevice: \"PeerMappingOverride=1\"\n", "false"},
		{"EnableStreamMemOPs: 1\nRegistryDwords: \"PeerMappingOverride=1;\"\n", "true"},
		{"RegistryDwords: \"RMForceStaticBar1=1; PeerMappingOverride=0x1\"\n", "true"},
		{"RegistryDwords: \"PeerMappingOverride=0\"\n", "false"},
		{"RegistryDwords: \"PeerMappingOverride\"\n", "false"},
		{"RegistryDwords: \"NoPeerMappingOverride=1\"\n", "false"},
	} {
		got := "unknown"
		if b := parsePeerMapping(c.text); b != nil {
			got = fmt.Sprint(*b)
		}
		if got != c.want {
			t.Errorf("%q: %s, want %s", c.text, got, c.want)
		}
	}
}

// TestGPUMemory: GPU memory is registered, or certainly not, or unknown.
func TestGPUMemory(t *testing.T) {
	module := func(live *uint64) []accel.GDRRegistrations {
		return []accel.GDRRegistrations{{Source: "nvidia_peermem", Live: live}}
	}
	trace := &accel.Trace{Complete: time.Hour, Peermem: true}
	registered := func(pid int, mechanism string) []accel.GDRRegistered {
		return []accel.GDRRegistered{{PID: pid, Mechanism: mechanism, Regions: 3, Device: "mlx5_0"}}
	}
	young := accel.Process{PID: 7, Started: 2 * time.Hour, GPUs: []int{0}}
	for _, c := range []struct {
		name    string
		d       accel.GDR
		process accel.Process
		dmabuf  gdr.State
		want    string
	}{
		{"DMA-BUFs are kept", accel.GDR{}, accel.Process{DMABUFs: []accel.DMABUFs{{Buffers: 1}}}, gdr.Direct, "true"},
		{"no mechanism in use", accel.GDR{Registrations: module(new(uint64))}, accel.Process{}, gdr.Staging, "false"},
		{"no module", accel.GDR{}, accel.Process{}, gdr.Staging, "false"},
		{"the module is in use by any process", accel.GDR{Registrations: module(new(uint64(4)))}, accel.Process{}, gdr.Staging, "unknown"},
		{"the use of the module is unknown", accel.GDR{Registrations: module(nil)}, accel.Process{}, gdr.Staging, "unknown"},
		{"DMA-BUFs may be in use", accel.GDR{}, accel.Process{}, gdr.Direct, "unknown"},
		{"DMA-BUFs are possibly possible", accel.GDR{}, accel.Process{}, gdr.Unknown, "unknown"},
		{"observed by DMA-BUF", accel.GDR{Trace: trace, Registered: registered(7, ofDMABUF)}, young, gdr.Direct, "true"},
		{"observed by the module", accel.GDR{Trace: trace, Registered: registered(7, ofPeermem)}, young, gdr.Direct, "true"},
		{"observed of another process", accel.GDR{Trace: trace, Registered: registered(8, ofDMABUF)}, young, gdr.Direct, "false"},
		{"observed, of an unknown exporter", accel.GDR{Trace: trace, Registered: registered(7, ofDMABUFOther)}, young, gdr.Direct, "unknown"},
		{"older than the observation", accel.GDR{Trace: trace}, accel.Process{PID: 7, Started: time.Minute}, gdr.Direct, "unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := "unknown"
			if b := gpuMemory(&c.d, &c.process, c.dmabuf); b != nil {
				got = fmt.Sprint(*b)
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestDomainOf: one GPU in a domain is enough, and an unknown one leaves it unknown.
func TestDomainOf(t *testing.T) {
	gpus := []gdrGPU{{minor: 0, domain: new(false)}, {minor: 1}, {minor: 2, domain: new(true)}}
	for held, want := range map[int]string{0: "false", 1: "<nil>", 2: "true", 3: "false"} {
		got := "<nil>"
		if b := domainOf(&accel.Process{GPUs: []int{held}}, gpus); b != nil {
			got = fmt.Sprint(*b)
		}
		if got != want {
			t.Errorf("GPU %d: %s, want %s", held, got, want)
		}
	}
	if b := domainOf(&accel.Process{GPUs: []int{0, 1, 2}}, gpus); b == nil || !*b {
		t.Error("not in the domain of one of its GPUs")
	}
}

// TestLibrarySeries: processes of a workload with one result have one series, and there are at most librariesNamed.
func TestLibrarySeries(t *testing.T) {
	d := &accel.GDR{}
	for i := range 2 * librariesNamed {
		d.Libraries = append(d.Libraries, accel.ProcessLibrary{
			Process: &accel.Process{PID: i, Job: fmt.Sprintf("slurm/%d", i/4)}, Library: "ucx", InUse: "tcp",
			Reason: "ucx_net_devices",
		})
	}
	emitted := func() []string {
		return collectortest.Samples([]*metric.Desc{jobLibrary}, func(s metric.Sink) { emitLibraries(s, d) })
	}
	if got := emitted(); len(got) != librariesNamed/2 || !strings.Contains(got[0], `job_id="0"`) {
		t.Errorf("%d: %v", len(got), got)
	}
	for i := range d.Libraries {
		d.Libraries[i].Process.Job = fmt.Sprintf("slurm/%d", i)
	}
	if got := emitted(); len(got) != librariesNamed {
		t.Errorf("%d series", len(got))
	}
}

// TestLibraryOfNCCL: its transport is that of its GPU, but for a missing IMEX channel.
func TestLibraryOfNCCL(t *testing.T) {
	p := accel.Process{PID: 7}
	of := &accel.GDRTransport{State: "staging", Reason: "not_registered", Process: &p}
	d := &accel.GDR{GPUs: []accel.GDRGPU{{Transport: of}}}
	for _, c := range []struct {
		name, want string
		result     library.Result
	}{
		{"NCCL", "rdma not_registered", library.Result{Library: library.NCCL, InUse: library.GDR}},
		{"NCCL without a channel", "gdr imex_channel_missing", library.Result{Library: library.NCCL, InUse: library.GDR, Reason: library.NoChannel}},
		{"another", "tcp ucx_net_devices", library.Result{Library: library.UCX, InUse: library.TCP, Reason: library.UCXNetDevices}},
	} {
		got := libraryOf(d, &p, c.result)
		if have := got.InUse + " " + got.Reason; have != c.want || got.Words == "" {
			t.Errorf("%s: %s, want %s", c.name, have, c.want)
		}
	}
	for _, kind := range []transport.Kind{
		transport.OverGDR, transport.OverStaging, transport.OverTCP, transport.OverHostOnly, transport.OverUnknown,
	} {
		if ofNCCL[string(kind)] == "" {
			t.Errorf("%s has no transport of a library", kind)
		}
	}
}
