package capture

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/nvml"
	"rdma_exporter/internal/snapshot"
)

// gpuText is an entry with all lines.
const gpuText = `uuid: GPU-7975f855-e9d0-915f-3654-32c90a1bfdf8
pci_address: 0000:1b:00.0
model: NVIDIA H200
serial: 1652823055000
compute_capability: 9.0
pcie_generation: 5
pcie_max_generation: 5
pcie_width: 16
pcie_max_width: 16
nvlinks: 18
nvlinks_up: 17
c2c_links: 0
processes: 4711 4712
last_xid: 74
recovery_action: 1
temperature: 58
power: 612.5
utilization: 0.37
memory_used: 1073741824
memory_total: 150754820096
bar1_used: 2097152
bar1_total: 274877906944
throttle: 4
pcie_transmit_bytes: 100
pcie_receive_bytes: 200
pcie_replays: 0
nvlink_transmit_bytes: 1024
nvlink_receive_bytes: 2048
xid_events: 3
nvlink_errors_replay: 5
nvlink_errors_recovery: 0
fabric_state: 3
fabric_status: 0
fabric_health: 2
fabric_summary: 1
fabric_cluster: 0d1e2f30-0000-1111-2222-333344445555
fabric_clique: 7
rows_correctable: 1
rows_uncorrectable: 2
rows_pending: true
rows_failed: false
`

func TestAnswersOfNVML(t *testing.T) {
	g, err := decodeGPU("x", []byte(gpuText))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(encodeGPU(g)); got != gpuText {
		differ(t, got, gpuText)
	}
	v := reflect.ValueOf(g)
	for i := range v.NumField() {
		// Those are from the path and from sysfs.
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() && name != "Index" && name != "NUMANode" {
			t.Errorf("an entry has no %s", name)
		}
	}
	for _, text := range []string{
		"", "uuid: GPU-1\n", "processes: \n", "fabric_state: 1\nfabric_status: 0\nfabric_clique: 0\n",
	} {
		g, err := decodeGPU("x", []byte(text))
		if got := string(encodeGPU(g)); err != nil || got != text {
			t.Errorf("%q: %q %v", text, got, err)
		}
	}
	for _, text := range []string{
		"nvlinks", "nvlinks: many\n", "processes: 1 x\n", "power: \n", "rows_pending: 2\n",
		"nvlink_errors_x: -1\n", "fabric_state: x\n",
	} {
		if _, err := decodeGPU("x", []byte(text)); access.ReasonOf(err) != access.Malformed {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzGPU(f *testing.F) {
	f.Add([]byte(gpuText))
	f.Add([]byte("nvlinks: many\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := decodeGPU("x", data)
		if err != nil {
			return
		}
		text := encodeGPU(g)
		again, err := decodeGPU("x", text)
		if err != nil || !bytes.Equal(encodeGPU(again), text) {
			t.Errorf("%q is written as %q, and then as %q (%v)", data, text, encodeGPU(again), err)
		}
	})
}

// gpuMachine has two GPUs, one of which is removed.
const gpuMachine = header + `-- nvml/gpu/0 --
uuid: GPU-7975f855-e9d0-915f-3654-32c90a1bfdf8
pcie_replays: 10
nvlink_errors_replay: 1
-- nvml/gpu/1 --
uuid: GPU-0975f855-e9d0-915f-3654-32c90a1bfdf8
-- nvml/system --
driver: 580.95.05
cuda: 13.0
-- +15s/nvml/gpu/0 --
uuid: GPU-7975f855-e9d0-915f-3654-32c90a1bfdf8
pcie_replays: 13
nvlink_errors_replay: 3
-- +15s/nvml/gpu/1 !ENOENT --
`

// gpus formats a reading of a replayed machine.
func gpus(t *testing.T, h *host.Host) string {
	t.Helper()
	v, errs, err := h.GPUs.ReadGPUs(t.Context(), false)
	if err != nil || len(errs) > 0 {
		t.Fatal(err, errs)
	}
	text := v.Driver + " " + v.CUDA
	for _, g := range v.GPUs {
		text += fmt.Sprintf(" %d:%s", g.Index, g.UUID[4:8])
		if g.PCIeReplays != nil {
			text += fmt.Sprintf(" %d %v", *g.PCIeReplays, g.NVLinkErrors)
		}
	}
	return text
}

func TestGPUsArePlayed(t *testing.T) {
	p := play(t, parse(t, gpuMachine))
	for _, c := range []struct {
		after time.Duration
		want  string
	}{
		{0, "580.95.05 13.0 0:7975 10 [{replay 1}] 1:0975"},
		{15 * time.Second, "580.95.05 13.0 0:7975 13 [{replay 3}]"},
		{30 * time.Second, "580.95.05 13.0 0:7975 13 [{replay 3}]"}, // the last recorded round, in which nothing increases
	} {
		seek(t, p, c.after)
		if got := gpus(t, p.Host()); got != c.want {
			t.Errorf("after %v: %s, want %s", c.after, got, c.want)
		}
	}
	risen := play(t, parse(t, strings.Replace(gpuMachine, "-- +15s/nvml/gpu/1 !ENOENT --\n", "", 1)+`-- +30s/nvml/gpu/0 --
uuid: GPU-7975f855-e9d0-915f-3654-32c90a1bfdf8
pcie_replays: 15
nvlink_errors_replay: 4
`))
	seek(t, risen, time.Minute)
	if got, want := gpus(t, risen.Host()), "580.95.05 13.0 0:7975 19 [{replay 6}] 1:0975"; got != want {
		t.Errorf("counters do not continue: %s, want %s", got, want)
	}
	if err := p.ReleaseGPUs(t.Context(), time.Minute, "root"); access.ReasonOf(err) != access.Unsupported {
		t.Error(err)
	}
}

func TestGPUsOfAMachineWithoutAre(t *testing.T) {
	for text, want := range map[string]access.Reason{
		"": access.Absent, "-- nvml/system !EBUSY --\n": access.IO, "-- nvml/system !ELIBACC --\n": access.IO,
	} {
		if _, _, err := play(t, parse(t, header+text)).Host().GPUs.ReadGPUs(t.Context(), true); access.ReasonOf(err) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
	v, errs, err := play(t, parse(t, header+"-- nvml/system --\ndriver: 1\n-- nvml/gpu/0 --\npower: much\n-- nvml/gpu/x --\npower: 1\n-- nvml/gpu/1 --\npower: 1\n")).
		Host().GPUs.ReadGPUs(t.Context(), true)
	if err != nil || len(v.GPUs) != 1 || len(errs) != 2 {
		t.Errorf("%+v %v %v", v, errs, err)
	}
}

// asked records whether all figures were requested.
type asked struct {
	host.GPUs
	full bool
}

func (a *asked) ReadGPUs(ctx context.Context, full bool) (snapshot.NVML, []error, error) {
	a.full = a.full || full
	return a.GPUs.ReadGPUs(ctx, full)
}

func TestGPUsAreRecorded(t *testing.T) {
	a := parse(t, gpuMachine)
	p := play(t, a)
	inner := p.Host()
	wants := &asked{GPUs: inner.GPUs}
	inner.GPUs = wants
	rec := NewRecorder(inner)
	for _, r := range a.Rounds {
		seek(t, p, r.At)
		gpus(t, rec.Host())
		rec.EndRound(r.At)
	}
	differ(t, format(t, rec.Archive(a.Meta)), format(t, a))
	if !wants.full {
		t.Error("a capture lacks what is not of the fabric")
	}

	rec = NewRecorder(&host.Host{GPUs: failing{}})
	if _, _, err := rec.ReadGPUs(t.Context(), true); err == nil {
		t.Error("no error")
	}
	rec.EndRound(0)
	if e := rec.Archive(a.Meta).Rounds[0].Entries; len(e) != 1 || e[0].Path != "nvml/system" ||
		e[0].Errno != syscall.ELIBACC {
		t.Errorf("%+v", e)
	}
}

type failing struct{ nvml.NoNVML }

func (failing) ReadGPUs(context.Context, bool) (snapshot.NVML, []error, error) {
	return snapshot.NVML{}, nil, fmt.Errorf("cannot load: %w", syscall.ELIBACC)
}

func TestAnonymiseGPUs(t *testing.T) {
	const uuid, cluster = "7975f855-e9d0-915f-3654-32c90a1bfdf8", "0d1e2f30-0000-1111-2222-333344445555"
	a := parse(t, header+"-- nvml/gpu/0 --\n"+gpuText+"-- nvml/gpu/1 --\nuuid: GPU-0175f855-e9d0-915f-3654-32c90a1bfdf8\nserial: 1652823055000\nfabric_state: 3\nfabric_status: 0\nfabric_cluster: "+cluster+
		"\nfabric_clique: 7\n-- nvml/gpu/2 --\nserial 17\n-- proc/driver/nvidia/gpus/0000:1b:00.0/information --\nGPU UUID: \tGPU-"+uuid+"\n-- +15s/nvml/gpu/0 --\n"+gpuText)
	Anonymise(a)
	got := contents(a)
	text := format(t, a)
	for _, private := range []string{uuid, cluster, "1652823055000", "0175f855", "serial 17"} {
		if strings.Contains(text, private) {
			t.Errorf("%s is there still", private)
		}
	}
	first, err := decodeGPU("x", []byte(got["0s nvml/gpu/0"]))
	if err != nil {
		t.Fatal(err)
	}
	second, err := decodeGPU("x", []byte(got["0s nvml/gpu/1"]))
	if err != nil {
		t.Fatal(err)
	}
	if first.UUID == second.UUID || first.Fabric.Cluster != second.Fabric.Cluster || first.Serial != second.Serial ||
		*first.NVLinksUp != 17 {
		t.Errorf("%+v %+v", first, second)
	}
	if got["15s nvml/gpu/0"] != got["0s nvml/gpu/0"] ||
		!strings.Contains(got["0s proc/driver/nvidia/gpus/0000:1b:00.0/information"], first.UUID) {
		t.Errorf("one GPU has several pseudonyms: %q", got)
	}
	Anonymise(a)
	differ(t, format(t, a), text)
}
