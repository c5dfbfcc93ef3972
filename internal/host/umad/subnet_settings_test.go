package umad

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/mad"
)

// TestPortSettings: two datagrams to the local port. The table is optional; without link nothing is valid.
func TestPortSettings(t *testing.T) {
	number := func(n uint64) *uint64 { return &n }
	const info, table = "0x15 of 7 after 0 hops", "0x17 of 7 after 0 hops"
	for _, c := range []struct {
		name  string
		agent fakeAgent
		want  host.IBPortSettings
		fails bool
		asked []string
	}{
		{
			name: "all", agent: fakeAgent{up: true}, asked: []string{info, table},
			want: host.IBPortSettings{
				MTU: number(4096), DataVLs: number(4), VLs: []uint8{0, 1, 2, 3, 0, 1, 2, 3, 15, 0, 0, 0, 0, 0, 0, 15},
			},
		},
		{
			name: "no table", agent: fakeAgent{up: true, status: map[uint16]uint16{slToVL: 3 << 2}},
			asked: []string{info, table},
			want:  host.IBPortSettings{MTU: number(4096), DataVLs: number(4)},
		},
		{name: "link down", asked: []string{info}},
		{name: "an error", agent: fakeAgent{up: true, status: map[uint16]uint16{attrPortInfo: 1}}, fails: true},
		{name: "umad refuses", agent: fakeAgent{refuses: errors.New("permission denied")}, fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.agent.subnet().PortSettings(t.Context(), "mlx5_0", 7)
			if c.fails {
				if err == nil {
					t.Errorf("%+v", got)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v, %v", got, err)
			}
			if !slices.Equal(c.agent.asked, c.asked) || len(c.asked) > host.PortSettingsRequests {
				t.Errorf("asked %q", c.agent.asked)
			}
			if !slices.Equal(c.agent.classes, []uint8{mad.ClassSubnetDirected}) || !c.agent.closed {
				t.Errorf("classes %v, closed: %v", c.agent.classes, c.agent.closed)
			}
		})
	}
}
