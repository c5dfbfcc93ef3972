package peers

import (
	"fmt"
	"slices"
	"testing"

	"rdma_exporter/internal/snapshot/qp"
)

func TestOfConnections(t *testing.T) {
	ids := []qp.Connection{{QPN: 17, Port: 1, Peer: near}, {QPN: 18, Port: 1, Peer: near}, {QPN: 19, Port: 2, Peer: far}}
	pairs := []qp.QueuePair{
		{QPN: 17, Port: 1},
		{QPN: 18, Port: 1},
		{QPN: 19, Port: 2},
		{QPN: 20, Port: 2},
		{QPN: 21, Port: 3},
	}
	for name, c := range map[string]struct {
		ids   []qp.Connection
		pairs []qp.QueuePair
		want  []string // port, known, connected, peers
	}{
		"nothing":                    {nil, nil, nil},
		"no queue pairs":             {nil, []qp.QueuePair{}, nil},
		"not listed":                 {ids, nil, []string{"1 2 ? 1", "2 1 ? 1"}},
		"listed":                     {ids, pairs, []string{"1 2 2 1", "2 1 2 1", "3 0 1 0"}},
		"none of rdma_cm":            {nil, pairs[4:], []string{"3 0 1 0"}},
		"an ID that is connecting":   {ids[:2], pairs[:1], []string{"1 1 1 1"}},
		"an ID of no port":           {[]qp.Connection{{QPN: 17, Peer: near}}, nil, nil},
		"no queue pair of these IDs": {ids, []qp.QueuePair{}, nil},
	} {
		var got []string
		for _, p := range OfConnections(nic, c.ids, c.pairs) {
			connected := "?"
			if p.Connected != nil {
				connected = fmt.Sprint(*p.Connected)
			}
			got = append(got, fmt.Sprintf("%d %d %s %d", p.Port, p.Known, connected, p.Peers))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
