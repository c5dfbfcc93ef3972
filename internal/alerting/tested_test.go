//go:build !race

package alerting_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/rules"
)

// promtoolTests is the part of a file in rules/tests that is checked.
type promtoolTests struct {
	Files []string `yaml:"rule_files"`
	Order []string `yaml:"group_eval_order"`
	Tests []struct {
		Alerts []struct {
			Name string `yaml:"alertname"`
			Exp  []struct {
				Labels map[string]string `yaml:"exp_labels"`
			} `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
		Exprs []struct {
			Expr    string `yaml:"expr"`
			Samples []struct {
				Labels string `yaml:"labels"`
			} `yaml:"exp_samples"`
		} `yaml:"promql_expr_test"`
	} `yaml:"tests"`
}

// TestAlertsAreTested: promtool tests cover each alert at each of its severities, with its annotations at one of them,
// and a time at which it does not fire. Files with rules of several groups specify their order.
func TestAlertsAreTested(t *testing.T) {
	paths, err := filepath.Glob("../../rules/tests/*.test.yml")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	texts, fires, silent := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var f promtoolTests
		if err := yaml.Unmarshal(b, &f); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if len(f.Files) > 1 && len(f.Order) == 0 {
			t.Errorf("%s: has no group_eval_order: promtool takes groups at random", path)
		}
		for _, test := range f.Tests {
			seen := map[string]bool{}
			for _, a := range test.Alerts {
				for _, e := range a.Exp {
					texts[a.Name], fires[a.Name+" "+e.Labels["severity"]], seen[a.Name] = true, true, true
				}
				silent[a.Name] = silent[a.Name] || len(a.Exp) == 0
			}
			for _, e := range test.Exprs {
				for _, s := range e.Samples {
					if name, severity := labelOf(s.Labels, "alertname"), labelOf(s.Labels, "severity"); name != "" {
						fires[name+" "+severity], seen[name] = true, true
					}
				}
			}
			// What a test has seen firing has ended if it later expects nothing, or only others.
			for _, e := range test.Exprs {
				if !strings.Contains(e.Expr, "ALERTS") {
					continue
				}
				there := map[string]bool{}
				for _, s := range e.Samples {
					there[labelOf(s.Labels, "alertname")] = true
				}
				for name := range seen {
					silent[name] = silent[name] ||
						!there[name] && (labelOf(e.Expr, "alertname") == "" || labelOf(e.Expr, "alertname") == name)
				}
			}
		}
	}
	for _, set := range sets {
		files, names, err := set.load()
		if err != nil {
			t.Fatal(err)
		}
		e, err := alerting.New(alerting.Options{Dir: t.TempDir(), Instance: instance, Rules: files, Files: names})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range e.Rules() {
			if r.Labels["severity"] == "none" {
				continue
			}
			if !texts[r.Name] {
				t.Errorf("%s: no test holds its text", r.Name)
			}
			if !fires[r.Name+" "+r.Labels["severity"]] {
				t.Errorf("%s, %s: fires in no test", r.Name, r.Labels["severity"])
			}
			if !silent[r.Name] {
				t.Errorf("%s: is silent in no test", r.Name)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// labelOf returns the value of a label in {name="value",…}.
func labelOf(series, name string) string {
	_, rest, found := strings.Cut(series, name+`="`)
	if !found {
		return ""
	}
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// TestNeedsOfAllRules: every alert requires a metric of this host.
func TestNeedsOfAllRules(t *testing.T) {
	files, names, err := rules.Node()
	if err != nil {
		t.Fatal(err)
	}
	alerts, err := alerting.Needs(files, names)
	if err != nil || len(alerts) < 50 {
		t.Fatalf("%d alerts, %v", len(alerts), err)
	}
	for _, a := range alerts {
		if len(a.Need.Metrics()) == 0 {
			t.Errorf("%s needs nothing", a.Name)
		}
		for _, m := range a.Need.Metrics() {
			if strings.Contains(m, ":") {
				t.Errorf("%s needs %s, which no exporter has: a rule records it", a.Name, m)
			}
		}
	}
}
