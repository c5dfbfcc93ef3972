package capture

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot"
)

type processes []snapshot.Process

func (p processes) Processes(context.Context, []int, bool) ([]snapshot.Process, bool, error) {
	return p, false, nil
}

func TestProcessesRoundTrip(t *testing.T) {
	memlock := uint64(65536)
	want := []snapshot.Process{
		{PID: 9, Verbs: []string{"uverbs1"}, Unlimited: true, Env: map[string]string{}},
		{
			PID: 100, Command: "python3", GPUs: []int{0, 3}, Verbs: []string{"uverbs0", "uverbs1"}, NCCL: "2.22.3",
			HasNCCL: true, Plugin: true, LockedMemory: &memlock, Job: "slurm/77",
			Env:  map[string]string{"NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1", "SLURM_JOB_ID": "77"},
			Conf: map[string]string{"NCCL_IB_TC": "106"}, Topology: `<system><cpu numaid="0"></cpu></system>`,
		},
		{PID: 101, GPUs: []int{1}, Verbs: []string{"uverbs1"}, HasNCCL: true, Mover: true, Cut: true, DMABUFs: []snapshot.DMABUFs{{Exporter: "drm", Buffers: 1, Bytes: 4096}, {Exporter: "nv_dmabuf", Buffers: 3, Bytes: 12 << 20}}, Env: map[string]string{}, Conf: map[string]string{}},
	}
	src := &host.Host{Processes: processes(want)}
	rec := NewRecorder(src)
	if _, _, err := rec.Host().Processes.Processes(t.Context(), nil, false); err != nil {
		t.Fatal(err)
	}
	rec.EndRound(0)
	src.Processes = processes(want[1:])
	if _, _, err := rec.Host().Processes.Processes(t.Context(), nil, false); err != nil {
		t.Fatal(err)
	}
	rec.EndRound(15 * time.Second)
	text, err := Format(rec.Archive(Meta{Time: time.Unix(0, 0)}))
	if err != nil {
		t.Fatal(err)
	}
	a, err := Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	p, err := Play(a, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for i, at := range p.Times() {
		if err := p.Seek(at); err != nil {
			t.Fatal(err)
		}
		got, refused, err := p.Host().Processes.Processes(t.Context(), nil, false)
		if err != nil || refused || !reflect.DeepEqual(got, want[i:]) {
			t.Errorf("round %d: %+v %v %v", i, got, refused, err)
		}
	}
}

func TestProcessesGarbled(t *testing.T) {
	for _, text := range []string{"gpus: x\n", "nonsense\n", "locked_memory: -1\n", "other: 1\n", "conf_NCCL_A: 1\n"} {
		if _, err := decodeProcess("processes/1", []byte(text)); !errors.Is(err, access.ErrMalformed) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, env := range []map[string]string{
		{"NCCL_DEBUG": "a\nb: c"}, {"NCCL_DEBUG": "a\r\x1b[2J\u0085\x7f\x00\xff"}, {"NCCL_A\njob: slurm/1\nB": "1"},
	} {
		b := encodeProcess(snapshot.Process{Env: env})
		p, err := decodeProcess("processes/1", b)
		if strings.Count(string(b), "\n") != 1 || strings.IndexFunc(string(b[:len(b)-1]), unicode.IsControl) >= 0 ||
			p.Job != "" || err != nil {
			t.Errorf("%q: %+v %v", b, p, err)
		}
	}
}

// TestAnonymiseProcess: settings of the site are removed. A pod and a container have one pseudonym in all processes.
func TestAnonymiseProcess(t *testing.T) {
	const (
		pod, otherPod = "4dc3109b-e593-4fae-9077-8e4835b180e1", "0f1e2d3c-4b5a-4968-8776-655443322110"
		container     = "b83fd250a1c4"
	)
	a := &Archive{Meta: Meta{Hostname: "gpu-1"}, Rounds: []Round{{Entries: []Entry{
		{Path: "processes/7", Data: []byte(
			"command: ann's job\nverbs: uverbs0\nsettings: read\nconf_NCCL_CONF_X: /home/ann\nconf_NCCL_IB_TC: 106\nenv_NCCL_COMM_ID: gpu-9:5000\nenv_NCCL_IB_HCA: =mlx5_0:1\nenv_NCCL_NET_GDR_LEVEL: PIX\nenv_NCCL_SOCKET_IFNAME: eth0\nenv_NCCL_TOPO_FILE: /home/ann/topo.xml\nenv_NCCL_X: 10.0.0.9\n",
		)},
		{Path: "processes/8", Data: []byte("job: kubernetes/" + pod + "\ncontainer: " + container + "\n")},
		{Path: "processes/9", Data: []byte("job: kubernetes/" + pod + "\n")},
		{Path: "processes/10", Data: []byte("job: kubernetes/" + otherPod + "\ncontainer: 00112233aabb\n")},
		{Path: "processes/11", Data: []byte("job: kubernetes/ann\ncontainer: ann\n")},
		{Path: "processes/12", Data: []byte("job: slurm/77\nuser: ann\n")},
	}}}}
	Anonymise(a)
	var got []string
	for _, e := range a.Rounds[0].Entries {
		got = append(got, string(e.Data))
	}
	want := []string{
		"command: x\nverbs: uverbs0\nenv_NCCL_IB_HCA: =mlx5_0:1\nenv_NCCL_NET_GDR_LEVEL: PIX\nenv_NCCL_SOCKET_IFNAME: eth0\nsettings: read\nconf_NCCL_IB_TC: 106\n",
		"job: kubernetes/00000002-0000-4000-b000-000000000000\ncontainer: 000000000002\n",
		"job: kubernetes/00000002-0000-4000-b000-000000000000\n",
		"job: kubernetes/00000001-0000-4000-b000-000000000000\ncontainer: 000000000001\n",
		"job: x\ncontainer: 000000000003\n",
		"job: slurm/77\n",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func FuzzDecodeProcess(f *testing.F) {
	f.Add([]byte("command: a\nsettings: read\nconf_NCCL_A: 1\ntopology: <system></system>\n"))
	f.Add([]byte("gpus: 0 1\nverbs: uverbs0\nnccl: 2.22.3\nenv_NCCL_DEBUG: INFO\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := decodeProcess("processes/1", b)
		if err != nil {
			return
		}
		if _, err := decodeProcess("processes/1", encodeProcess(p)); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	})
}
