package replay

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot/accel"
)

type podList []accel.Pod

func (l podList) Pods(context.Context) ([]accel.Pod, error) { return l, nil }

type noPods struct{ error }

func (e noPods) Pods(context.Context) ([]accel.Pod, error) { return nil, e.error }

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
	_, err := answer.Decode[[]accel.Pod](answer.PodsPath, []byte("nameonly: x\n"))
	if !errors.Is(err, access.ErrMalformed) {
		t.Error(err)
	}
}
