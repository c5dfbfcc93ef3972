package cli

import (
	"regexp"
	"runtime"
	"strings"
	"testing"

	"rdma_exporter/internal/host/nvml"
)

// TestEachCommand: a command runs something, is listed by --help, and its own help shows its flags and arguments, and
// where those of all commands are.
func TestEachCommand(t *testing.T) {
	p := newProgram(Outside{})
	_, help, _ := runProgram(t, "--help")
	n := 0
	for _, c := range p.Model().FlattenedCommands() {
		if c.Name == "help" {
			continue
		}
		n++
		t.Run(c.FullCommand, func(t *testing.T) {
			if p.runs[c.FullCommand] == nil {
				t.Error("runs nothing")
			}
			if !regexp.MustCompile(`(?m)^  ` + c.FullCommand + `  +\S`).MatchString(help) {
				t.Errorf("not listed:\n%s", help)
			}
			code, out, errs := runProgram(t, append(strings.Fields(c.FullCommand), "--help")...)
			const shared = "\nFlags of all commands (host, devices, collectors, log): rdma_exporter --help\n"
			own, ok := strings.CutSuffix(out, shared)
			if code != 0 || errs != "" || !ok || !strings.HasPrefix(own, "usage: rdma_exporter "+c.FullCommand) ||
				strings.Contains(own, "--replay=FILE") {
				t.Errorf("exit %d, stderr %q:\n%s", code, errs, out)
			}
			for line := range strings.Lines(out) {
				if len(strings.TrimRight(line, " \n")) > 80 && len(strings.Fields(line)) > 1 {
					t.Errorf("%d columns: %s", len(line), line)
				}
			}
			for _, f := range c.Flags {
				if strings.Contains(own, FlagUsage(f)) == f.Hidden {
					t.Errorf("%s, hidden %v:\n%s", FlagUsage(f), f.Hidden, own)
				}
			}
			for _, a := range c.Args {
				if !regexp.MustCompile(`\nArguments:\n  \[?<` + a.Name + `>`).MatchString(own) {
					t.Errorf("%s is missing:\n%s", a.Name, own)
				}
			}
		})
	}
	if n != len(p.runs) {
		t.Errorf("%d commands, %d that run", n, len(p.runs))
	}
}

func TestFlagUsage(t *testing.T) {
	got := map[string]string{}
	for _, c := range CommandLine().FlattenedCommands() {
		for _, f := range append(c.Flags, CommandLine().Flags...) {
			got[f.Name] = FlagUsage(f)
		}
	}
	for name, want := range map[string]string{
		"json": "--json", "alerting": "--[no-]alerting", "no-daemon": "--no-daemon", "output": "--output=DIR",
		"only": "--only=ALERT ...", "collect.timeout": "--collect.timeout=10s",
	} {
		if got[name] != want {
			t.Errorf("got %s, want %s", got[name], want)
		}
	}
}

func TestVersionText(t *testing.T) {
	got := versionText()
	linked := "NVML:         no: built without cgo"
	if nvml.NVML {
		linked = "NVML:         yes,"
	}
	for _, want := range []string{
		"rdma_exporter, version unreleased (revision: ", "\n  go version:   " + runtime.Version() + "\n",
		"\n  platform:     linux/" + runtime.GOARCH + "\n", linked,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing:\n%s", want, got)
		}
	}
}
