// Package compose holds the try-out of one host against the Compose specification, and the files that it mounts against
// the tools that read them.
package compose

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"sigs.k8s.io/yaml"

	"rdma_exporter/packaging/test/tool"
)

const folder = "../../compose"

// load reads the file as `docker compose config` does, the schema and all variables included.
func load(t *testing.T, env ...string) *types.Project {
	t.Helper()
	o, err := cli.NewProjectOptions([]string{folder + "/compose.yaml"}, cli.WithEnv(env), cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// inContainer returns where a path of a service lies in the repository.
func inContainer(t *testing.T, s types.ServiceConfig, name string) string {
	t.Helper()
	for _, v := range s.Volumes {
		if v.Type == types.VolumeTypeBind && (name == v.Target || strings.HasPrefix(name, v.Target+"/")) {
			return v.Source + strings.TrimPrefix(name, v.Target)
		}
	}
	t.Fatalf("%s: nothing is mounted at %s", s.Name, name)
	return ""
}

// flagOf returns the value of a flag of a service.
func flagOf(t *testing.T, s types.ServiceConfig, name string) string {
	t.Helper()
	for _, arg := range s.Command {
		if value, ok := strings.CutPrefix(arg, name+"="); ok {
			return value
		}
	}
	t.Fatalf("%s has no %s", s.Name, name)
	return ""
}

// TestMounts: what is mounted is there, and nobody writes to it.
func TestMounts(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range load(t).Services {
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly ||
				v.Source != "/sys" && !strings.HasPrefix(v.Source, root+"/") {
				t.Errorf("%s: %+v, %v", s.Name, v, err)
			}
		}
		if s.NetworkMode != "host" && !strings.HasPrefix(s.Name, "rules-") {
			t.Errorf("%s is in network %s", s.Name, s.NetworkMode)
		}
	}
}

// buildExporter builds the exporter.
func buildExporter(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "rdma_exporter")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/rdma_exporter")
	build.Dir, build.Env = "../../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// TestExporter: the demo by default, this host when that is asked for, and arguments that the program knows.
func TestExporter(t *testing.T) {
	program := buildExporter(t)
	for want, env := range map[string][]string{"demo": nil, "": {"RDMA_REPLAY="}} {
		s := load(t, env...).Services["exporter"]
		if got := flagOf(t, s, "--replay"); got != want {
			t.Errorf("%q: replay %q", env, got)
		}
		// An error of the last flag: all before it are good, and nothing is served.
		out, _ := exec.CommandContext(t.Context(), program, append(slices.Clone(s.Command), "--web.max-requests=0")...).
			CombinedOutput()
		if !strings.HasPrefix(string(out), "rdma_exporter: --web.max-requests") {
			t.Errorf("%q: %s", s.Command, out)
		}
		if _, err := os.Stat(filepath.Join(s.Build.Context, "Dockerfile")); err != nil {
			t.Error(err)
		}
	}
}

// volume returns the mount of a volume in a service.
func volume(t *testing.T, s types.ServiceConfig, source string) types.ServiceVolumeConfig {
	t.Helper()
	for _, v := range s.Volumes {
		if v.Source == source {
			return v
		}
	}
	t.Fatalf("%s does not mount %s", s.Name, source)
	return types.ServiceVolumeConfig{}
}

// TestPrometheus: promtool takes the configuration with what is mounted beside it; it scrapes the exporter and tells
// the Alertmanager.
func TestPrometheus(t *testing.T) {
	promtool := tool.Promtool(t)
	p := load(t)
	s := p.Services["prometheus"]
	config := flagOf(t, s, "--config.file")
	dir := t.TempDir()
	for _, v := range s.Volumes {
		if v.Type != types.VolumeTypeBind {
			continue
		}
		at := filepath.Join(dir, v.Target)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(v.Source, at); err != nil {
			t.Fatal(err)
		}
	}
	// What the services write that come before, into the volume that is mounted here.
	program, rules := buildExporter(t), filepath.Join(dir, volume(t, s, "rules").Target)
	for name := range s.DependsOn {
		before := p.Services[name]
		args := slices.Clone(before.Command)
		i := slices.Index(args, "--output="+volume(t, before, "rules").Target)
		if i < 0 {
			t.Fatalf("%s: %q does not write into its volume", name, args)
		}
		args[i] = "--output=" + rules
		if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	out, err := exec.CommandContext(t.Context(), promtool, "check", "config", filepath.Join(dir, config)).CombinedOutput()
	node, _ := filepath.Glob("../../../rules/node/*.rules.yml")
	central, _ := filepath.Glob("../../../rules/central/*.rules.yml")
	files := slices.Concat(node, central)
	if err != nil || len(node) == 0 || len(central) == 0 || strings.Count(string(out), "rules found") != len(files) {
		t.Errorf("%v, %d rule files\n%s", err, len(files), out)
	}
	port, err := os.ReadFile(filepath.Join(rules, "alerts.rules.yml"))
	if want := "\n      runbook_url: http://" + flagOf(t, p.Services["exporter"], "--alerting.instance") +
		"/runbooks/RDMAPortDown\n"; err != nil || !strings.Contains(string(port), want) {
		t.Errorf("%v, no%s", err, want)
	}
	text, err := os.ReadFile(inContainer(t, s, config))
	if err != nil {
		t.Fatal(err)
	}
	exporter := p.Services["exporter"]
	for _, want := range []string{
		`targets: ["` + flagOf(t, exporter, "--alerting.instance") + `"]`,
		`targets: ["` + local(flagOf(t, p.Services["alertmanager"], "--web.listen-address")) + `"]`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s has no %s", config, want)
		}
	}
	if got, want := local(flagOf(t, exporter, "--web.listen-address")),
		flagOf(t, exporter, "--alerting.instance"); got != want {
		t.Errorf("%s is called %s", got, want)
	}
}

// local returns an address of the loopback interface by name.
func local(address string) string { return strings.Replace(address, "127.0.0.1:", "localhost:", 1) }

// TestGrafana: the files of its provisioning have the keys that it knows, and lead to the Prometheus and to the
// dashboards.
func TestGrafana(t *testing.T) {
	p := load(t)
	s := p.Services["grafana"]
	var sources struct {
		APIVersion  int `json:"apiVersion"`
		Datasources []struct {
			Name, Type, Access, URL string
			IsDefault               bool              `json:"isDefault"`
			JSONData                map[string]string `json:"jsonData"`
		} `json:"datasources"`
	}
	decode(t, inContainer(t, s, "/etc/grafana/provisioning/datasources/rdma.yml"), &sources)
	want := "http://" + local(flagOf(t, p.Services["prometheus"], "--web.listen-address"))
	if d := sources.Datasources; len(d) != 1 || d[0].Type != "prometheus" || !d[0].IsDefault || d[0].URL != want ||
		sources.APIVersion != 1 {
		t.Errorf("%+v", sources)
	}
	var boards struct {
		APIVersion int `json:"apiVersion"`
		Providers  []struct {
			Name, Folder, Type string
			Options            struct{ Path string }
		}
	}
	decode(t, inContainer(t, s, "/etc/grafana/provisioning/dashboards/rdma.yml"), &boards)
	if len(boards.Providers) != 1 || boards.Providers[0].Type != "file" || boards.APIVersion != 1 {
		t.Fatalf("%+v", boards)
	}
	files, _ := filepath.Glob(inContainer(t, s, boards.Providers[0].Options.Path) + "/*.json")
	home := *s.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
	if len(files) < 5 || !slices.Contains(files, inContainer(t, s, home)) ||
		path.Dir(home) != boards.Providers[0].Options.Path {
		t.Errorf("home %s, dashboards %v", home, files)
	}
}

func decode(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(b, into); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}
