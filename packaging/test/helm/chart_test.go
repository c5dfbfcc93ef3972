// Package chart lints the Helm chart with Helm's own packages, holds what it renders against goldens, and against the
// types, schemas and enumerations of Kubernetes and of prometheus-operator.
package chart

import (
	"flag"
	"io"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/releaseutil"
)

const (
	folder    = "../../helm/rdma-exporter"
	testdata  = "../../helm/testdata"
	namespace = "monitoring"
)

var update = flag.Bool("update", false, "write the goldens")

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetOutput(io.Discard) // Helm tells of each symbolic link
	os.Exit(m.Run())
}

// sets returns the value sets by name.
func sets(t *testing.T) map[string]chartutil.Values {
	t.Helper()
	names, err := filepath.Glob(testdata + "/*.values.yaml")
	if err != nil || len(names) < 5 {
		t.Fatalf("%v, %v", names, err)
	}
	out := map[string]chartutil.Values{}
	for _, name := range names {
		if out[strings.TrimSuffix(filepath.Base(name), ".values.yaml")], err = chartutil.ReadValuesFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render gives the files of the templates, without what is empty.
func render(c *chart.Chart, values chartutil.Values) (map[string]string, error) {
	v, err := chartutil.ToRenderValues(c, values,
		chartutil.ReleaseOptions{Name: "rdma-exporter", Namespace: namespace, IsInstall: true, Revision: 1},
		chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, v)
	maps.DeleteFunc(files, func(_, text string) bool { return strings.TrimSpace(text) == "" })
	return files, err
}

// document is one object that the chart renders.
type document struct{ template, text string }

// documents returns all objects of a value set, by template and in their order there.
func documents(t *testing.T, c *chart.Chart, values chartutil.Values) (out []document) {
	t.Helper()
	files, err := render(c, values)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, "NOTES.txt") {
			continue
		}
		manifests := releaseutil.SplitManifests(files[name])
		for i := range len(manifests) {
			for key, text := range manifests {
				if strings.HasSuffix(key, "-"+itoa(i)) {
					out = append(out, document{filepath.Base(name), strings.TrimSpace(text) + "\n"})
				}
			}
		}
	}
	return out
}

// TestLint is `helm lint --strict`.
func TestLint(t *testing.T) {
	for name, values := range sets(t) {
		l := lint.All(folder, values, namespace, true)
		for _, m := range l.Messages {
			if m.Severity >= support.WarningSev {
				t.Errorf("%s: %s", name, m)
			}
		}
	}
}

// TestGolden: what is rendered, but for rules and dashboards, of which the names.
func TestGolden(t *testing.T) {
	c := load(t)
	for name, values := range sets(t) {
		var b strings.Builder
		for _, d := range documents(t, c, values) {
			text := d.text
			switch d.template {
			case "rules.yaml":
				text, _, _ = strings.Cut(text, "\nspec:")
				text += "\nspec: # the file"
			case "dashboards.yaml":
				text, _, _ = strings.Cut(text, "\ndata:")
				text += "\ndata: # the file"
			}
			b.WriteString("---\n# " + d.template + "\n" + strings.TrimSpace(text) + "\n")
		}
		golden(t, name+".golden.yaml", b.String())
		files, err := render(c, values)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".notes.txt", files["rdma-exporter/templates/NOTES.txt"])
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join(testdata, name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: go test . -update writes it", err)
	}
	if got != string(want) {
		t.Errorf("%s differs from what is rendered: go test . -update writes it again, read the diff", path)
	}
}

// TestSchema: values that make no sense are refused, with their names.
func TestSchema(t *testing.T) {
	c := load(t)
	for text, want := range map[string]string{
		"{prot: 1}":                   "prot",
		"{port: 0}":                   "port",
		"{privileges: {optic: true}}": "optic",
		"{monitor: {kind: Probe}}":    "kind",
		"{resources: {limits: {cpu: 1, memory: 1Gi}}}":                 "cpu",
		"{resources: {limits: {memory: 1G}}}":                          "memory",
		"{state: {hostPath: var}}":                                     "hostPath",
		"{alerting: {alertmanagers: [localhost:9093]}}":                "alertmanagers",
		"{image: {digest: abc}}":                                       "digest",
		"{securityContext: {privileged: true}}":                        "privileged",
		"{podSecurityContext: {runAsUser: 7}}":                         "runAsUser",
		"{extraArgs: [-v]}":                                            "extraArgs",
		"{monitor: {kind: ServiceMonitor}, service: {enabled: false}}": "service.enabled=true",
	} {
		values, err := chartutil.ReadValues([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := render(c, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
