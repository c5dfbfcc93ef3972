package alerting_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/rules"
)

// identity are labels whose values may repeat between clusters.
var identity = []string{"instance", "job"}

var (
	byInText = regexp.MustCompile(`\b(by|on) \(([^)]*)\)`)
	selects  = regexp.MustCompile(`(cluster=|instance=|job=)%q`)
)

// TestClusterIsKept: whatever distinguishes instance or job also distinguishes cluster, in expressions and in queries
// of annotations. Instances of two clusters may have equal names.
func TestClusterIsKept(t *testing.T) {
	for _, set := range sets {
		e := shipped(t, set.load)
		if len(e.RecordingRules()) == 0 || len(e.Rules()) == 0 {
			t.Errorf("%s: %d records, %d alerts", set.folder, len(e.RecordingRules()), len(e.Rules()))
		}
		for _, r := range e.RecordingRules() {
			clusterKept(t, r.Name, r.Expr)
		}
		for _, r := range e.Rules() {
			clusterKept(t, r.Name, r.Expr)
			clusterInText(t, r)
		}
	}
}

// clusterKept checks aggregations and joins.
func clusterKept(t *testing.T, rule, text string) {
	t.Helper()
	parser.Inspect(parse(t, text), func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.AggregateExpr:
			if metricOf(n.Expr) == rules.ThresholdMetric { // one for all clusters
				return nil
			}
			labelled(t, rule, n.Grouping, n.Without)
			if len(n.Grouping) == 0 && !n.Without {
				t.Errorf("%s: aggregates over all clusters: %s", rule, n)
			}
		case *parser.BinaryExpr:
			if m := n.VectorMatching; m != nil && (m.On || len(m.MatchingLabels) > 0) {
				labelled(t, rule, m.MatchingLabels, !m.On)
			}
		}
		return nil
	})
}

// labelled requires cluster next to labels that distinguish exporters, and not among omitted labels.
func labelled(t *testing.T, rule string, names []string, left bool) {
	t.Helper()
	if has := slices.Contains(names, "cluster"); has && left || !has && !left && splitsExporters(names) {
		t.Errorf("%s: by, on, without or ignoring (%s): cluster %v, left out %v", rule, strings.Join(names, ", "), has, left)
	}
}

// splitsExporters reports whether labels distinguish exporters.
func splitsExporters(names []string) bool {
	return slices.ContainsFunc(identity, func(l string) bool { return slices.Contains(names, l) })
}

// clusterInText checks the queries in summary and description: a query that selects an instance or a job selects the
// cluster, and one that keeps labels keeps cluster.
func clusterInText(t *testing.T, r alerting.Rule) {
	t.Helper()
	for _, text := range r.Annotations {
		for line := range strings.Lines(text) {
			found := selects.FindAllString(line, -1)
			if has := slices.Contains(found, "cluster=%q"); len(found) > 0 && !has {
				t.Errorf("%s: a query selects %v and no cluster: %s", r.Name, found, line)
			}
			for _, m := range byInText.FindAllStringSubmatch(line, -1) {
				names := strings.Fields(strings.ReplaceAll(m[2], ",", " "))
				if splitsExporters(names) && !slices.Contains(names, "cluster") && !strings.Contains(line, "cluster") {
					t.Errorf("%s: %s in a query without a cluster: %s", r.Name, m[0], line)
				}
			}
		}
	}
}

// TestReplayOutlastsOthers: no alert of a node is kept longer than RDMAReplay, which inhibits the alerts of a replay.
func TestReplayOutlastsOthers(t *testing.T) {
	e := shipped(t, rules.Node)
	var replay, longest time.Duration
	for _, r := range e.Rules() {
		if r.Name == "RDMAReplay" {
			replay = r.KeepFiringFor
		}
		longest = max(longest, r.KeepFiringFor)
	}
	if replay == 0 || replay < longest {
		t.Errorf("RDMAReplay is kept for %s, others for %s", replay, longest)
	}
}

// TestAlertmanagerKeepsCluster: the shipped configuration groups and inhibits within a cluster.
func TestAlertmanagerKeepsCluster(t *testing.T) {
	b, err := os.ReadFile("../../packaging/alertmanager/alertmanager.yml")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^ *(equal|group_by): \[(.*)\]$`).FindAllStringSubmatch(string(b), -1)
	if named := regexp.MustCompile(`(?m)^ *(equal|group_by):`).FindAll(b, -1); len(found) < 5 || len(found) != len(named) {
		t.Fatalf("%d lists on a line of their own, %d in all", len(found), len(named))
	}
	for _, m := range found {
		if !slices.Contains(strings.Split(m[2], ", "), "cluster") {
			t.Errorf("%s has no cluster", m[0])
		}
	}
}
