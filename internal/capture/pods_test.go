package capture

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot"
)

type podList []snapshot.Pod

func (l podList) Pods(context.Context) ([]snapshot.Pod, error) { return l, nil }

type noPods struct{ error }

func (e noPods) Pods(context.Context) ([]snapshot.Pod, error) { return nil, e.error }

func TestPodsRoundTrip(t *testing.T) {
	ask := func(h *host.Host) { _, _ = h.Pods.Pods(t.Context()) }
	for _, want := range []podList{{}, {
		{Namespace: "default", Name: "vf", Devices: []string{"0000:3b:02.1"}},
		{Namespace: "ml", Name: "train-0.worker", Devices: []string{"0000:3b:02.2", "GPU-8f6e0a1b-2c3d-4e5f-8a9b-0c1d2e3f4a5b"}},
	}} {
		got, err := replayed(t, &host.Host{Pods: want}, ask).Pods(t.Context())
		if err != nil || !reflect.DeepEqual(podList(got), want) {
			t.Errorf("%v, %v, want %v", err, got, want)
		}
	}
	if _, err := replayed(t, &host.Host{Pods: noPods{access.Denied("kubelet.sock")}}, ask).
		Pods(t.Context()); !access.NotPermitted(err) {
		t.Error(err)
	}
	if got, err := replayed(t, &host.Host{}, func(*host.Host) {}).Pods(t.Context()); got != nil || err != nil {
		t.Errorf("a capture without pods: %v, %v", got, err)
	}
	if NewRecorder(&host.Host{}).Host().Pods != nil {
		t.Error("a host without the socket is asked")
	}
	if _, err := decodePods([]byte("nameonly: x\n")); !errors.Is(err, access.ErrMalformed) {
		t.Error(err)
	}
}

func TestAnonymisePods(t *testing.T) {
	const gpu = "GPU-8f6e0a1b-2c3d-4e5f-8a9b-0c1d2e3f4a5b"
	rec := NewRecorder(&host.Host{Pods: podList{
		{Namespace: "secret-team", Name: "llama-0", Devices: []string{"0000:3b:02.1", gpu}},
		{Namespace: "secret-team", Name: "llama-1", Devices: []string{"0000:3b:02.2"}},
	}})
	_, _ = rec.Host().Pods.Pods(t.Context())
	rec.EndRound(0)
	a := rec.Archive(Meta{Time: time.Unix(0, 0)})
	Anonymise(a)
	text, err := Format(a)
	const want = "namespace-1/pod-1: 0000:3b:02.1 GPU-00000001-0000-4000-8000-000000000000\nnamespace-1/pod-2: 0000:3b:02.2\n"
	if err != nil || !strings.Contains(string(text), want) || strings.Contains(string(text), "llama") {
		t.Errorf("%v\n%s", err, text)
	}
}

func FuzzPods(f *testing.F) {
	f.Add([]byte("ml/train-0: 0000:3b:02.1 GPU-8f6e0a1b-2c3d-4e5f-8a9b-0c1d2e3f4a5b\na/b: \n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		found, err := decodePods(b)
		if err != nil {
			if !errors.Is(err, access.ErrMalformed) {
				t.Error(err)
			}
			return
		}
		again, err := decodePods(encodePods(found))
		if err != nil || len(again) != len(found) {
			t.Errorf("%+v became %+v, %v", found, again, err)
		}
	})
}
