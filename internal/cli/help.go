package cli

import (
	"slices"
	"text/template"

	"github.com/alecthomas/kingpin/v2"
)

// usageTemplate prints the help of a command with its own flags; without one the commands, the flags of all commands
// and those of the default one, since these are the flags that most users look for.
const usageTemplate = `{{with .Context.SelectedCommand -}}
usage: {{FormatCommandUsage $.App .}}{{if .Commands}} <command>{{end}}

{{.Help|Wrap 0 -}}
{{if .Commands}}
Commands:
{{commands .Commands|FormatTwoColumns}}{{end -}}
{{if .Args}}
Arguments:
{{.Args|ArgsToTwoColumns|FormatTwoColumns}}{{end -}}
{{if .Flags}}
Flags:
{{flags .Flags|FormatTwoColumns}}{{end}}
Flags of all commands (host, devices, collectors, log): {{$.App.Name}} --help
{{- else -}}
usage: {{.App.Name}} [<command>] [<flags>] [<args> ...]

{{.App.Help|Wrap 0}}
Try it without an RDMA device: {{.App.Name}} --replay=demo

Commands:
{{commands .App.Commands|FormatTwoColumns}}
Flags of all commands:
{{flags .App.Flags|FormatTwoColumns}}
{{range .App.Commands}}{{if .Default}}Flags of {{.Name}}, which runs if no command is given:
{{flags .Flags|FormatTwoColumns}}{{end}}{{end}}
Flags of another command: {{.App.Name}} <command> --help
{{- end}}
`

var usageFuncs = template.FuncMap{
	"flags": func(flags []*kingpin.FlagModel) (rows [][2]string) {
		for _, f := range Visible(flags) {
			short := "    "
			if f.Short != 0 {
				short = "-" + string(f.Short) + ", "
			}
			rows = append(rows, [2]string{short + FlagUsage(f), f.HelpWithEnvar()})
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

// Visible returns the flags that are not hidden.
func Visible(flags []*kingpin.FlagModel) []*kingpin.FlagModel {
	return slices.DeleteFunc(slices.Clone(flags), func(f *kingpin.FlagModel) bool { return f.Hidden })
}

// FlagUsage returns a flag as typed on the command line. Only a switch that is enabled by default has its negation,
// which kingpin writes for each.
func FlagUsage(f *kingpin.FlagModel) string {
	switch {
	case f.IsBoolFlag() && slices.Equal(f.Default, []string{"true"}):
		return "--[no-]" + f.Name
	case f.IsBoolFlag():
		return "--" + f.Name
	case isRepeatable(f.Value):
		return "--" + f.Name + "=" + f.FormatPlaceHolder() + " ..."
	}
	return "--" + f.Name + "=" + f.FormatPlaceHolder()
}

func isRepeatable(v kingpin.Value) bool {
	r, ok := v.(interface{ IsCumulative() bool })
	return ok && r.IsCumulative()
}
