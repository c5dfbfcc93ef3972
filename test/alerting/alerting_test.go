//go:build e2e

// Package alerting tests the path from a recorded fault to a notification, through Debian's Prometheus and
// Alertmanager: with a central Prometheus that scrapes the exporter, and with the exporter's own engine.
package alerting

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/machine"
	"rdma_exporter/test/port"
	"rdma_exporter/test/program"
)

// faults are recorded machines and their expected alerts. The rules are the embedded ones; wait replaces a `for` that
// is too long for a test, in both set-ups.
var faults = []struct{ machine, alert, wait string }{
	{"downshift-one", "RDMALinkDegraded", "1m"}, // instead of 5m
	{"hgx-h200-roce-storm", "RDMAPFCStormSource", ""},
	{"gdr-staging-live", "RDMAGPUDirectStaging", "1m"}, // instead of 15m
}

func fixture(name string) string { return filepath.Join(repository, "fixtures/sysfs", name+".txtar") }

// TestOneNotification: each fault has one notification in each set-up, of the same alert.
func TestOneNotification(t *testing.T) {
	t.Parallel()
	exporter := program.Exporter(t)
	for _, f := range faults {
		t.Run(f.machine, func(t *testing.T) {
			t.Parallel()
			const instance = "node:10879" // the same in both set-ups
			central, own, files := newPager(t, port.Any), newPager(t, port.Any), writeRules(t, f.alert, f.wait)
			central.start()
			own.start()
			node := start(t, port.Any, exporter, "--replay="+fixture(f.machine), "--alerting.instance="+instance,
				"--alerting.interval=5s", "--alerting.rule-files="+files, "--alerting.alertmanager-url=http://"+own.address,
				"--replay.send-alerts")
			prometheus(t, central.address, files, target{node.address, instance})

			alone := own.one(t, f.alert, 3*time.Minute, 0)
			scraped := central.one(t, f.alert, 3*time.Minute, 30*time.Second)
			own.one(t, f.alert, 0, 0)
			if len(alone.Alerts) != len(scraped.Alerts) || len(alone.Alerts) == 0 {
				t.Fatalf("%d alerts of the exporter, %d of Prometheus", len(alone.Alerts), len(scraped.Alerts))
			}
			for i := range alone.Alerts {
				labels := maps.Clone(alone.Alerts[i].Labels)
				if labels["replay"] != "true" {
					t.Errorf("not marked as a replay: %v", labels)
				}
				delete(labels, "replay")
				if got, want := fmt.Sprint(labels), fmt.Sprint(scraped.Alerts[i].Labels); got != want {
					t.Errorf("labels of the exporter's alert  %s\nlabels of Prometheus' alert %s", got, want)
				}
				t.Logf("%v: %s", labels, alone.Alerts[i].Annotations["summary"])
			}
		})
	}
}

// TestAlertmanagerGone: an alert that fires while Alertmanager is down for a minute is still notified.
func TestAlertmanagerGone(t *testing.T) {
	t.Parallel()
	exporter := program.Exporter(t)
	p := newPager(t, port.Held(t)) // rejects connections until the Alertmanager starts
	// The recording is longer than the `for` of the alert: it fires when the exporter starts.
	node := start(t, port.Any, exporter, "--replay="+fixture("downshift-one"), "--alerting.interval=5s",
		"--alerting.alertmanager-url=http://"+p.address, "--replay.send-alerts")
	eventually(t, 30*time.Second, func() error { return has(t, node.address, "RDMALinkDegraded", "firing") })
	time.Sleep(time.Minute)
	p.start()
	p.one(t, "RDMALinkDegraded", 15*time.Second, 30*time.Second)
}

// TestKilled: after a kill, the pending time of an alert continues, and a firing alert is neither resolved nor notified
// again.
func TestKilled(t *testing.T) {
	t.Parallel()
	exporter := program.Exporter(t)
	// The address is reserved: the restarted exporter is the same instance.
	p, address, state, host := newPager(t, port.Any), port.Held(t), t.TempDir(), unpack(t, "dgx-h100-ib")
	p.start()
	run := func() *process {
		return start(t, address, exporter, "--path.rootfs="+host, "--state.dir="+state, "--alerting.interval=5s",
			"--alerting.alertmanager-url=http://"+p.address)
	}
	const alert, wait = "RDMAPortDown", 2 * time.Minute
	first := run()
	eventually(t, 30*time.Second, func() error { return has(t, address, "RDMAWatchdog", "firing") })
	files := filepath.Join(host, "sys/class/infiniband/mlx5_0/ports/1")
	must(t, os.WriteFile(filepath.Join(files, "state"), []byte("1: DOWN\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(files, "phys_state"), []byte("2: Polling\n"), 0o600))
	eventually(t, time.Minute, func() error { return has(t, address, alert, "pending") })
	time.Sleep(time.Minute)
	first.end(syscall.SIGKILL)
	time.Sleep(5 * time.Second)
	restarted := time.Now()
	second := run()
	// What the alert waited before the kill counts, on however slow a machine: it is active since before the restart.
	var since time.Time
	eventually(t, time.Minute, func() (err error) { since, err = activeSince(t, address, alert, "pending"); return err })
	if !since.Before(restarted) {
		t.Errorf("pending since %s, after the restart at %s", since, restarted)
	}
	n := p.one(t, alert, wait+time.Minute, 5*time.Second)
	if took := n.came.Sub(since); took < wait {
		t.Errorf("notified %s after it became active, before %s", took, wait)
	}

	second.end(syscall.SIGKILL)
	time.Sleep(75 * time.Second)
	run()
	p.one(t, alert, 0, 30*time.Second)
	must(t, has(t, address, alert, "firing"))
}

// has returns an error unless the exporter has the alert in a state.
func has(t *testing.T, address, alert, state string) error {
	t.Helper()
	_, err := activeSince(t, address, alert, state)
	return err
}

// activeSince is since when the condition of an alert holds, an error unless the exporter has the alert in a state.
func activeSince(t *testing.T, address, alert, state string) (time.Time, error) {
	t.Helper()
	b, err := get(t.Context(), "http://"+address+"/api/v1/alerts")
	if err != nil {
		return time.Time{}, err
	}
	var answer struct {
		Data struct {
			Alerts []struct {
				Labels   map[string]string
				State    string
				ActiveAt time.Time
			}
		}
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return time.Time{}, err
	}
	for _, a := range answer.Data.Alerts {
		if a.Labels["alertname"] == alert && a.State == state {
			return a.ActiveAt, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is not %s: %s", alert, state, b)
}

// unpack unpacks a capture into files.
func unpack(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, machine.Unpack(fixture(name), dir))
	return dir
}
