// Package mixin evaluates the monitoring mixin and holds it against the rules and dashboards of the repository.
package mixin

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-jsonnet"

	"rdma_exporter/packaging/test/tool"
)

const folder = "../../mixin/"

// evaluate gives a part of the mixin with a _config.
func evaluate(config, part string) (string, error) {
	vm := jsonnet.MakeVM()
	vm.Importer(&jsonnet.FileImporter{JPaths: []string{folder}})
	return vm.EvaluateAnonymousSnippet("test.jsonnet", "((import 'mixin.libsonnet') + { _config+:: "+config+" })."+part)
}

// mixed returns the rules of the mixin, without their runbooks.
func mixed(t *testing.T, config string) []tool.Rule {
	t.Helper()
	text, err := evaluate(config, "prometheusAlerts")
	if err != nil {
		t.Fatal(err)
	}
	return withoutRunbook(tool.Rules(t, []byte(text)))
}

func withoutRunbook(rules []tool.Rule) []tool.Rule {
	for _, r := range rules {
		delete(r.Annotations, "runbook_url")
	}
	return rules
}

// TestRules: the rules of the mixin are those that the program writes, with the same changes.
func TestRules(t *testing.T) {
	program := tool.Program(t)
	for _, c := range []struct{ config, tuning string }{
		{"{}", "{}"},
		{
			`{ leaveOut: ['RDMASlowReceiver', 'RDMAExporterDown'], severities: { RDMARetriesExceeded: 'warning', 'RDMALinkErrors:warning': 'info' }, labels: { team: 'fabric' },
			  waits: { RDMAPortDown: '9m', RDMAPCIeErrors: '1m' },
			  thresholds: { 'storm-source-ratio': '40%', 'flaps-per-hour': 5, 'retransmission-ratio': '1e-3', 'lane-dark-dbm': -32.5, 'peers-unreachable-hosts': 20 } }`,
			`{leave_out: [RDMASlowReceiver, RDMAExporterDown], severities: {RDMARetriesExceeded: warning, "RDMALinkErrors:warning": info}, labels: {team: fabric},
			  waits: {RDMAPortDown: 9m, RDMAPCIeErrors: 1m},
			  thresholds: {storm-source-ratio: 40%, flaps-per-hour: 5, retransmission-ratio: 1e-3, lane-dark-dbm: -32.5, peers-unreachable-hosts: 20}}`,
		},
		{`{ selector: 'job="rdma",cluster=~"a|b"' }`, `{selector: 'job="rdma",cluster=~"a|b"'}`},
		{`{ selector: 'cluster="a"' }`, `{selector: 'cluster="a"'}`},
	} {
		got, want := mixed(t, c.config), withoutRunbook(tool.Tuned(t, program, c.tuning))
		if len(got) != len(want) || len(got) < 100 {
			t.Errorf("%s: %d rules, want %d", c.config, len(got), len(want))
			continue
		}
		for i, w := range want {
			if strings.Contains(c.config, "selector") { // queries of templates select by the labels of their alert
				w.Annotations, got[i].Annotations = nil, nil
			}
			if !reflect.DeepEqual(got[i], w) {
				t.Errorf("%s: %+v\nwant %+v", c.config, got[i], w)
			}
		}
	}
}

// TestREADME: the example of the README works, with the repository below the library path.
func TestREADME(t *testing.T) {
	readme, err := os.ReadFile(folder + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(readme), "```jsonnet\n")
	example, _, _ = strings.Cut(example, "```")
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	vendor := t.TempDir()
	if err := os.Symlink(root, filepath.Join(vendor, "rdma_exporter")); err != nil {
		t.Fatal(err)
	}
	vm := jsonnet.MakeVM()
	vm.Importer(&jsonnet.FileImporter{JPaths: []string{vendor}})
	vm.StringOutput = true
	files, err := vm.EvaluateAnonymousSnippetMulti("main.jsonnet", example)
	if err != nil || len(files) != 8 || len(tool.Rules(t, []byte(files["rdma.rules.json"]))) < 100 ||
		!strings.Contains(files["rdma-node.json"], `"panels"`) {
		t.Errorf("%d files, %v", len(files), err)
	}
}

// TestRunbooks: with a base every alert has one, without it none.
func TestRunbooks(t *testing.T) {
	for config, want := range map[string]string{
		"{}": "", "{ runbookURL: 'https://wiki.example/rdma/' }": "https://wiki.example/rdma/",
	} {
		text, err := evaluate(config, "prometheusAlerts")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range tool.Rules(t, []byte(text)) {
			if r.Alert == "" {
				continue
			}
			if want != "" {
				if r.Annotations["runbook_url"] != want+r.Alert+".md" {
					t.Errorf("%s: %s", r.Alert, r.Annotations["runbook_url"])
				}
			} else if url, ok := r.Annotations["runbook_url"]; ok {
				t.Errorf("%s: %s", r.Alert, url)
			}
		}
	}
}

// TestSets: a set can be left out; all files are imported, and promtool takes what comes of it.
func TestSets(t *testing.T) {
	for config, pattern := range map[string]string{"{ central: false }": "node", "{ node: false }": "central", "{}": "*"} {
		text, err := evaluate(config, "prometheusAlerts")
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Groups []any }
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob("../../../rules/" + pattern + "/*.rules.yml")
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		for _, f := range files {
			if strings.Contains(f, "/compat/") {
				continue
			}
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			want += strings.Count(string(b), "\n- name: ")
		}
		if len(got.Groups) != want || want == 0 {
			t.Errorf("%s: %d groups, want %d", config, len(got.Groups), want)
		}
		path := filepath.Join(t.TempDir(), "rules.json")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), tool.Promtool(t), "check", "rules", path).
			CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", config, err, out)
		}
	}
}

// TestDashboards: all of the repository, as they are there.
func TestDashboards(t *testing.T) {
	text, err := evaluate("{}", "grafanaDashboards")
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../../dashboards/*.json")
	if err != nil || len(files) != len(got) || len(files) == 0 {
		t.Errorf("%d files, %d dashboards, %v", len(files), len(got), err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var want any
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got["rdma-"+filepath.Base(f)], want) {
			t.Errorf("%s differs", f)
		}
	}
	if rules, err := evaluate("{}", "prometheusRules"); err != nil ||
		strings.Join(strings.Fields(rules), "") != `{"groups":[]}` {
		t.Errorf("%s, %v", rules, err)
	}
}

// TestRefused: what nothing is called is an error.
func TestRefused(t *testing.T) {
	for config, want := range map[string]string{
		"{ leaveOut: ['RDMAPortDwon'] }":               "RDMAPortDwon",
		"{ severities: { RDMAPortDwon: 'info' } }":     "RDMAPortDwon",
		"{ severities: { RDMAPortDown: 'page' } }":     "page",
		"{ thresholds: { 'port-down': 2 } }":           "port-down",
		"{ waits: { RDMAPortDown: 'soon' } }":          "no duration",
		"{ thresholds: { 'flaps-per-hour': 2.5 } }":    "no whole number",
		"{ thresholds: { 'storm-source-ratio': 50 } }": "at most 1",
	} {
		if _, err := evaluate(config, "prometheusAlerts"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
}
