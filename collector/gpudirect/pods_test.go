package gpudirect

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot/accel"
)

const (
	gpuA, gpuB = "GPU-aaaaaaaa-2c3d-4e5f-8a9b-0c1d2e3f4a5b", "GPU-bbbbbbbb-2c3d-4e5f-8a9b-0c1d2e3f4a5b"
	uidA, uidB = "0a1b2c3d-1111-2222-3333-444455556666", "1b2c3d4e-5555-6666-7777-888899990000"
)

func TestNamesOfPods(t *testing.T) {
	gpu := map[string][]string{"A": {gpuA, "nvidia0"}, "B": {gpuB, "nvidia1"}}
	vf := func(names ...string) (out [][]string) {
		for _, n := range names {
			out = append(out, []string{n})
		}
		return out
	}
	pod := func(name string, devices ...string) accel.Pod {
		return accel.Pod{Namespace: "ml", Name: name, Devices: devices}
	}
	for _, c := range []struct {
		name string
		used map[string]podDevices
		pods []accel.Pod
		want map[string]string
	}{
		{
			"a GPU each, shared RDMA devices",
			map[string]podDevices{
				uidA: {kindGPU: {gpu["A"]}, kindRDMA: vf("0000:3b:00.0")},
				uidB: {kindGPU: {gpu["B"]}, kindRDMA: vf("0000:3b:00.0")},
			},
			[]accel.Pod{pod("a", gpuA), pod("b", gpuB)},
			map[string]string{uidA: "a", uidB: "b"},
		},
		{
			"a GPU by its minor number",
			map[string]podDevices{uidA: {kindGPU: {gpu["A"]}}},
			[]accel.Pod{pod("a", "nvidia0"), pod("b", "nvidia1")},
			map[string]string{uidA: "a"},
		},
		{
			"both GPUs",
			map[string]podDevices{uidA: {kindGPU: {gpu["A"], gpu["B"]}}},
			[]accel.Pod{pod("a", gpuA, gpuB)},
			map[string]string{uidA: "a"},
		},
		{
			"a virtual function",
			map[string]podDevices{uidA: {kindRDMA: vf("0000:3b:02.1")}, uidB: {kindRDMA: vf("0000:3b:02.2")}},
			[]accel.Pod{pod("a", "0000:3b:02.1"), pod("b", "0000:3b:02.2")},
			map[string]string{uidA: "a", uidB: "b"},
		},
		{
			"a GPU and a virtual function of one pod",
			map[string]podDevices{uidA: {kindGPU: {gpu["A"]}, kindRDMA: vf("0000:3b:02.1")}},
			[]accel.Pod{pod("a", "0000:3b:02.1", gpuA)},
			map[string]string{uidA: "a"},
		},
		{
			"a GPU and a virtual function of two pods",
			map[string]podDevices{uidA: {kindGPU: {gpu["A"]}, kindRDMA: vf("0000:3b:02.1")}},
			[]accel.Pod{pod("a", gpuA), pod("b", "0000:3b:02.1")},
			nil,
		},
		{
			"a GPU shared by time slicing",
			map[string]podDevices{uidA: {kindGPU: {gpu["A"]}}, uidB: {kindGPU: {gpu["A"]}}},
			[]accel.Pod{pod("a", gpuA), pod("b", gpuA)},
			nil,
		},
		{
			"a pod that has ended is still listed",
			map[string]podDevices{uidA: {kindGPU: {gpu["A"]}}},
			[]accel.Pod{pod("a", gpuA), pod("ended", gpuA)},
			nil,
		},
		{
			"MIG instances",
			map[string]podDevices{uidA: {kindGPU: {gpu["A"]}}},
			[]accel.Pod{pod("a", "MIG-"+uidA)},
			nil,
		},
		{
			"a privileged pod opens all GPUs, one of them allocated",
			map[string]podDevices{uidA: {kindGPU: {gpu["A"], gpu["B"]}}},
			[]accel.Pod{pod("b", gpuB)},
			nil,
		},
		{
			"a privileged pod beside the owner",
			map[string]podDevices{uidA: {kindRDMA: vf("0000:3b:02.1")}, uidB: {kindRDMA: vf("0000:3b:02.1")}},
			[]accel.Pod{pod("b", "0000:3b:02.1")},
			nil,
		},
		{
			"a device of unknown function beside an allocated one",
			map[string]podDevices{uidA: {kindRDMA: {nil, {"0000:3b:02.1"}}}},
			[]accel.Pod{pod("a", "0000:3b:02.1")},
			nil,
		},
		{"no devices", map[string]podDevices{uidA: {}}, []accel.Pod{pod("a", gpuA)}, nil},
		{"nothing is allocated", map[string]podDevices{uidA: {kindGPU: {gpu["A"]}}}, nil, nil},
	} {
		got := map[string]string{}
		for uid, name := range namesOfPods(c.used, c.pods) {
			if name.namespace != "ml" {
				t.Errorf("%s: namespace %q", c.name, name.namespace)
			}
			got[uid] = name.pod
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

type podAnswer struct {
	pods  []accel.Pod
	err   error
	asked int
}

func (p *podAnswer) Pods(context.Context) ([]accel.Pod, error) {
	p.asked++
	return p.pods, p.err
}

// TestPodNames: names remain while the kubelet does not answer, until the pod has ended; a kubelet that hangs is asked
// less often.
func TestPodNames(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	answer := &podAnswer{pods: []accel.Pod{{Namespace: "ml", Name: "a", Devices: []string{gpuA}}}}
	h := &host.Host{Pods: answer, Turns: access.NewTurns(), Now: func() time.Time { return now }}
	var names podNames
	round := func(uid string, issues int) string {
		t.Helper()
		pods, ok := names.list(t.Context(), h)
		found := []accel.Process{
			{PID: 1, Job: "kubernetes/" + uid, GPUs: []int{0}}, {PID: 2, Job: "slurm/7", GPUs: []int{0}},
		}
		names.apply(found, devicesOfPods(found, map[int][]string{0: {gpuA}}, nil), pods, ok)
		if len(names.failed) != issues {
			t.Errorf("issues %v, want %d", names.failed, issues)
		}
		if found[1].Pod != "" {
			t.Errorf("a job of Slurm is pod %q", found[1].Pod)
		}
		if w := found[0].Workload(); w.Namespace != found[0].Namespace || w.Pod != found[0].Pod || w.ID != uid {
			t.Errorf("%+v of %+v", w, found[0])
		}
		return found[0].Namespace + "/" + found[0].Pod
	}
	if got := round(uidA, 0); got != "ml/a" {
		t.Errorf("%q", got)
	}
	answer.err = errors.New("connection refused")
	if got := round(uidA, 1); got != "ml/a" {
		t.Errorf("%q while the kubelet restarts", got)
	}
	if got := round(uidB, 1); got != "/" {
		t.Errorf("%q of another pod", got)
	}
	answer.err = access.ErrStuck
	round(uidA, 1)
	asked := answer.asked
	if now = now.Add(podsBackOff - time.Second); round(uidA, 1) != "/" || answer.asked != asked {
		t.Errorf("asked %d times, want %d", answer.asked, asked)
	}
	answer.err, now = nil, now.Add(time.Second)
	if got := round(uidA, 0); got != "ml/a" {
		t.Errorf("%q", got)
	}
	answer.pods = append(answer.pods, accel.Pod{Namespace: "ml", Name: "b", Devices: []string{gpuA}})
	if got := round(uidA, 0); got != "/" {
		t.Errorf("%q of two pods", got)
	}
}
