package anonymise

import (
	"strings"
	"testing"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/snapshot/accel"
)

func TestAnonymisePods(t *testing.T) {
	const gpu = "GPU-8f6e0a1b-2c3d-4e5f-8a9b-0c1d2e3f4a5b"
	pods := answer.Encode([]accel.Pod{
		{Namespace: "secret-team", Name: "llama-0", Devices: []string{"0000:3b:02.1", gpu}},
		{Namespace: "secret-team", Name: "llama-1", Devices: []string{"0000:3b:02.2"}},
	})
	a := &capture.Archive{Rounds: []capture.Round{{Entries: []capture.Entry{{Path: answer.PodsPath, Data: pods}}}}}
	Archive(a)
	text, err := capture.Format(a)
	const want = "namespace-1/pod-1: 0000:3b:02.1 GPU-00000001-0000-4000-8000-000000000000\nnamespace-1/pod-2: 0000:3b:02.2\n"
	if err != nil || !strings.Contains(string(text), want) || strings.Contains(string(text), "llama") {
		t.Errorf("%v\n%s", err, text)
	}
}
