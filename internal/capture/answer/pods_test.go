package answer

import (
	"errors"
	"testing"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot/accel"
)

func FuzzPods(f *testing.F) {
	f.Add([]byte("ml/train-0: 0000:3b:02.1 GPU-8f6e0a1b-2c3d-4e5f-8a9b-0c1d2e3f4a5b\na/b: \n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		found, err := Decode[[]accel.Pod](PodsPath, b)
		if err != nil {
			if !errors.Is(err, access.ErrMalformed) {
				t.Error(err)
			}
			return
		}
		again, err := Decode[[]accel.Pod](PodsPath, Encode(found))
		if err != nil || len(again) != len(found) {
			t.Errorf("%+v became %+v, %v", found, again, err)
		}
	})
}
