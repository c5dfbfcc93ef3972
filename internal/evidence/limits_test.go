package evidence

import (
	"strings"
	"testing"
)

// TestLimitsOfASite: texts and expressions have what the site records as threshold, and else the default.
func TestLimitsOfASite(t *testing.T) {
	for name, c := range map[string]struct {
		recorded []Sample
		lossy    string // limit of a share
		hot      string // end of an expression
		paused   string
	}{
		"none":     {nil, "5%", "> 70", "receive pause > 30%"},
		"recorded": {[]Sample{{Value: 0.25}}, "25%", "> 0.25", "receive pause > 25%"},
	} {
		t.Run(name, func(t *testing.T) {
			query := func(expr string) []Sample {
				if strings.HasPrefix(expr, "max(rdma:threshold{") {
					return c.recorded
				}
				return nil
			}
			labels := map[string]string{
				"symptom": "traffic_on_lossy_priority", "reason": "priority", "device": "mlx5_0", "port": "1", "priority": "0",
			}
			if got := Annotations(labels, 0.5, query)["limit"]; got != c.lossy {
				t.Errorf("lossy traffic: limit %q, want %q", got, c.lossy)
			}
			f := &Fault{labels, 0, query}
			if got := f.expand(measures["transceiver_hot/no_limit"]); !strings.HasSuffix(got, c.hot) {
				t.Errorf("hot: %s, want %s", got, c.hot)
			}
			var e lines
			f.addPausingPorts(&e)
			if got := f.limits(text(e)); !strings.Contains(got, c.paused) {
				t.Errorf("%s, want %s", got, c.paused)
			}
		})
	}
}
