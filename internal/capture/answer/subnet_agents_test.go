package answer

import (
	"reflect"
	"testing"

	"rdma_exporter/internal/host"
)

func TestAnswersOfPortFEC(t *testing.T) {
	f := host.IBFEC{Mode: "RS(544,514) PLR", Counts: []host.FECCount{
		{Name: "sync_header_errors", Lane: -1},
		{Name: "corrected_symbols", Lane: 11, Value: 7},
		{Name: "corrected_symbols", Lane: -1, Value: 1<<32 - 1},
	}}
	const text = "mode: RS(544,514) PLR\nsync_header_errors: 0\ncorrected_symbols/lane11: 7\ncorrected_symbols: 4294967295\n"
	if got := string(Encode(f)); got != text {
		t.Errorf("%q", got)
	}
	if got, err := Decode[host.IBFEC]("x", []byte(text)); err != nil || !reflect.DeepEqual(got, f) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{
		"corrected_symbols: x\n", "corrected_symbols/lane: 1\n", "corrected_symbols/lane999: 1\n", "none\n",
	} {
		if got, err := Decode[host.IBFEC]("x", []byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}
