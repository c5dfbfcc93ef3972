// Package scripts_test runs the scripts of packaging that drain hosts.
package scripts_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/cli"
	"rdma_exporter/rules"
)

// asProgram makes this executable the program: building that takes longer than the tests.
const asProgram = "RDMA_EXPORTER_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const slurm = "../../packaging/slurm/rdma_check.sh"

// patient returns a copy of the script of Slurm that waits longer than the check of a recording takes on a busy
// machine.
func patient(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(slurm)
	must(t, err)
	file, limit := filepath.Join(t.TempDir(), "rdma_check.sh"), "\nTIME=5 "
	if strings.Count(string(text), limit) != 1 {
		t.Fatal("the script has no time limit of 5s")
	}
	must(t, os.WriteFile(file, []byte(strings.Replace(string(text), limit, "\nTIME=300 ", 1)), 0o755))
	return file
}

// TestSlurm: the script of packaging/slurm fails on a host that is to be drained only, as Prolog and within NHC, and
// says in one line why it passes where that is unknown.
func TestSlurm(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	binary := asProgram + "=1 " + self
	replay := func(name string, flags ...string) string {
		file, err := filepath.Abs("../../fixtures/sysfs/" + name + ".txtar")
		must(t, err)
		return strings.Join(append([]string{binary, "--replay", file, "check"}, flags...), " ")
	}
	asIs, err := filepath.Abs(slurm)
	must(t, err)
	waits := patient(t)
	for _, c := range []struct {
		name, script, check string
		code                int
		line                string // "": none
	}{
		{"evict", waits, replay("port-down", "--drain"), 1, "drain required: evict RDMAPortDown mlx5_5/1 "},
		{"cordon", waits, replay("downshift-one", "--drain"), 1, "drain required: cordon RDMALinkDegraded mlx5_5/1 "},
		{"ok", waits, replay("qdr-switch-ok", "--drain"), 0, ""},
		{"warning", waits, replay("link-errors", "--drain"), 0, ""},
		{"dry run", waits, replay("port-down", "--drain", "--dry-run"), 0, ""},
		{"no device", waits, replay("no-rdma", "--drain"), 0, "passed without a result: exit code 3: web-22: drain unknown, do not drain: no RDMA device on this host"},
		{"wrong flag", waits, binary + " check --nope", 0, "passed without a result: exit code 3: rdma_exporter check: unknown flag --nope"},
		{"hangs", asIs, "sleep 600", 0, "passed without a result: no answer within 5s"},
		{"hangs and cannot be ended", asIs, "trap '' TERM INT HUP; sleep 600", 0, "passed without a result: no answer within 5s"},
		{"not installed", waits, binary + "-not check", 0, "passed without a result: exit code 127: "},
		{"killed", waits, "kill -SEGV $$", 0, "passed without a result: exit code 139:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			code, said := shell(t, c.check, "sh", c.script)
			if took := time.Since(start); c.script == asIs && (took < 5*time.Second || took > 5*time.Minute) {
				t.Errorf("took %s", took)
			}
			if code != c.code || !oneLineOf(said, "rdma_check: "+c.line, c.line == "") {
				t.Errorf("exit %d\n%s\nwant %d, %q", code, said, c.code, c.line)
			}
			// die and log are NHC's: the one ends the run, the other tells.
			code, said = shell(t, c.check, "bash", "-c",
				`set -f; log() { echo "LOG $*"; }; die() { echo "DIE $*"; exit "$1"; }; . ../../packaging/slurm/rdma.nhc; check_rdma`,
				"RDMA_CHECK_SCRIPT="+c.script)
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
		code, said := shell(t,
			"", "bash", "-c", `log() { echo "LOG $*"; }; die() { exit 1; }; . ../../packaging/slurm/rdma.nhc; check_rdma`,
			"RDMA_CHECK_SCRIPT=/nowhere/rdma_check.sh")
		if code != 0 ||
			!strings.HasPrefix(said, "LOG check_rdma: passed: /nowhere/rdma_check.sh failed with exit code 127: ") {
			t.Errorf("exit %d\n%s", code, said)
		}
	})
}

// TestScriptsOfAlerts: of every alert that fires the scripts of Slurm, NHC and node problem detector drain the host
// where its label says so, and nothing drains it while it is pending, or while maintenance is announced.
func TestScriptsOfAlerts(t *testing.T) {
	fsys, files, err := rules.Node()
	must(t, err)
	engine, err := alerting.New(alerting.Options{Dir: t.TempDir(), Instance: "gpu-1:10879", Rules: fsys, Files: files})
	must(t, err)
	defer engine.Close()
	t.Setenv("RDMA_SECONDS", "300") // of the plugin
	script := patient(t)
	plugin, err := filepath.Abs("../../packaging/node-problem-detector/rdma-fabric.sh")
	must(t, err)
	answer := filepath.Join(t.TempDir(), "rdma_exporter")
	type result struct {
		code int
		text string
	}
	// said are the results of the three scripts on an answer of check --drain. Most alerts have the same: no drain.
	before := map[string][3]result{}
	said := func(t *testing.T, program string) (of [3]result) {
		if of, ok := before[program]; ok {
			return of
		}
		must(t, os.WriteFile(answer, []byte(program), 0o755))
		of[0].code, of[0].text = shell(t, answer, "sh", script)
		of[1].code, of[1].text = shell(t, answer, "bash", "-c",
			`log() { echo "LOG $*"; }; die() { echo "DIE $*"; exit "$1"; }; . ../../packaging/slurm/rdma.nhc; check_rdma`,
			"RDMA_CHECK_SCRIPT="+script)
		of[2].code, of[2].text = shell(t, "", "sh", plugin, "RDMA_EXPORTER="+answer)
		before[program] = of
		return of
	}
	levels := map[string]float64{check.DrainCordon: 1, check.DrainEvict: 2}
	for i, r := range engine.Rules() {
		for _, c := range []struct {
			name    string
			state   alerting.State
			drained float64 // as it is recorded
		}{
			{"firing", alerting.StateFiring, levels[r.Labels["drain"]]},
			{"pending", alerting.StatePending, 0},
			{"maintenance", alerting.StateFiring, 0},
		} {
			t.Run(fmt.Sprintf("%s/%s/%d/%s", r.Name, r.Labels["severity"], i, c.name), func(t *testing.T) {
				in := check.Input{
					Host: "gpu-1:10879", Interval: 15 * time.Second,
					Recorded: check.Recorded{Drain: &c.drained, Draining: map[string]float64{}},
				}
				in.Rules = engine.Rules()
				in.Alerts = []alerting.Alert{{Name: r.Name, Rule: i, State: c.state, Labels: map[string]string{
					"alertname": r.Name, "severity": r.Labels["severity"], "drain": r.Labels["drain"], "device": "mlx5_0",
				}, Annotations: map[string]string{"summary": "A fault."}}}
				if level := levels[r.Labels["drain"]]; level > 0 && c.name != "pending" {
					in.Recorded.Draining[r.Name] = level
				}
				report := check.New(in)
				var text strings.Builder
				must(t, check.Drain(&text, report, false))
				of := said(t, fmt.Sprintf("#!/bin/sh\ncat <<'END'\n%sEND\nexit %d\n", text.String(), report.DrainExitCode()))
				want := 0
				if c.name == "firing" && r.Labels["drain"] != check.DrainNo {
					want = 1
				}
				if s := of[0]; s.code != want || want == 1 && !strings.Contains(s.text, r.Labels["drain"]+" "+r.Name+" mlx5_0") {
					t.Errorf("Slurm: exit %d, %s", s.code, s.text)
				}
				if s := of[1]; s.code != want {
					t.Errorf("NHC: exit %d, %s", s.code, s.text)
				}
				if s := of[2]; s.code != want || want == 1 && !strings.Contains(s.text, r.Labels["drain"]+": "+r.Name) {
					t.Errorf("node problem detector: exit %d, %s", s.code, s.text)
				}
			})
		}
	}
}

// shell runs a program with a command in the place of rdma_exporter check. Arguments NAME=VALUE at the end are of its
// environment.
func shell(t *testing.T, script, name string, args ...string) (code int, said string) {
	t.Helper()
	env := append(os.Environ(), "RDMA_CHECK="+script)
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

// oneLineOf reports whether a text is one line that begins so, or nothing.
func oneLineOf(text, begins string, nothing bool) bool {
	if nothing {
		return text == ""
	}
	return strings.HasPrefix(text, begins) && strings.Count(text, "\n") == 1
}
