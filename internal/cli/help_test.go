package cli

import (
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/host/nvml"
	"rdma_exporter/internal/serve"
)

// TestEachCommand runs something, is listed by --help, and its own help shows its flags and arguments before those of
// all commands.
func TestEachCommand(t *testing.T) {
	p := newProgram(Outside{})
	_, help, _ := run(t, "--help")
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
			code, out, errs := run(t, append(strings.Fields(c.FullCommand), "--help")...)
			own, all, ok := strings.Cut(out, "\nFlags of all commands:\n")
			if code != 0 || errs != "" || !ok || !strings.HasPrefix(own, "usage: rdma_exporter "+c.FullCommand) ||
				!strings.Contains(all, "--replay=FILE") {
				t.Errorf("exit %d, stderr %q:\n%s", code, errs, out)
			}
			for _, f := range c.Flags {
				if strings.Contains(own, FlagUsage(f)) == f.Hidden {
					t.Errorf("%s, hidden %v:\n%s", FlagUsage(f), f.Hidden, own)
				}
			}
			for _, a := range c.Args {
				if !strings.Contains(own, "\nArguments:\n  "+a.Name) {
					t.Errorf("%s is missing:\n%s", a.Name, own)
				}
			}
		})
	}
	if n != len(p.runs) {
		t.Errorf("%d commands, %d that run", n, len(p.runs))
	}
}

// TestFlagsHaveGroups: flags of all commands, those of serve and those that tune rules are many; none of them is among
// the rest.
func TestFlagsHaveGroups(t *testing.T) {
	m := CommandLine()
	for _, c := range m.Commands {
		for _, f := range c.Flags {
			if c.Name == serve.Command || c.Name == "rules" && strings.HasPrefix(f.Name, "tune.") {
				m.Flags = append(m.Flags, f)
			}
		}
	}
	groups := FlagGroups(m.Flags)
	if len(groups) != len(flagGroups) {
		t.Errorf("%d groups, want %d", len(groups), len(flagGroups))
	}
	var rest []string
	for _, f := range groups[0].Flags {
		rest = append(rest, f.Name)
	}
	if !slices.Equal(rest, []string{"help", "version"}) {
		t.Errorf("without a group: %q", rest)
	}
	for name, want := range map[string]string{
		"collector.gpu.interval": "Background reads", "collector.gpu.mode": "Collectors, enabled unless noted",
		"alerting": "Alerting", "replay.send-alerts": "Alerting",
	} {
		if got := flagGroups[groupOf(name)].title; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
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
