package cli

import (
	"slices"
	"strings"
	"text/template"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/words"
)

// usageTemplate prints the commands first, then the flags of the command, then those of all commands. Without a command
// it has the flags of the default one, since these are the flags that most users look for.
const usageTemplate = `{{define "flags"}}{{range groups .}}
{{.Title}}:
{{rows .Flags|FormatTwoColumns}}{{end}}{{end -}}
{{with .Context.SelectedCommand -}}
usage: {{$.App.Name}} {{usage .}}

{{.Help|Wrap 0 -}}
{{if .Commands}}
Commands:
{{commands .Commands|FormatTwoColumns}}{{end -}}
{{if .Args}}
Arguments:
{{args .Args|FormatTwoColumns}}{{end -}}
{{if .Flags}}{{template "flags" .Flags}}{{end}}
Flags of all commands:
{{template "flags" $.App.Flags}}
{{- else -}}
usage: {{.App.Name}} [COMMAND] [FLAG ...] [ARGUMENT ...]

{{.App.Help|Wrap 0}}
Try it without an RDMA device: {{.App.Name}} --replay=demo

Commands:
{{commands .App.Commands|FormatTwoColumns}}
Flags of all commands:
{{template "flags" .App.Flags}}
{{with default .App.Commands}}Flags of {{.Name}}, which runs if no command is given:
{{template "flags" .Flags}}{{end}}
Flags of another command: {{.App.Name}} COMMAND --help
{{end -}}
`

var usageFuncs = template.FuncMap{
	"groups": FlagGroups,
	"default": func(commands []*kingpin.CmdModel) *kingpin.CmdModel {
		for _, c := range commands {
			if c.Default {
				return c
			}
		}
		return nil
	},
	"usage": CommandUsage,
	"rows": func(flags []*kingpin.FlagModel) (rows [][2]string) {
		for _, f := range flags {
			short := "    "
			if f.Short != 0 {
				short = "-" + string(f.Short) + ", "
			}
			rows = append(rows, [2]string{short + FlagUsage(f), f.HelpWithEnvar()})
		}
		return rows
	},
	"args": func(args []*kingpin.ArgModel) (rows [][2]string) {
		for _, a := range args {
			rows = append(rows, [2]string{a.Name, a.Help})
		}
		return rows
	},
	"commands": func(commands []*kingpin.CmdModel) (rows [][2]string) {
		group := kingpin.CmdGroupModel{Commands: commands}
		for _, c := range group.FlattenedCommands() {
			if c.Name != "help" {
				rows = append(rows, [2]string{c.FullCommand, c.Help})
			}
		}
		return rows
	},
}

// FlagGroup is a group of flags in --help and the man page.
type FlagGroup struct {
	Title string
	Flags []*kingpin.FlagModel
}

// flagGroups are the groups by prefix of the flag name; the longest prefix decides.
var flagGroups = []struct {
	title    string
	prefixes []string
}{
	{"Options", []string{""}},
	{"Host and devices", []string{"path.", "helper.", "device.", "limit.", "replay", "config.file", "state.dir"}},
	{"Collectors, enabled unless noted", []string{"collector.", "collect.", "runtime."}},
	{"Serving", []string{"web.", "collect.min-interval"}},
	{"Alerting", []string{"alerting", "replay.send-alerts", "runbook-url"}},
	{"Background reads", []string{"pfc.", "transceiver.", "collector.gpu.interval"}},
	{"Rule tuning", []string{"tune."}},
	{"Logging", []string{"log."}},
}

// FlagGroups groups the visible flags.
func FlagGroups(flags []*kingpin.FlagModel) (out []FlagGroup) {
	by := make([][]*kingpin.FlagModel, len(flagGroups))
	for _, f := range flags {
		if !f.Hidden {
			i := groupOf(f.Name)
			by[i] = append(by[i], f)
		}
	}
	for i, flags := range by {
		if flags != nil {
			out = append(out, FlagGroup{flagGroups[i].title, flags})
		}
	}
	return out
}

func groupOf(name string) (group int) {
	longest := -1
	for i, g := range flagGroups {
		for _, p := range g.prefixes {
			if strings.HasPrefix(name, p) && len(p) > longest {
				longest, group = len(p), i
			}
		}
	}
	return group
}

// FlagUsage is a flag as typed on the command line. A switch that is enabled by default has its negation.
func FlagUsage(f *kingpin.FlagModel) string {
	switch {
	case !f.IsBoolFlag():
		s := "--" + f.Name + "=" + f.FormatPlaceHolder()
		if v, ok := f.Value.(interface{ IsCumulative() bool }); ok && v.IsCumulative() {
			s += " ..."
		}
		return s
	case slices.Equal(f.Default, []string{"true"}):
		return "--[no-]" + f.Name
	default:
		return "--" + f.Name
	}
}

// CommandUsage is a command as typed on the command line.
func CommandUsage(c *kingpin.CmdModel) string {
	parts := []string{c.FullCommand}
	for _, f := range c.Flags {
		if f.Required {
			parts = append(parts, FlagUsage(f))
		}
	}
	if len(c.Flags) > 0 {
		parts = append(parts, "[FLAG ...]")
	}
	if len(c.Commands) > 0 {
		parts = append(parts, "COMMAND")
	}
	return strings.Join(append(parts, words.Of(c.Args, argUsage)...), " ")
}

func argUsage(a *kingpin.ArgModel) string {
	s := a.Name
	if v, ok := a.Value.(interface{ IsCumulative() bool }); ok && v.IsCumulative() {
		s += " ..."
	}
	if !a.Required {
		s = "[" + s + "]"
	}
	return s
}
