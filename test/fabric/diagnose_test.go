//go:build e2e

package fabric

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"rdma_exporter/internal/evidence"
	"rdma_exporter/internal/evidence/fault"
)

// TestDiagnose: the commands of faults of links query the port by the node GUID, of a switch and of an adapter. Port
// GUIDs of adapters differ from node GUIDs in the simulator.
func TestDiagnose(t *testing.T) {
	s := simulate(t, tree{spines: 1, leaves: 2, hosts: 2})
	s.manage(t)
	nodes, err := s.tool("ibnetdiscover")
	must(t, err)
	for name, port := range map[string]string{"leaf001": "2", "node0002 mlx5_0": "1"} {
		guid := regexp.MustCompile(`-([0-9a-f]{16})"\t\t# "` + name + `"`).FindStringSubmatch(nodes)[1]
		for of, want := range map[string]string{
			"fabric_link_errors/symbols":    fmt.Sprintf("Lid %s port %s ", s.lid(t, name), port),
			"fabric_link_degraded/flapping": "LinkDownedCounter:",
			"fabric_link_degraded/gone":     "PhysLinkState:...................LinkUp",
			"fabric_link_degraded/rate":     "LinkWidthActive:.................4X",
		} {
			symptom, reason, _ := strings.Cut(of, "/")
			command := evidence.Annotations(map[string]string{
				"symptom": symptom, "reason": reason, "node_guid": guid, "port": port,
			}, 0, func(string) []fault.Sample { return nil })["diagnose"]
			if got, _ := s.tool("sh", "-c", command); !strings.Contains(got, want) {
				t.Errorf("%s of %s: got %q, want %q", of, name, got, want)
			}
		}
	}
}
