package foreign_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/cli"
)

// commands are the command lines of each command, played on hostile machines or beside hostile programs. Without any:
// why.
var commands = map[string]struct {
	args []string // separated by blanks; on a recorded machine
	not  string
}{
	"check":             {args: []string{"--json", "--verbose", "--setup", "--setup --json", "--drain", "--drain --json"}},
	"topo":              {args: []string{"", "--json"}},
	"job":               {args: []string{"", "--json"}},
	"optics":            {args: []string{"", "--json"}},
	"expect list":       {args: []string{"", "--json"}},
	"inventory list":    {args: []string{"", "--json"}},
	"capture":           {args: []string{"-o -", "-o - --anonymise", "-o - --kernel-log"}},
	"serve":             {not: "served, in TestMachines"},
	"accept":            {not: "TestControl"},
	"maintenance start": {not: "TestControl"}, "maintenance end": {not: "TestControl"},
	"maintenance status": {not: "TestControl"},
	"gpu release":        {not: "TestControl"}, "gpu resume": {not: "TestControl"}, "gpu status": {not: "TestControl"},
	"reload":       {not: "TestControl"},
	"check-config": {not: "TestConfig"},
	"fabric":       {not: "test/fabric: descriptions of nodes pass the gate when they are decoded (internal/mad)"},
	"backtest":     {not: "shows labels of an operator's own Prometheus"},
	"helper":       {not: "prints nothing of what it reads; it logs as serve does"},
	"healthy":      {not: "prints nothing of the answer"},
	"rules":        {not: "reads nothing of the host"},
	"runbook":      {not: "reads nothing of the host"},
	"dashboards":   {not: "reads nothing of the host"},
	"compare":      {not: "reads other exporters: TestCompare of internal/cli"},
}

// TestCommandsAreKnown: a new command is played, or has a reason.
func TestCommandsAreKnown(t *testing.T) {
	known := leaves(cli.CommandLine().CmdGroupModel, "")
	for _, name := range known {
		if c := commands[name]; (c.args == nil) == (c.not == "") {
			t.Errorf("%s: %d command lines, %q", name, len(c.args), c.not)
		}
	}
	for name := range commands {
		if !slices.Contains(known, name) {
			t.Errorf("%s: no such command", name)
		}
	}
}

// play runs all commands on a hostile machine, or some.
func (m *marks) play(t *testing.T, file string, only []string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		for _, args := range commands[name].args {
			line := strings.TrimSpace(name + " " + args)
			if only != nil && !slices.Contains(only, line) {
				continue
			}
			out, errs := m.run(t, append([]string{"--replay=" + file}, strings.Fields(line)...)...)
			if name == "capture" { // it has all texts, and tabs of files of the kernel
				captured := newMarks()
				captured.scan(t, line, strings.ReplaceAll(out, "\t", " "))
			} else {
				m.scanOutput(t, line, out)
			}
			m.scan(t, line+", log", errs)
		}
	}
}

// run runs the program to its end.
func (m *marks) run(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	return runOn(t, cli.Outside{Host: m.around}, args...)
}

func runOn(t *testing.T, o cli.Outside, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	cli.RunOn(t.Context(), o, args, &out, &errs)
	if out.Len()+errs.Len() == 0 {
		t.Errorf("%q prints nothing", args)
	}
	return out.String(), errs.String()
}

func (m *marks) scanOutput(t *testing.T, where, out string) {
	t.Helper()
	if strings.HasPrefix(out, "{") || strings.HasPrefix(out, "[") {
		m.scanJSON(t, where, out)
		return
	}
	m.scan(t, where, out)
	for line := range strings.Lines(out) {
		if at := proposed.FindStringIndex(line); at != nil {
			m.scanShell(t, where, line[at[1]:])
		}
	}
}

// proposed begins a command in a text for people.
var proposed = regexp.MustCompile(`^ *(?:set|diagnose): +`)

// leaves returns the names of commands without subcommands.
func leaves(g *kingpin.CmdGroupModel, prefix string) (out []string) {
	for _, c := range g.Commands {
		if c.CmdGroupModel != nil && len(c.Commands) > 0 {
			out = append(out, leaves(c.CmdGroupModel, prefix+c.Name+" ")...)
			continue
		}
		out = append(out, prefix+c.Name)
	}
	return out
}
