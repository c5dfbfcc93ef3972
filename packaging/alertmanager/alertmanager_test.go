// Package alertmanager_test tests the shipped configuration of Alertmanager.
package alertmanager_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// inhibitRule is one of the shipped configuration of Alertmanager.
type inhibitRule struct {
	Source []string `yaml:"source_matchers"`
	Target []string `yaml:"target_matchers"`
	Equal  []string `yaml:"equal"`
}

// matches reports whether an alert has all that matchers ask for.
func matches(t *testing.T, matchers []string, alert model.LabelSet) bool {
	t.Helper()
	for _, text := range matchers { // of the same form and meaning as PromQL's
		selector, err := parser.NewParser(parser.Options{}).ParseMetricSelector("{" + text + "}")
		must(t, err)
		for _, m := range selector {
			if !m.Matches(string(alert[model.LabelName(m.Name)])) {
				return false
			}
		}
	}
	return true
}

// inhibits reports whether a rule inhibits target, as Alertmanager does: a label missing in both is equal, and an alert
// that matches both sides inhibits none that do.
func (r inhibitRule) inhibits(t *testing.T, source, target model.LabelSet) bool {
	t.Helper()
	return matches(t, r.Source, source) && matches(t, r.Target, target) &&
		(!matches(t, r.Target, source) || !matches(t, r.Source, target)) &&
		!slices.ContainsFunc(r.Equal,
			func(name string) bool { return source[model.LabelName(name)] != target[model.LabelName(name)] })
}

// alertOf makes the labels of an alert: "NAME label=value …".
func alertOf(text string) model.LabelSet {
	f := strings.Fields(text)
	out := model.LabelSet{model.AlertNameLabel: model.LabelValue(f[0])}
	for _, pair := range f[1:] {
		name, value, _ := strings.Cut(pair, "=")
		out[model.LabelName(name)] = model.LabelValue(value)
	}
	return out
}

// TestInhibits: by the shipped configuration, maintenance of a host silences all of that host, and the far ends of its
// links; the place of lost peers silences the alerts of the hosts that report them.
func TestInhibits(t *testing.T) {
	text, err := os.ReadFile("alertmanager.yml")
	must(t, err)
	var config struct {
		Rules []inhibitRule `yaml:"inhibit_rules"`
	}
	must(t, yaml.Unmarshal(text, &config))
	const (
		host   = "RDMAMaintenance reason=host cluster=c instance=gpu-1:10879 job=rdma_exporter severity=info drain=no"
		single = "RDMAMaintenance reason=host instance=gpu-1:10879 job=rdma_exporter severity=info drain=no"
		placed = "RDMARetriesExceeded reason=peers cluster=c scope=leaf severity=warning drain=no"
		link   = "RDMAMaintenance reason=link cluster=c instance=mgmt:10880 job=rdma_fabric node_guid=0:1 port=7 severity=info drain=no"
	)
	for _, c := range []struct {
		source, target string
		want           bool
	}{
		{host, "RDMAPortDown cluster=c instance=gpu-1:10879 job=rdma_exporter device=mlx5_0 port=1 severity=critical drain=evict", true},
		{host, "RDMAExporterDown cluster=c instance=gpu-1:10879 job=rdma_exporter severity=warning drain=no", true},
		{host, "RDMALinkErrors cluster=c instance=gpu-1:10879 job=rdma_exporter device=mlx5_0 port=1 severity=info drain=no", true},
		{host, "RDMAPortDown cluster=c instance=gpu-2:10879 job=rdma_exporter device=mlx5_0 port=1 severity=critical drain=evict", false},
		{host, "RDMAPortDown cluster=d instance=gpu-1:10879 job=rdma_exporter device=mlx5_0 port=1 severity=critical drain=evict", false},
		{host, "RDMAPortDown instance=gpu-1:10879 job=rdma_exporter device=mlx5_0 port=1 severity=critical drain=evict", false},
		{single, "RDMAPortDown instance=gpu-1:10879 job=rdma_exporter device=mlx5_0 port=1 severity=critical drain=evict", true},
		{host, "NodeDown cluster=c instance=gpu-1:9100 job=node severity=critical", false},
		{host, "RDMAWatchdog cluster=c instance=gpu-1:10879 job=rdma_exporter severity=none drain=no", false},
		{single, "RDMAWatchdog severity=none drain=no", false},
		{host, host, false},
		{host, "RDMAPortDown cluster=c leaf=leaf1 scope=leaf severity=critical drain=cordon", false},
		{link, "RDMAFabricLinkDegraded cluster=c instance=mgmt:10880 job=rdma_fabric node_guid=0:1 port=7 severity=warning drain=no", true},
		{link, "RDMAFabricLinkDegraded cluster=c instance=mgmt:10880 job=rdma_fabric node_guid=0:1 port=8 severity=warning drain=no", false},
		{link, "RDMAFabricLinkDegraded cluster=d instance=mgmt:10880 job=rdma_fabric node_guid=0:1 port=7 severity=warning drain=no", false},
		{link, "RDMAFabricSwitchUnreachable cluster=c instance=mgmt:10880 job=rdma_fabric node_guid=0:1 severity=critical drain=no", false},
		{link, link, false},
		{placed, "RDMARetriesExceeded reason=peers cluster=c job=rdma_exporter severity=warning drain=no", true},
		{placed, "RDMARetriesExceeded reason=unreachable cluster=c instance=gpu-1:10879 scope=port severity=warning drain=no", true},
		{placed, "RDMARetriesExceeded reason=unreachable cluster=d instance=gpu-1:10879 scope=port severity=warning drain=no", false},
		{placed, "RDMARetriesExceeded reason=link_trouble cluster=c instance=gpu-1:10879 scope=port severity=critical drain=cordon", false},
		{strings.Replace(placed, "warning", "info", 1), "RDMARetriesExceeded reason=peers cluster=c severity=warning drain=no", false},
		{placed, placed, false},
	} {
		got := slices.ContainsFunc(config.Rules,
			func(r inhibitRule) bool { return r.inhibits(t, alertOf(c.source), alertOf(c.target)) })
		if got != c.want {
			t.Errorf("%s\ninhibits %s: %v", c.source, c.target, got)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
