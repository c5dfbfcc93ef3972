package app

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSlurmOfReplays: the script of packaging/slurm fails on a critical fault only, as Prolog and within NHC, and says in one line why it
// passes where it cannot tell.
func TestSlurmOfReplays(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "rdma_exporter")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../cmd/rdma_exporter")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	replay := func(name string, flags ...string) string {
		file, err := filepath.Abs("../../fixtures/sysfs/" + name + ".txtar")
		must(t, err)
		return strings.Join(append([]string{binary, "--replay", file, "check"}, flags...), " ")
	}
	for _, c := range []struct {
		name, check string
		code        int
		line        string // "": none
	}{
		{"critical", replay("port-down", "--severity=critical"), 1, "fails this node: firing "},
		{"ok", replay("qdr-switch-ok", "--severity=critical"), 0, ""},
		{"warning left out", replay("link-errors", "--severity=critical"), 0, ""},
		{"warning", replay("link-errors"), 0, "passes: a warning at most"},
		{"no device", replay("no-rdma", "--severity=critical"), 0, "passes: exit code 3: "},
		{"wrong flag", binary + " check --nope", 0, "passes: exit code 3: rdma_exporter: unknown long flag '--nope'"},
		{"hangs", "sleep 60", 0, "passes: no answer in 5 s"},
		{"hangs and cannot be ended", "trap '' TERM INT HUP; sleep 60", 0, "passes: no answer in 5 s"},
		{"not installed", binary + "-not check", 0, "passes: exit code 127: "},
		{"killed", "kill -SEGV $$", 0, "passes: exit code 139:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.Contains(c.line, "no answer") { // the others have five seconds
				t.Parallel()
			}
			script, err := filepath.Abs("../../packaging/slurm/rdma_check.sh")
			must(t, err)
			start := time.Now()
			code, said := shell(t, c.check, "sh", script)
			if took := time.Since(start); strings.Contains(c.line, "no answer") && (took < 5*time.Second || took > 15*time.Second) {
				t.Errorf("took %s", took)
			}
			if code != c.code || !oneLineOf(said, "rdma_check: "+c.line, c.line == "") {
				t.Errorf("exit %d\n%s\nwant %d, %q", code, said, c.code, c.line)
			}
			// die and log are NHC's: the one ends the run, the other tells.
			code, said = shell(t, c.check, "bash", "-c", `set -f; log() { echo "LOG $*"; }; die() { echo "DIE $*"; exit "$1"; }; . ../../packaging/slurm/rdma.nhc; check_rdma`, "RDMA_CHECK_SCRIPT="+script)
			before := "LOG check_rdma: "
			if c.code == 1 {
				before = "DIE 1 check_rdma: "
			}
			if code != c.code || !oneLineOf(said, before+"rdma_check: "+c.line, c.line == "") {
				t.Errorf("NHC: exit %d\n%s\nwant %d, %q", code, said, c.code, c.line)
			}
		})
	}
	t.Run("NHC without the script", func(t *testing.T) {
		code, said := shell(t, "", "bash", "-c", `log() { echo "LOG $*"; }; die() { exit 1; }; . ../../packaging/slurm/rdma.nhc; check_rdma`, "RDMA_CHECK_SCRIPT=/nowhere/rdma_check.sh")
		if code != 0 || !strings.HasPrefix(said, "LOG check_rdma: passes: /nowhere/rdma_check.sh ended with 127: ") {
			t.Errorf("exit %d\n%s", code, said)
		}
	})
}

// shell runs a program with a command in the place of rdma_exporter check. Arguments NAME=VALUE at the end are of its environment.
func shell(t *testing.T, check, name string, args ...string) (code int, said string) {
	t.Helper()
	env := append(os.Environ(), "RDMA_CHECK="+check)
	if last := args[len(args)-1]; strings.HasPrefix(last, "RDMA_") {
		args, env = args[:len(args)-1], append(env, last)
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// oneLineOf says whether a text is one line that begins so, or nothing.
func oneLineOf(text, begins string, nothing bool) bool {
	if nothing {
		return text == ""
	}
	return strings.HasPrefix(text, begins) && strings.Count(text, "\n") == 1
}
