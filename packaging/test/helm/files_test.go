package chart

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"rdma_exporter/packaging/test/tool"
)

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v", pattern, err)
	}
	return names
}

// TestRules: each rule file of the repository is one PrometheusRule with the same content, links to runbooks apart,
// which promtool takes.
func TestRules(t *testing.T) {
	promtool := tool.Promtool(t)
	var rules []string
	dir := t.TempDir()
	for _, d := range documents(t, load(t), chartutil.Values{}) {
		if r, ok := object(t, d).(*monitoringv1.PrometheusRule); ok {
			var spec struct{ Spec json.RawMessage }
			if err := yaml.Unmarshal([]byte(d.text), &spec); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, r.Name+".yml")
			if err := os.WriteFile(path, spec.Spec, 0o644); err != nil {
				t.Fatal(err)
			}
			rules = append(rules, path)
		}
	}
	files := slices.Concat(glob(t, "../../../rules/node/*.rules.yml"), glob(t, "../../../rules/central/*.rules.yml"))
	if len(rules) != len(files) {
		t.Errorf("%d files, %d PrometheusRules", len(files), len(rules))
	}
	for _, file := range files {
		set, base := filepath.Base(filepath.Dir(file)), strings.TrimSuffix(filepath.Base(file), ".rules.yml")
		got, want := decode(t, filepath.Join(dir, "rdma-exporter-"+set+"-"+strings.ReplaceAll(base, "_", "-")+".yml")),
			decode(t, file)
		if withoutRunbooks(want); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is not what is rendered", file)
		}
	}
	if out, err := exec.CommandContext(t.Context(), promtool, append([]string{"check", "rules"}, rules...)...).
		CombinedOutput(); err != nil {
		t.Errorf("%s check rules: %v\n%s", promtool, err, out)
	}
}

func decode(t *testing.T, path string) (v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// withoutRunbooks takes runbook_url out of the annotations of a rule file: no address is known.
func withoutRunbooks(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "runbook_url")
		for _, x := range v {
			withoutRunbooks(x)
		}
	case []any:
		for _, x := range v {
			withoutRunbooks(x)
		}
	}
}

// TestRunbookURL: with an address rules and dashboards are those that the program writes with it, and the exporters
// have it.
func TestRunbookURL(t *testing.T) {
	bin := tool.Program(t)
	for _, base := range []string{"https://wiki.example/rdma/", "https://git.example/docs/%s.md"} {
		dir := t.TempDir()
		for _, args := range [][]string{{"rules", "--set=node"}, {"rules", "--set=central"}, {"dashboards"}} {
			if out, err := exec.CommandContext(t.Context(), bin, append(args, "--runbook-url="+base, "--output="+dir)...).
				CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		same := map[string]int{}
		for _, d := range documents(t, load(t), chartutil.Values{"runbookURL": base}) {
			switch o := object(t, d).(type) {
			case *monitoringv1.PrometheusRule:
				name := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(o.Name, "rdma-exporter-"), "node-"), "central-")
				var spec struct{ Spec any }
				if err := yaml.Unmarshal([]byte(d.text), &spec); err != nil {
					t.Fatal(err)
				}
				if want := decode(t, filepath.Join(dir, strings.ReplaceAll(name, "-", "_")+".rules.yml")); !reflect.DeepEqual(
					spec.Spec, want,
				) {
					t.Errorf("%s: %s is not what the program writes", base, o.Name)
				}
				same["rules"]++
			case *corev1.ConfigMap:
				for name, text := range o.Data {
					want, err := os.ReadFile(filepath.Join(dir, strings.TrimPrefix(name, "rdma-")))
					if err != nil || text != strings.TrimSuffix(string(want), "\n") {
						t.Errorf("%s: %s is not what the program writes: %v", base, name, err)
					}
					same["dashboards"]++
				}
			case *appsv1.DaemonSet:
				if !slices.Contains(o.Spec.Template.Spec.Containers[0].Args, "--runbook-url="+base) {
					t.Errorf("%q", o.Spec.Template.Spec.Containers[0].Args)
				}
				same["exporter"]++
			}
		}
		if same["rules"] < 20 || same["dashboards"] < 6 || same["exporter"] != 1 {
			t.Errorf("%v", same)
		}
	}
}

// TestDashboards: each dashboard of the repository is in a ConfigMap, byte for byte, of a size that Kubernetes takes.
func TestDashboards(t *testing.T) {
	got := map[string]string{}
	for _, d := range documents(t, load(t), chartutil.Values{}) {
		if m, ok := object(t, d).(*corev1.ConfigMap); ok && m.Labels["grafana_dashboard"] == "1" {
			for name, text := range m.Data {
				got[name] = text
			}
			if len(d.text) >= 1<<20 {
				t.Errorf("%s has %d bytes", m.Name, len(d.text))
			}
		}
	}
	files := glob(t, "../../../dashboards/*.json")
	for _, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got["rdma-"+filepath.Base(file)] != strings.TrimSuffix(string(want), "\n") {
			t.Errorf("%s is not what is rendered", file)
		}
	}
	if len(files) != len(got) {
		t.Errorf("%d files, %d rendered", len(files), len(got))
	}
}

// TestNodeProblemDetector: the ConfigMap has the plugin as it is in the repository, and is there only where it is asked
// for.
func TestNodeProblemDetector(t *testing.T) {
	c := load(t)
	for _, on := range []bool{false, true} {
		found := false
		for _, d := range documents(t, c, chartutil.Values{"nodeProblemDetector": map[string]any{"configMap": on}}) {
			m, ok := object(t, d).(*corev1.ConfigMap)
			if !ok || d.template != "node-problem-detector.yaml" { // a dashboard has the name rdma-fabric.json, too
				continue
			}
			for _, name := range []string{"rdma-fabric.json", "rdma-fabric.sh"} {
				want, err := os.ReadFile("../../node-problem-detector/" + name)
				if err != nil {
					t.Fatal(err)
				}
				if got, ok := m.Data[name]; ok {
					found = true
					if strings.TrimSpace(got) != strings.TrimSpace(string(want)) {
						t.Errorf("%s is not what is rendered", name)
					}
				}
			}
		}
		if found != on {
			t.Errorf("configMap %t: rendered %t", on, found)
		}
	}
}

// TestPackage: `helm package` follows the links, takes nothing else along, and what it packs renders the same.
func TestPackage(t *testing.T) {
	c := load(t)
	archive, err := chartutil.Save(c, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	packed, err := loader.Load(archive)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range packed.Files {
		if ext := filepath.Ext(f.Name); strings.HasPrefix(f.Name, "files/") && ext != ".json" && ext != ".yml" &&
			f.Name != "files/node-problem-detector/rdma-fabric.sh" || strings.Contains(f.Name, "/tests/") ||
			strings.Contains(f.Name, "/compat/") {
			t.Errorf("%s is in the package", f.Name)
		}
	}
	if !reflect.DeepEqual(documents(t, packed, chartutil.Values{}), documents(t, c, chartutil.Values{})) {
		t.Error("the package renders something else")
	}
}

// TestStaged: the chart of a release renders the same, and has its version.
func TestStaged(t *testing.T) {
	to := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "packaging/dist/chart.sh", to, "1.2.3-rc.1")
	cmd.Dir = "../../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	staged, err := loader.Load(filepath.Join(to, "rdma-exporter"))
	if err != nil {
		t.Fatal(err)
	}
	c := load(t)
	c.Metadata.Version, c.Metadata.AppVersion = "1.2.3-rc.1", "1.2.3-rc.1"
	if !reflect.DeepEqual(staged.Metadata, c.Metadata) {
		t.Errorf("Chart.yaml: %+v, want %+v", staged.Metadata, c.Metadata)
	}
	if !reflect.DeepEqual(documents(t, staged, chartutil.Values{}), documents(t, c, chartutil.Values{})) {
		t.Error("the staged chart renders something else")
	}
	if links, _ := filepath.Glob(filepath.Join(to, "rdma-exporter/files/*/*/*.go")); len(links) > 0 {
		t.Errorf("%v are in the chart", links)
	}
}

// maxSecret is what the API server takes of a Secret: corev1.MaxSecretSize.
const maxSecret = 1 << 20

// TestReleaseFits: Helm keeps a release, chart and manifests, in a Secret: JSON, gzip, base64.
func TestReleaseFits(t *testing.T) {
	c := load(t)
	files, err := render(c, chartutil.Values{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(map[string]any{
		"chart": c, "manifest": strings.Join(slices.Sorted(maps.Values(files)), "---\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	var z bytes.Buffer
	w, err := gzip.NewWriterLevel(&z, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	size := base64.StdEncoding.EncodedLen(z.Len())
	t.Logf("%d KiB of %d", size>>10, maxSecret>>10)
	if size > maxSecret*7/8 {
		t.Errorf("%d bytes: there is little room below %d", size, maxSecret)
	}
}
