//go:build e2e

package alerting

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"rdma_exporter/rules"
	"rdma_exporter/test/port"
	"rdma_exporter/test/program"
)

// notification is what Alertmanager posts to a webhook.
type notification struct {
	Status string
	Alerts []struct {
		Status              string
		Labels, Annotations map[string]string
		StartsAt            time.Time
	}
	GroupLabels map[string]string

	came time.Time
}

// pager is the receiver of notifications, and its Alertmanager.
type pager struct {
	address string // of the Alertmanager, known once it is started unless reserved
	start   func() *process

	mu    sync.Mutex
	calls []notification
}

// newPager writes the configuration of an Alertmanager that listens on an address. Each changed group of alerts is
// notified again within seconds.
func newPager(t *testing.T, address string) *pager {
	t.Helper()
	p := &pager{address: address}
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n := notification{came: time.Now()}
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
			t.Error(err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.calls = append(p.calls, n)
	}))
	t.Cleanup(hook.Close)
	dir := t.TempDir()
	config := filepath.Join(dir, "alertmanager.yml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, `
route:
  receiver: hook
  group_by: [alertname]
  group_wait: 1s
  group_interval: 5s
  repeat_interval: 1h
receivers:
  - name: hook
    webhook_configs: [{url: %q, send_resolved: true}]
`, hook.URL), 0o600))
	alertmanager := program.Installed(t, "prometheus-alertmanager", "test/alerting/packages.sh")
	p.start = func() *process {
		s := start(t, p.address, alertmanager, "--config.file="+config, "--storage.path="+dir, "--cluster.listen-address=")
		p.address = s.address
		return s
	}
	return p
}

// of returns the notifications of an alert.
func (p *pager) of(alert string) (out []notification) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.calls {
		if n.GroupLabels["alertname"] == alert {
			out = append(out, n)
		}
	}
	return out
}

// count returns an error unless there are n notifications of an alert.
func (p *pager) count(alert string, n int) error {
	if got := len(p.of(alert)); got != n {
		return fmt.Errorf("%d notifications of %s, want %d", got, alert, n)
	}
	return nil
}

// settle waits until Alertmanager has looked at its log of notifications again: its last notification is in it then.
func (p *pager) settle(t *testing.T) {
	t.Helper()
	asked := func() string {
		page, err := get(t.Context(), "http://"+p.address+"/metrics")
		must(t, err)
		return regexp.MustCompile(`(?m)^alertmanager_nflog_queries_total .*`).FindString(string(page))
	}
	before := asked()
	eventually(t, 30*time.Second, func() error {
		if now := asked(); now == "" || now == before {
			return fmt.Errorf("queries of the log: %q", now)
		}
		return nil
	})
}

// one waits for the notification of an alert, and then for longer, to check that there is no other.
func (p *pager) one(t *testing.T, alert string, limit, longer time.Duration) notification {
	t.Helper()
	eventually(t, limit, func() error {
		if len(p.of(alert)) == 0 {
			return fmt.Errorf("no notification of %s", alert)
		}
		return nil
	})
	time.Sleep(longer)
	calls := p.of(alert)
	if len(calls) != 1 || calls[0].Status != "firing" {
		t.Fatalf("notifications of %s: %+v", alert, calls)
	}
	return calls[0]
}

// target is an exporter and its label instance.
type target struct{ address, instance string }

// prometheus starts a central Prometheus that scrapes exporters.
func prometheus(t *testing.T, alertmanager, ruleFiles string, targets ...target) {
	t.Helper()
	dir := t.TempDir()
	var scraped strings.Builder
	for _, x := range targets {
		fmt.Fprintf(&scraped, "{targets: [%q], labels: {instance: %q}}, ", x.address, x.instance)
	}
	config := filepath.Join(dir, "prometheus.yml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, `
global: {scrape_interval: 5s, evaluation_interval: 5s}
rule_files: [%q]
alerting: {alertmanagers: [{static_configs: [{targets: [%q]}]}]}
scrape_configs:
  - job_name: rdma_exporter
    static_configs: [%s]
`, ruleFiles, alertmanager, &scraped), 0o600))
	start(t, port.Any, program.Installed(t, "prometheus", "test/alerting/packages.sh"), "--config.file="+config,
		"--storage.tsdb.path="+dir)
}

// writeRules writes the embedded rules into a directory, with a shorter `for` of one alert unless wait is empty, and
// returns a glob.
func writeRules(t *testing.T, alert, wait string) string {
	t.Helper()
	dir := t.TempDir()
	files, names, err := rules.Node()
	must(t, err)
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		must(t, err)
		if wait != "" {
			text = regexp.MustCompile(`(alert: `+alert+`\n(?:.*\n)*?\s+for: )\w+`).ReplaceAll(text, []byte("${1}"+wait))
		}
		must(t, os.WriteFile(filepath.Join(dir, path.Base(name)), text, 0o600))
	}
	return filepath.Join(dir, "*.yml")
}
