//go:build e2e

package fabric

import (
	"fmt"
	"slices"
	"testing"

	"rdma_exporter/internal/host/umad"
	"rdma_exporter/internal/mad"
	"rdma_exporter/test/fabric/ibsim"
)

// ends queries both ends of each host's link and formats the answers.
func (s *subnet) ends(t *testing.T) (out []string) {
	t.Helper()
	asker := umad.NewSubnet(func(device string, _ int, _ ...uint8) (mad.Transport, error) {
		return ibsim.Dial(s.socket, device)
	})
	for i := range s.leaves * s.hosts {
		l, err := asker.Ends(t.Context(), hostName(i), 1)
		must(t, err)
		if l.FarPort == nil {
			out = append(out, "down")
			continue
		}
		both := l.Common()
		out = append(out, fmt.Sprintf("%s/%d %dX %s", l.System(), *l.FarPort, both.Widths.Lanes(), both.Speeds.Name()))
	}
	return out
}

// TestNeighbours: each host gets the switch and port at the far end of its link, and what both ends have enabled, one
// hop away.
func TestNeighbours(t *testing.T) {
	s := simulate(t, tree{spines: 1, leaves: 2, hosts: 2})
	s.manage(t)
	is := func(what string, want ...string) {
		t.Helper()
		eventually(t, what, func() string {
			if got := s.ends(t); !slices.Equal(got, want) {
				return fmt.Sprintf("%q, want %q", got, want)
			}
			return ""
		})
	}
	is("healthy", "leaf000/1 4X EDR", "leaf000/2 4X EDR", "leaf001/1 4X EDR", "leaf001/2 4X EDR")
	goOn := s.set(t, "leaf001", "1", "espeed", "1") // FDR
	is("a slow port of a switch", "leaf000/1 4X EDR", "leaf000/2 4X EDR", "leaf001/1 4X FDR", "leaf001/2 4X EDR")
	s.set(t, "leaf001", "1", "espeed", "3")
	goOn()
	goOn = s.set(t, "leaf000", "2", "width", "1")
	is("a narrow one", "leaf000/1 4X EDR", "leaf000/2 1X EDR", "leaf001/1 4X EDR", "leaf001/2 4X EDR")
	s.set(t, "leaf000", "2", "width", "3")
	goOn()
	s.do(t, "Unlink %q[1]", leafName(0))
	is("a cable that is gone", "down", "leaf000/2 4X EDR", "leaf001/1 4X EDR", "leaf001/2 4X EDR")
}
