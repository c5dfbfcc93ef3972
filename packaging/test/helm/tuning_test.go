package chart

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/yaml"

	"rdma_exporter/packaging/test/tool"
)

// TestTuning: the chart changes the rules as the program does. Queries of templates keep the selector that the labels
// of the alert are.
func TestTuning(t *testing.T) {
	c, program := load(t), tool.Program(t)
	for name, set := range map[string]struct{ values, tuning string }{
		"all but selector": {
			`leaveOut: [RDMASlowReceiver, RDMAExporterDown]
severities: {RDMARetriesExceeded: warning, "RDMALinkErrors:warning": info}
waits: {RDMAPortDown: 9m, RDMAPCIeErrors: 1m}
thresholds: {storm-source-ratio: 40%, flaps-per-hour: 5, retransmission-ratio: "1e-3", lane-dark-dbm: -32.5, peers-unreachable-hosts: 20}
labels: {team: fabric}`,
			`leave_out: [RDMASlowReceiver, RDMAExporterDown]
severities: {RDMARetriesExceeded: warning, "RDMALinkErrors:warning": info}
waits: {RDMAPortDown: 9m, RDMAPCIeErrors: 1m}
thresholds: {storm-source-ratio: 40%, flaps-per-hour: 5, retransmission-ratio: "1e-3", lane-dark-dbm: -32.5, peers-unreachable-hosts: 20}
labels: {team: fabric}`,
		},
		"selector": {`selector: 'job="rdma",cluster=~"a|b$"'`, `selector: 'job="rdma",cluster=~"a|b$"'`},
		"nothing":  {`{}`, `{}`},
	} {
		values := chartutil.Values{}
		if err := yaml.Unmarshal([]byte(set.values), &values); err != nil {
			t.Fatal(err)
		}
		var got []tool.Rule
		for _, d := range documents(t, c,
			chartutil.Values{"prometheusRules": map[string]any{"tuning": map[string]any(values)}}) {
			if d.template != "rules.yaml" {
				continue
			}
			var o struct{ Spec json.RawMessage }
			if err := yaml.Unmarshal([]byte(d.text), &o); err != nil {
				t.Fatal(err)
			}
			got = append(got, tool.Rules(t, o.Spec)...)
		}
		want := tool.Tuned(t, program, set.tuning)
		// The chart has the files by name, the program in the order of evaluation.
		for _, rules := range [][]tool.Rule{got, want} {
			slices.SortStableFunc(rules, func(a, b tool.Rule) int {
				return strings.Compare(fmt.Sprint(a.Alert, a.Record, a.Labels, a.Expr),
					fmt.Sprint(b.Alert, b.Record, b.Labels, b.Expr))
			})
		}
		if len(got) != len(want) || len(got) < 100 {
			t.Errorf("%s: %d rules, want %d", name, len(got), len(want))
			continue
		}
		for i, w := range want {
			if name == "selector" {
				w.Annotations, got[i].Annotations = nil, nil
			}
			if !reflect.DeepEqual(got[i], w) {
				t.Errorf("%s: %+v\nwant %+v", name, got[i], w)
			}
		}
	}
}

func TestTuningRefused(t *testing.T) {
	c := load(t)
	for text, want := range map[string]string{
		"{leaveOut: [RDMAPortDwon]}":             "there is no alert RDMAPortDwon",
		"{severities: {RDMAPortDwon: info}}":     "there is no alert RDMAPortDwon",
		"{severities: {RDMAPortDown: page}}":     "RDMAPortDown",
		"{thresholds: {port-down: 2}}":           "there is no threshold port-down",
		"{waits: {RDMAPortDown: 90}}":            "waits",
		"{thresholds: {flaps-per-hour: 2.5}}":    "no whole number",
		"{thresholds: {storm-source-ratio: 50}}": "at most 1",
		"{thresholds: {lane-dark-dbm: low}}":     "no number",
		"{labels: {severity: x}}":                "severity",
	} {
		values, err := chartutil.ReadValues([]byte("{prometheusRules: {tuning: " + text + "}}"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := render(c, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
