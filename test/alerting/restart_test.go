//go:build e2e

package alerting

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/port"
	"rdma_exporter/test/program"
)

// TestAlertmanagerRestarted: Alertmanager is stopped while an alert fires, twice: the alert ends in the meantime, and
// starts in the meantime. Each change is notified once, within 15s of the next start. (One that is killed does not know
// what it has notified: its log is written at the end.)
func TestAlertmanagerRestarted(t *testing.T) {
	t.Parallel()
	exporter, host := program.Exporter(t), unpack(t, "dgx-h100-ib")
	rules := filepath.Join(t.TempDir(), "x.yml")
	const alert = "Down"
	must(t, os.WriteFile(rules, []byte("groups: [{name: x, rules: [{alert: Down, expr: 'rdma_port_state_id{device=\"mlx5_0\"} != 4', labels: {severity: none, drain: \"no\"}}]}]\n"), 0o600))
	first, second := newPager(t, port.Held(t)), newPager(t, port.Any)
	running := first.start()
	second.start()
	node := start(t, port.Any, exporter, "--path.rootfs="+host, "--state.dir="+t.TempDir(), "--alerting.interval=1s",
		"--alerting.rule-files="+rules,
		"--alerting.alertmanager-url=http://"+first.address, "--alerting.alertmanager-url=http://"+second.address)
	state := func(text string) {
		must(t, os.WriteFile(filepath.Join(host, "sys/class/infiniband/mlx5_0/ports/1/state"), []byte(text+"\n"), 0o600))
	}
	changes := func(n int, limit time.Duration) time.Duration {
		t.Helper()
		begin := time.Now()
		eventually(t, limit, func() error { return first.count(alert, n) })
		took := time.Since(begin)
		eventually(t, 10*time.Second, func() error { return second.count(alert, n) })
		return took
	}
	state("1: DOWN")
	changes(1, 30*time.Second)
	for i, now := range []string{"4: ACTIVE", "1: DOWN"} {
		first.settle(t)
		running.end(syscall.SIGTERM)
		state(now)
		eventually(t, 10*time.Second, func() error { return second.count(alert, i+2) })
		time.Sleep(25 * time.Second) // requests fail
		running = first.start()
		// group_interval is 5s.
		t.Logf("%s: notified %s after the start of Alertmanager",
			now, changes(i+2, 20*time.Second).Round(100*time.Millisecond))
	}
	time.Sleep(30 * time.Second)
	for _, p := range []*pager{first, second} {
		calls := p.of(alert)
		if len(calls) != 3 || calls[0].Status != "firing" || calls[1].Status != "resolved" || calls[2].Status != "firing" {
			t.Errorf("%+v", calls)
		}
	}
	must(t, has(t, node.address, alert, "firing"))
}
