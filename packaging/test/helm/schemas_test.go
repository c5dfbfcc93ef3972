package chart

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"

	// These pin the modules of which the schemas are read.
	_ "github.com/prometheus-operator/prometheus-operator/example"
	"github.com/santhosh-tekuri/jsonschema/v6"
	_ "sigs.k8s.io/kubectl-validate/pkg/openapiclient/groupversion"
	"sigs.k8s.io/yaml"
)

// releases of Kubernetes whose schemas an object has to meet: the oldest that Chart.yaml's kubeVersion allows, and the
// newest that kubectl-validate has.
var releases = []string{"1.25", "1.35"}

// modules are the folders of the modules that carry schemas and types, by path.
var modules = sync.OnceValues(func() (map[string]string, error) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Path}} {{.Dir}}",
		"sigs.k8s.io/kubectl-validate", "github.com/prometheus-operator/prometheus-operator", "k8s.io/api")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m: %w", err)
	}
	dirs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		if dir == "" {
			return nil, fmt.Errorf("%s is not in the module cache: go mod download %s", path, path)
		}
		dirs[path] = dir
	}
	return dirs, nil
})

// schemas are those of each kind: one per release, or the one of the custom resource's definition.
var schemas = sync.OnceValues(func() (map[string][]*jsonschema.Schema, error) {
	dirs, err := modules()
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft4) // OpenAPI 3.0's schemas extend Draft 4's
	added := map[string]bool{}
	out := map[string][]*jsonschema.Schema{}
	for kind, value := range kinds {
		for _, s := range sources(dirs, kind, reflect.TypeOf(value)) {
			if !added[s.file] {
				if err := s.add(c); err != nil {
					return nil, fmt.Errorf("%s: %w", s.file, err)
				}
				added[s.file] = true
			}
			compiled, err := c.Compile(s.url() + "#/" + strings.Join(s.keys, "/") + "/" + s.name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", kind, err)
			}
			out[kind] = append(out[kind], compiled)
		}
	}
	return out, nil
})

// source is a schema's place: a file, the keys to the map of the file's schemas by name, and its own name there.
type source struct {
	file string
	keys []string
	name string
}

func sources(dirs map[string]string, kind string, of reflect.Type) (out []source) {
	version, name, _ := strings.Cut(kind, " ")
	if group, _, _ := strings.Cut(version, "/"); group == "monitoring.coreos.com" {
		crds := filepath.Join(dirs["github.com/prometheus-operator/prometheus-operator"], "example/prometheus-operator-crd")
		file := filepath.Join(crds, group+"_"+strings.ToLower(name)+"s.yaml")
		return []source{{file, []string{"spec", "versions", "0", "schema"}, "openAPIV3Schema"}}
	}
	// Kubernetes names a schema io.k8s.api.apps.v1.DaemonSet after its package k8s.io/api/apps/v1.
	name = "io.k8s." + strings.ReplaceAll(strings.TrimPrefix(of.PkgPath(), "k8s.io/"), "/", ".") + "." + of.Name()
	path := "apis/" + version
	if version == "v1" {
		path = "api/v1"
	}
	for _, r := range releases {
		file := filepath.Join(dirs["sigs.k8s.io/kubectl-validate"], "pkg/openapiclient/builtins", r, path+".json")
		out = append(out, source{file, []string{"components", "schemas"}, name})
	}
	return out
}

func (s source) url() string { return "file://" + filepath.ToSlash(s.file) }

// add gives the file to the compiler, with its schemas closed.
func (s source) add(c *jsonschema.Compiler) error {
	b, err := os.ReadFile(s.file)
	if err != nil {
		return err
	}
	if filepath.Ext(s.file) == ".yaml" {
		if b, err = yaml.YAMLToJSON(b); err != nil {
			return err
		}
	}
	file, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return err
	}
	at := file
	for _, key := range s.keys {
		switch v := at.(type) {
		case map[string]any:
			at = v[key]
		case []any:
			at = v[0]
		}
	}
	all, ok := at.(map[string]any)
	if !ok {
		return fmt.Errorf("it has no %s", strings.Join(s.keys, "."))
	}
	for _, schema := range all {
		closeSchema(schema)
	}
	return c.AddResource(s.url(), file)
}

// closeSchema refuses the properties that a schema does not name, which OpenAPI leaves to who reads it.
func closeSchema(schema any) {
	s, ok := schema.(map[string]any)
	if !ok {
		return
	}
	properties, named := s["properties"].(map[string]any)
	for _, p := range properties {
		closeSchema(p)
	}
	closeSchema(s["items"])
	closeSchema(s["additionalProperties"])
	if _, says := s["additionalProperties"]; named && !says {
		s["additionalProperties"] = false
	}
}

// schemaProblems returns the errors of an object by the schemas of its kind.
func schemaProblems(kind, text string) (out []error) {
	all, err := schemas()
	if err != nil {
		return []error{err}
	}
	b, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return []error{err}
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return []error{err}
	}
	for _, s := range all[kind] {
		if err := s.Validate(value); err != nil {
			out = append(out, err)
		}
	}
	return out
}
