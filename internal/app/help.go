package app

import (
	"slices"
	"strings"
	"text/template"

	"github.com/alecthomas/kingpin/v2"
)

// usageTemplate prints what a person looks for first: commands, then the flags of the one that was asked of, then those of all.
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
{{else -}}
usage: {{.App.Name}} [FLAG ...] [COMMAND [FLAG ...] [ARGUMENT ...]]

{{.App.Help|Wrap 0}}
Without an RDMA device, a recorded node: {{.App.Name}} --replay=demo

Commands:
{{commands .App.Commands|FormatTwoColumns}}
"{{.App.Name}} COMMAND --help" shows the flags of a command. Those of all:
{{end -}}
{{template "flags" .App.Flags}}
`

var usageFuncs = template.FuncMap{
	"groups": FlagGroups,
	"usage":  CommandUsage,
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

// FlagGroup is flags that belong together, under the title that help and the man page give them.
type FlagGroup struct {
	Title string
	Flags []*kingpin.FlagModel
}

// flagGroups holds what the names of flags begin with; the longest decides.
var flagGroups = []struct {
	title    string
	prefixes []string
}{
	{"Options", []string{""}},
	{"Machine and devices", []string{"path.", "device.", "replay", "config.file", "state.dir"}},
	{"Collectors, all on unless said", []string{"collector.", "collect.", "runtime."}},
	{"Serving", []string{"web.", "collect.min-interval"}},
	{"Alerting", []string{"alerting", "replay.send-alerts", "runbook-url"}},
	{"Reading in the background", []string{"pfc.", "transceiver.", "collector.gpu.interval"}},
	{"Tuning of the rules", []string{"tune."}},
	{"Log", []string{"log."}},
}

// FlagGroups sorts the flags that are shown into groups.
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

// FlagUsage is a flag as one types it: a switch that is on has its negation.
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

// CommandUsage is a command as one types it.
func CommandUsage(c *kingpin.CmdModel) string {
	words := []string{c.FullCommand}
	for _, f := range c.Flags {
		if f.Required {
			words = append(words, FlagUsage(f))
		}
	}
	if len(c.Flags) > 0 {
		words = append(words, "[FLAG ...]")
	}
	if len(c.Commands) > 0 {
		words = append(words, "COMMAND")
	}
	for _, a := range c.Args {
		words = append(words, argUsage(a))
	}
	return strings.Join(words, " ")
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
