//go:build !race

package tune

import (
	"errors"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/rules"
)

// loaded is a rule as Prometheus reads it.
type loaded struct {
	Alert, Record, Expr string
	For                 string
	Keep                string `yaml:"keep_firing_for"`
	Labels, Annotations map[string]string
}

// loadedKnown are the rules of texts: a tuning leaves most files as they are.
var loadedKnown = map[string][]loaded{}

func shippedFiles(t *testing.T) (out []File) {
	t.Helper()
	fsys, names, err := rules.Both()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, File{name, text})
	}
	return out
}

func load(t *testing.T, files []File) (out []loaded) {
	t.Helper()
	for _, f := range files {
		if _, ok := loadedKnown[string(f.Text)]; !ok {
			loadedKnown[string(f.Text)] = loadFile(t, f)
		}
		out = append(out, loadedKnown[string(f.Text)]...)
	}
	return out
}

func loadFile(t *testing.T, f File) (out []loaded) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []loaded
		}
	}
	if err := yaml.Unmarshal(f.Text, &file); err != nil {
		t.Fatalf("%s: %v\n%s", f.Name, err, f.Text)
	}
	for _, g := range file.Groups {
		if len(g.Rules) == 0 {
			t.Errorf("%s: group %s has no rules", f.Name, g.Name)
		}
		out = append(out, g.Rules...)
	}
	return out
}

// valid: Prometheus takes the files.
func valid(t *testing.T, files []File) {
	t.Helper()
	fsys, names := fstest.MapFS{}, []string{}
	for _, f := range files {
		fsys[f.Name] = &fstest.MapFile{Data: f.Text}
		names = append(names, f.Name)
	}
	e, err := alerting.New(alerting.Options{Dir: t.TempDir(), Instance: "x", Rules: fsys, Files: names})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

func apply(t *testing.T, c Tuning, files []File) []File {
	t.Helper()
	got, err := c.Apply(files)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestSplit: a file is its pieces, and their rules are those that Prometheus reads.
func TestSplit(t *testing.T) {
	for _, f := range shippedFiles(t) {
		pieces := split(string(f.Text))
		if got := pieces.join(); got != string(f.Text) {
			t.Errorf("%s is another text", f.Name)
		}
		var names []string
		for _, p := range pieces.pieces {
			if p.rule != nil {
				names = append(names, p.rule.name)
			}
		}
		var want []string
		for _, r := range load(t, []File{f}) {
			want = append(want, r.Alert+r.Record)
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s: %v, want %v", f.Name, names, want)
		}
	}
}

// TestLeaveOut: whichever alert goes, all others stay as they were.
func TestLeaveOut(t *testing.T) {
	files := shippedFiles(t)
	all := load(t, files)
	var names []string
	for _, r := range all {
		if r.Alert != "" && !slices.Contains(names, r.Alert) {
			names = append(names, r.Alert)
		}
	}
	for _, name := range names {
		got := load(t, apply(t, Tuning{LeaveOut: []string{name}}, files))
		want := slices.DeleteFunc(slices.Clone(all), func(r loaded) bool { return r.Alert == name })
		if !reflect.DeepEqual(got, want) {
			t.Errorf("without %s: %d rules, want %d", name, len(got), len(want))
		}
	}
	none := apply(t, Tuning{LeaveOut: names}, files)
	valid(t, none)
	for _, r := range load(t, none) {
		if r.Alert != "" {
			t.Errorf("%s is left", r.Alert)
		}
	}
}

// TestLeaveOutAnchor: a text that another alert shares moves to that.
func TestLeaveOutAnchor(t *testing.T) {
	c, err := Tuning{LeaveOut: []string{"RDMAPortDown"}}.check(must(shippedRules()))
	if err != nil {
		t.Fatal(err)
	}
	const gone = `  # Reason.
  - alert: RDMAPortDown
    expr: a
    annotations:
      summary: &s >-
        One.
      description: &d |-
        First.

        Second.
      runbook_url: x
`
	const kept = `  # Another.
  - alert: B
    expr: b
    annotations:
      summary: *s
      description: *d
      runbook_url: y

  - alert: C
    expr: c
    annotations:
      summary: *s
`
	parsed := split("groups:\n- name: g\n  rules:\n" + gone + "\n" + kept)
	c.leaveOut(parsed)
	want := "groups:\n- name: g\n  rules:\n\n" + strings.Replace(
		strings.Replace(kept, "*s", "&s >-\n        One.", 1), "*d",
		"&d |-\n        First.\n\n        Second.", 1)
	if got := parsed.join(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func must(r []*rule, err error) []*rule {
	if err != nil {
		panic(err)
	}
	return r
}

// TestSeverities: by alert, and by one of its severities; what reads the severity reads the shipped one.
func TestSeverities(t *testing.T) {
	files := shippedFiles(t)
	got := apply(t, Tuning{Severities: map[string]string{
		"RDMARetriesExceeded": "warning", "RDMALinkErrors:warning": "info", "RDMALinkFlapping": "critical",
		"RDMALinkFlapping:info": "info",
	}}, files)
	valid(t, got)
	was := load(t, files)
	for i, r := range load(t, got) {
		shipped := was[i].Labels["severity"]
		want := map[string]map[string]string{
			"RDMARetriesExceeded": {"critical": "warning", "warning": "warning", "info": "warning"},
			"RDMALinkErrors":      {"warning": "info", "info": "info"},
			"RDMALinkFlapping":    {"warning": "critical", "info": "info"},
		}[r.Alert]
		if want == nil {
			if !maps.Equal(r.Labels, was[i].Labels) {
				t.Errorf("%s: %v, want %v", r.Alert, r.Labels, was[i].Labels)
			}
		} else if r.Labels["severity"] != want[shipped] || r.Labels[DefaultSeverity] != shipped ||
			r.Labels["severity"] == "info" && shipped != "info" && r.Labels["drain"] != "no" {
			t.Errorf("%s, %s: %v", r.Alert, shipped, r.Labels)
		}
	}
}

// TestWaits: each rule of the alert waits so long, with or without a wait before.
func TestWaits(t *testing.T) {
	files := shippedFiles(t)
	got := apply(t, Tuning{Waits: map[string]string{"RDMAPortDown": "7m", "RDMAPCIeErrors": "1m"}}, files)
	valid(t, got)
	was := load(t, files)
	for i, r := range load(t, got) {
		want := map[string]string{"RDMAPortDown": "7m", "RDMAPCIeErrors": "1m"}[r.Alert]
		if want == "" {
			want = was[i].For
		}
		if r.For != want || r.Keep != was[i].Keep || r.Expr != was[i].Expr {
			t.Errorf("%s%s: for %q, want %q", r.Alert, r.Record, r.For, want)
		}
	}
	for name, want := range map[string]string{"RDMAPortDown=90": "duration such as", "RDMAPortDown=": "duration such as"} {
		alert, value, _ := strings.Cut(name, "=")
		if _, err := (Tuning{Waits: map[string]string{alert: value}}).Apply(files); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestThresholds: they are a file of their own, before the others, which stay as they are.
func TestThresholds(t *testing.T) {
	files := shippedFiles(t)
	got := apply(t, Tuning{Thresholds: map[string]string{
		"storm-source-ratio": "40%", "flaps-per-hour": "6", "lane-dark-dbm": "-28.5",
	}}, files)
	valid(t, got)
	if got[0].Name != ThresholdsFile || !reflect.DeepEqual(got[1:], files) {
		t.Errorf("%s, and other files", got[0].Name)
	}
	want := []loaded{
		{Record: "rdma:threshold", Expr: "vector(6)", Labels: map[string]string{"name": "flaps-per-hour"}},
		{Record: "rdma:threshold", Expr: "vector(-28.5)", Labels: map[string]string{"name": "lane-dark-dbm"}},
		{Record: "rdma:threshold", Expr: "vector(0.4)", Labels: map[string]string{"name": "storm-source-ratio"}},
	}
	if recorded := load(t, got[:1]); !reflect.DeepEqual(recorded, want) {
		t.Errorf("%+v", recorded)
	}
	for _, c := range []struct {
		name, value, want string
	}{
		{"flaps-per-hour", "0", "integer"},
		{"flaps-per-hour", "2.5", "integer"},
		{"storm-source-ratio", "50", "at most 1"},
		{"storm-source-ratio", "x", "must be a number"},
		{"storm-source-ratio", "x%", "must be a number"},
		{"lane-dark-dbm", "NaN", "must be a number"},
		{"lane-dark", "2", "unknown threshold lane-dark"},
	} {
		if _, err := (Tuning{Thresholds: map[string]string{c.name: c.value}}).Apply(nil); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: %v, want %s", c.name, c.value, err, c.want)
		}
	}
}

// TestLabels: every alert has them, no record has.
func TestLabels(t *testing.T) {
	files := shippedFiles(t)
	was := load(t, files)
	for i, r := range load(t, apply(t, Tuning{Labels: map[string]string{"team": `fabric "a"`, "site": "1"}}, files)) {
		want := maps.Clone(was[i].Labels)
		if r.Alert != "" {
			want["team"], want["site"] = `fabric "a"`, "1"
		}
		if !maps.Equal(r.Labels, want) {
			t.Errorf("%s%s: %v, want %v", r.Alert, r.Record, r.Labels, want)
		}
	}
	for name, want := range map[string]string{
		"severity": "have this label", "device": "have this label", "system": "have this label", "cluster": "external_labels",
		"1a": "invalid name",
	} {
		if _, err := (Tuning{Labels: map[string]string{name: "x"}}).Apply(files); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSelector: every series of the exporter is selected by it, in expressions and in the queries of templates, and no
// other.
func TestSelector(t *testing.T) {
	files := shippedFiles(t)
	got := apply(t, Tuning{Selector: `job="rdma", cluster=~"a|b%\\d"`}, files)
	valid(t, got)
	was := load(t, files)
	raw := func(name string) bool { return name == "up" || strings.HasPrefix(name, "rdma_") }
	for i, r := range load(t, got) {
		want, err := alerting.Select(was[i].Expr, `job="rdma",cluster=~"a|b%\\d"`, raw)
		if err != nil || r.Expr != want && strings.TrimSpace(r.Expr) != want {
			t.Errorf("%s%s: %v\n%s\nwant\n%s", r.Alert, r.Record, err, r.Expr, want)
		}
	}
	var text strings.Builder
	for _, f := range got {
		text.Write(f.Text)
	}
	for _, want := range []string{
		`(up{job="rdma",cluster=~"a|b%\\d"}) == 0`,
		`max by (cluster, instance, job, device, port) (rdma_port_info{job="rdma",cluster=~"a|b%\\d",role="compute"})`,
		`offset 10m`,
		`count_over_time(rdma_gdr_gpu_transport{job="rdma",cluster=~"a|b%\\d",state="staging"}[5m])`,
		`DCGM_FI_DEV_GPU_UTIL{UUID!=""}`,
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, bad := range []string{"job=", `a="{"`, `__name__="up"`} {
		if _, err := (Tuning{Selector: bad}).Apply(files); err == nil || !strings.Contains(err.Error(), "selector") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestUnknown: a name that nothing has is refused, and nothing is changed where nothing is asked for.
func TestUnknown(t *testing.T) {
	files := shippedFiles(t)
	if got := apply(t, Tuning{}, files); !reflect.DeepEqual(got, files) {
		t.Error("another text without a tuning")
	}
	for _, c := range []Tuning{
		{LeaveOut: []string{"RDMAPortDwon"}},
		{Severities: map[string]string{"RDMAPortDwon": "info"}},
		{Severities: map[string]string{"RDMALinkErrors:critical": "info"}},
		{Thresholds: map[string]string{"port-down": "1"}},
		{Waits: map[string]string{"RDMAPortDwon": "1m"}},
	} {
		var u *Unknown
		if _, err := c.Apply(files); !errors.As(err, &u) || len(u.Known) == 0 {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := (Tuning{Severities: map[string]string{"RDMAPortDown": "page"}}).Apply(files); err == nil ||
		!strings.Contains(err.Error(), "critical, warning, info") {
		t.Error(err)
	}
}

func TestParse(t *testing.T) {
	got, err := Parse([]byte("leave_out: [A]\nseverities: {B: info}\nwaits: {B: 3m}\nthresholds: {flaps-per-hour: 5}\nlabels: {team: x}\nselector: job=\"rdma\"\n"))
	want := Tuning{
		[]string{"A"},
		map[string]string{"B": "info"},
		map[string]string{"B": "3m"},
		map[string]string{"flaps-per-hour": "5"},
		map[string]string{"team": "x"},
		`job="rdma"`,
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := Parse(nil); err != nil || !got.isZero() {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Parse([]byte("leave: [A]\n")); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Error(err)
	}
	merged := want.Merge(Tuning{
		LeaveOut: []string{"C"}, Severities: map[string]string{"B": "warning"}, Selector: `job="x"`,
	})
	if !slices.Equal(merged.LeaveOut, []string{"A", "C"}) || merged.Severities["B"] != "warning" ||
		merged.Thresholds["flaps-per-hour"] != "5" || merged.Selector != `job="x"` || want.Severities["B"] != "info" {
		t.Errorf("%+v", merged)
	}
}
