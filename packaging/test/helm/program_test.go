package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"rdma_exporter/packaging/test/tool"
)

// TestProgram: the program knows all arguments that the chart gives it, and takes the configuration of the site.
func TestProgram(t *testing.T) {
	program := tool.Program(t)
	run := func(args ...string) (string, int) {
		c := exec.CommandContext(t.Context(), program, args...)
		out, _ := c.CombinedOutput()
		return string(out), c.ProcessState.ExitCode()
	}
	c := load(t)
	for name, values := range sets(t) {
		for _, d := range documents(t, c, values) {
			switch o := object(t, d).(type) {
			case *appsv1.DaemonSet:
				// An error of the last flag: all before it are good, and nothing is served.
				args := append(slices.Clone(o.Spec.Template.Spec.Containers[0].Args), "--web.max-requests=0")
				if out, code := run(args...); code != 2 || !strings.HasPrefix(out, "rdma_exporter: --web.max-requests") {
					t.Errorf("%s: %q: exit %d, %s", name, args, code, out)
				}
				probe := o.Spec.Template.Spec.Containers[0].LivenessProbe
				if probe.Exec != nil {
					if out, code := run(append(probe.Exec.Command[1:], "--url=http://127.0.0.1:1")...); code != 1 ||
						!strings.Contains(out, "not healthy") {
						t.Errorf("%s: %q: exit %d, %s", name, probe.Exec.Command, code, out)
					}
				}
			case *corev1.ConfigMap:
				if o.Data["config.yml"] == "" {
					continue
				}
				file := filepath.Join(t.TempDir(), "config.yml")
				if err := os.WriteFile(file, []byte(o.Data["config.yml"]), 0o644); err != nil {
					t.Fatal(err)
				}
				if out, code := run("check-config", file); code != 0 {
					t.Errorf("%s: exit %d, %s", name, code, out)
				}
			}
		}
	}
}
