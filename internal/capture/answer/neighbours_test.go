package answer

import (
	"reflect"
	"testing"

	"rdma_exporter/internal/host"
)

// TestLinkAnswers: the node description of the far end is arbitrary text and is restored unchanged.
func TestLinkAnswers(t *testing.T) {
	n := func(v uint64) *uint64 { return &v }
	sets := func(widths, speeds uint64) host.IBSets { return host.IBSets{Widths: n(widths), Speeds: n(speeds)} }
	enabled := host.IBEnd{Enabled: sets(0x13, 0x7f)} // all that older captures contain
	for _, l := range []host.IBLink{
		{},
		{Own: enabled, SMLID: n(1)},
		{Own: enabled, Far: host.IBEnd{Enabled: sets(2, 0)}, FarType: n(2), FarPort: n(31)},
		{Own: host.IBEnd{Supported: sets(1, 2), Enabled: sets(3, 4), Active: sets(5, 6)}, Far: host.IBEnd{Supported: sets(7, 8), Enabled: sets(9, 10), Active: sets(11, 12)}, FarType: n(2), FarPort: n(31), FarLID: n(5), FarGUID: "b83f:d203:00a1:c0de", FarDescription: "MF0;ib-leaf-1:MQM9700/U1"},
		{FarPort: n(1), FarGUID: "b83f:d203:00a1:c0de", FarDescription: "a: b%\n-- c --\x00\xff"},
		{FarPort: n(1), FarGUID: "b83f:d203:00a1:c0de"},
	} {
		got, err := Decode[host.IBLink]("x", Encode(l))
		if err != nil || !reflect.DeepEqual(got, l) {
			t.Errorf("%+v, %v, want %+v", got, err, l)
		}
	}
	for _, text := range []string{"far_port: x\n", "far_description: %zz\n", "far_port\n"} {
		if l, err := Decode[host.IBLink]("x", []byte(text)); err == nil {
			t.Errorf("%q: %+v", text, l)
		}
	}
}
