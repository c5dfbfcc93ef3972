//go:build e2e

package fabric

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/rules"
)

// diagnose is the output of the command of an alert on a port, by the node GUID of the alert: empty if it fails.
func (s *subnet) diagnose(texts map[string]alerting.RuleTexts, alert, guid, port string) string {
	command := strings.NewReplacer(`{{ reReplaceAll ":" "" $labels.node_guid }}`, guid, `{{ $labels.port }}`, port).
		Replace(texts[alert].Annotations["diagnose"])
	// The others have no port.
	command, _, _ = strings.Cut(strings.TrimPrefix(command, "{{ if $labels.port }}"), "{{ else if")
	out, _ := s.tool("sh", "-c", command)
	return out
}

// TestDiagnose: the commands of alerts on links query the port of the alert by its node GUID, of a switch and of an
// adapter. Port GUIDs of adapters differ from node GUIDs in the simulator.
func TestDiagnose(t *testing.T) {
	files, _, err := rules.Central()
	must(t, err)
	texts, err := alerting.Texts(files, []string{"central/fabric.rules.yml"})
	must(t, err)
	s := simulate(t, tree{spines: 1, leaves: 2, hosts: 2})
	s.manage(t)
	nodes, err := s.tool("ibnetdiscover")
	must(t, err)
	for name, port := range map[string]string{"leaf001": "2", "node0002 mlx5_0": "1"} {
		guid := regexp.MustCompile(`-([0-9a-f]{16})"\t\t# "` + name + `"`).FindStringSubmatch(nodes)[1]
		for alert, want := range map[string]string{
			"RDMAFabricLinkErrors":         fmt.Sprintf("Lid %s port %s ", s.lid(t, name), port),
			"RDMAFabricLinkFlapping":       "LinkDownedCounter:",
			"RDMAFabricLinkGone":           "PhysLinkState:...................LinkUp",
			"RDMAFabricLinkDegraded":       "LinkWidthActive:.................4X",
			"RDMAFabricLinkSettingsDiffer": "LinkWidthEnabled:",
		} {
			if got := s.diagnose(texts, alert, guid, port); !strings.Contains(got, want) {
				t.Errorf("%s of %s: got %q, want %q", alert, name, got, want)
			}
		}
	}
}
