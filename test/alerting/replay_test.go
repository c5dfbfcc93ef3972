//go:build e2e

package alerting

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"rdma_exporter/test/port"
	"rdma_exporter/test/program"
)

// held is an alert in Alertmanager.
type held struct {
	Labels map[string]string
	Status struct {
		State       string
		InhibitedBy []string `json:"inhibitedBy"`
	}
}

// alerts queries an Alertmanager for the alerts with a name and an instance.
func alerts(t *testing.T, alertmanager, name, instance string) (out []held, err error) {
	t.Helper()
	b, err := get(t.Context(), "http://"+alertmanager+"/api/v2/alerts")
	if err != nil {
		return nil, err
	}
	var all []held
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	for _, a := range all {
		if a.Labels["alertname"] == name && a.Labels["instance"] == instance {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no %s of %s in %s", name, instance, b)
	}
	return out, nil
}

// TestReplayIsInhibited: with the shipped Alertmanager configuration, all alerts from a central Prometheus on an
// exporter in replay are inhibited except RDMAReplay, and none on another exporter.
func TestReplayIsInhibited(t *testing.T) {
	t.Parallel()
	const recorded, live, alert = "replay:10879", "live:10879", "RDMALinkDegraded"
	exporter := program.Exporter(t)
	config := filepath.Join(repository, "packaging/alertmanager/alertmanager.yml")
	alertmanager := start(t, port.Any, program.Installed(t, "prometheus-alertmanager", "test/alerting/packages.sh"),
		"--config.file="+config, "--storage.path="+t.TempDir(), "--cluster.listen-address=").address
	replay := start(t, port.Any, exporter, "--replay="+fixture("downshift-one"), "--no-alerting")
	host := start(t, port.Any, exporter, "--path.rootfs="+unpack(t, "dgx-h100-ib"),
		"--state.dir="+t.TempDir(), "--no-alerting")
	prometheus(t, alertmanager, writeRules(t, alert, "30s"), target{replay.address, recorded}, target{host.address, live})

	for _, c := range []struct {
		name, instance string
		inhibited      bool
	}{
		{"RDMAReplay", recorded, false},
		{"RDMAWatchdog", recorded, true},
		{alert, recorded, true},
		{"RDMAWatchdog", live, false},
	} {
		eventually(t, 2*time.Minute, func() error {
			all, err := alerts(t, alertmanager, c.name, c.instance)
			for _, a := range all {
				if inhibited := len(a.Status.InhibitedBy) > 0 && a.Status.State == "suppressed"; inhibited != c.inhibited {
					return fmt.Errorf("%v: %+v, want inhibited: %v", a.Labels, a.Status, c.inhibited)
				}
			}
			return err
		})
	}
	if _, err := alerts(t, alertmanager, "RDMAReplay", live); err == nil {
		t.Error("RDMAReplay fires for a host")
	}
}
