package answer

import (
	"errors"
	"reflect"
	"testing"

	"rdma_exporter/internal/host/access"
)

func FuzzLaunchers(f *testing.F) {
	f.Add([]byte("slurmd: unlimited\nsshd: 8388608\ncrio: !permission\n...\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := Decode[LauncherSearch](LaunchersPath, b)
		if err != nil {
			if !errors.Is(err, access.ErrMalformed) {
				t.Error(err)
			}
			return
		}
		if again, err := Decode[LauncherSearch](LaunchersPath, Encode(l)); err != nil || !reflect.DeepEqual(again, l) {
			t.Errorf("%+v became %+v, %v", l, again, err)
		}
	})
}
