package evidence

import (
	"strings"
	"testing"

	"rdma_exporter/internal/evidence/fault"
)

// TestLimitsOfASite: texts and expressions have what the site records as threshold, and else the default.
func TestLimitsOfASite(t *testing.T) {
	for name, c := range map[string]struct {
		recorded []fault.Sample
		lossy    string // limit of a share
		hot      string // end of an expression
		paused   string
	}{
		"none":     {nil, "5%", "> 70", "receive pause > 30%"},
		"recorded": {[]fault.Sample{{Value: 0.25}}, "25%", "> 0.25", "receive pause > 25%"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := ""
			query := func(expr string) []fault.Sample {
				asked += expr + "\n"
				if strings.HasPrefix(expr, "max(rdma:threshold{") {
					return c.recorded
				}
				return nil
			}
			of := func(symptom, reason string) map[string]string {
				return Annotations(map[string]string{
					"symptom": symptom, "reason": reason, "device": "mlx5_0", "port": "1", "priority": "0",
				}, 0.5, query)
			}
			if got := of("traffic_on_lossy_priority", "priority")["limit"]; got != c.lossy {
				t.Errorf("lossy traffic: limit %q, want %q", got, c.lossy)
			}
			if of("transceiver_hot", "no_limit"); !strings.Contains(asked, c.hot+"\n") {
				t.Errorf("hot: %s, want %s", asked, c.hot)
			}
			if got := of("pfc_storm_source", "storm")["evidence"]; !strings.Contains(got, c.paused) {
				t.Errorf("%s, want %s", got, c.paused)
			}
		})
	}
}
