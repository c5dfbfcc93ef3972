package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/cli"
)

// completions are the templates of shell completions, by path in packaging/completions.
var completions = map[string]string{
	"bash/rdma_exporter": `# bash completion for rdma_exporter
# Written by go run ./docs/gen from the flags and commands of the program.
_rdma_exporter() {
  local i word command='' cur=$2 flags words=''
  # After = is a value: a choice, or a file name, which the shell completes itself.
  if [[ $cur == = || ${COMP_WORDS[COMP_CWORD-1]} == = ]]; then
    case ${COMP_WORDS[COMP_CWORD-1]}${COMP_WORDS[COMP_CWORD-2]} in
{{range .}}{{range $f := .Flags}}{{with .Choices}}      *--{{$f.Name}}*) words={{quote .}} ;;
{{end}}{{end}}{{end}}    esac
    [[ -z $words ]] || mapfile -t COMPREPLY < <(compgen -W "$words" -- "${cur#=}")
    return
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    [[ $word == -* || $word == = || ${COMP_WORDS[i-1]} == = ]] || command+="${command:+ }$word"
  done
  flags='{{range .}}{{if .Shared}}{{range .Flags}}{{template "flag" .}} {{end}}{{end}}{{end}}'
  case $command in
{{range .}}{{if not .Shared}}    {{.Pattern}}) words='{{range .Below}}{{.Name}} {{end}}{{.Arguments}}'; flags+='{{range .Flags}}{{template "flag" .}} {{end}}' ;;
{{end}}{{end}}  esac
  [[ $cur != -* ]] || words=$flags
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
  [[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace
}
complete -o default -F _rdma_exporter rdma_exporter
{{- define "flag"}}--{{.Name}}{{if .Value}}={{end}}{{end}}
`,
	"zsh/_rdma_exporter": `#compdef rdma_exporter
# Written by go run ./docs/gen from the flags and commands of the program.

_rdma_exporter() {
  local word command='' rest='*: :'
  local -a commands flags
  for word in ${words[2,CURRENT-1]}; do
    [[ $word == -* ]] || command+=${command:+ }$word
  done
  flags=(
{{range .}}{{if .Shared}}{{range .Flags}}    {{zsh .}}
{{end}}{{end}}{{end}}  )
  case $command in
{{range .}}{{if not .Shared}}    {{.Pattern}})
      commands=({{range .Below}}
        {{entry .}}{{end}})
      flags+=({{range .Flags}}
        {{zsh .}}{{end}}){{if .File}}
      rest='*:FILE:_files'{{end}}{{with .Arguments}}
      rest='*:value:({{.}})'{{end}} ;;
{{end}}{{end}}  esac
  if (( $#commands )) && [[ ${words[CURRENT]} != -* ]]; then
    _describe command commands
  else
    _arguments $flags $rest
  fi
}

_rdma_exporter "$@"
`,
	"fish/rdma_exporter.fish": `# fish completion for rdma_exporter
# Written by go run ./docs/gen from the flags and commands of the program.
complete -c rdma_exporter -f
{{range $c := .}}{{range .Below}}complete -c rdma_exporter -n {{quote $c.Within}} -a {{.Name}} -d {{fish .Help}}
{{end}}{{with .Arguments}}complete -c rdma_exporter -n {{quote $c.Within}} -a {{quote .}}
{{end}}{{range .Flags}}complete -c rdma_exporter {{with $c.Within}}-n {{quote .}} {{end}}{{with .Short}}-s {{.}} {{end}}-l {{.Name}}
{{- if .Choices}} -x -a {{quote .Choices}}{{else if .Files}} -r -F{{else if .Value}} -x{{end}} -d {{fish .Help}}
{{end}}{{end}}`,
}

// completionPages returns the shell completions.
func completionPages() (out []page, err error) {
	offers := offersOf(cli.CommandLine(), cli.Choices)
	for name, text := range completions {
		t, err := template.New(name).
			Funcs(template.FuncMap{"quote": quoted, "fish": fishQuoted, "zsh": zshFlag, "entry": zshEntry}).Parse(text)
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		if err := t.Execute(&b, offers); err != nil {
			return nil, err
		}
		out = append(out, page{"../packaging/completions/" + name, b.Bytes()})
	}
	return out, nil
}

// offer is what completes a command line, after the words of a command.
type offer struct {
	Shared  bool     // flags of all commands
	Pattern string   // of the words, in bash and zsh
	Within  string   // condition of fish
	Below   []option // commands
	Flags   []option
	File    bool // takes a file as its argument

	Arguments string // values of its argument, separated by blanks; empty for any
}

// choices returns the values of a flag of a command, or of its argument.
type choices func(command, flag string) []string

// option is a flag or a command.
type option struct {
	Name, Help string
	Short      string // a letter, or empty
	Value      string // placeholder after =; empty for a switch
	Choices    string // separated by blanks; empty for any
	Files      bool
}

// offersOf returns the flags of all commands, then what there is without a command, then each command.
func offersOf(m *kingpin.ApplicationModel, of choices) []offer {
	none := offer{Pattern: "''", Within: "__fish_use_subcommand", Below: commandsOf(m.Commands)}
	for _, c := range m.Commands {
		if c.Default {
			none.Flags = options(c.Flags, c.FullCommand, of)
		}
	}
	return append([]offer{{Shared: true, Flags: options(m.Flags, "", of)}, none}, offersBelow("", m.Commands, of)...)
}

func offersBelow(within string, commands []*kingpin.CmdModel, of choices) (out []offer) {
	for _, c := range commands {
		if c.Name == "help" {
			continue
		}
		o := offer{
			Pattern: quoted(c.FullCommand), Within: within + "__fish_seen_subcommand_from " + c.Name,
			Below: commandsOf(c.Commands), Flags: options(c.Flags, c.FullCommand, of),
			File: len(c.Args) > 0 && c.Args[0].Name == "FILE",
		}
		out = append(out, offersBelow(o.Within+"; and ", c.Commands, of)...)
		if len(o.Below) == 0 {
			o.Arguments = strings.Join(of(c.FullCommand, ""), " ")
			o.Pattern += " | " + quoted(c.FullCommand+" ") + "*"
		}
		for _, b := range o.Below {
			o.Within += "; and not __fish_seen_subcommand_from " + b.Name
		}
		out = append(out, o)
	}
	return out
}

func commandsOf(commands []*kingpin.CmdModel) (out []option) {
	for _, c := range commands {
		if c.Name != "help" {
			out = append(out, option{Name: c.Name, Help: firstSentence(c.Help)})
		}
	}
	return out
}

// fileValue matches placeholders of files and directories, and defaults that are paths.
var fileValue = regexp.MustCompile(`^(FILE|DIR|GLOB)$|/`)

func options(flags []*kingpin.FlagModel, command string, of choices) (out []option) {
	for _, f := range cli.Visible(flags) {
		o := option{Name: f.Name, Help: firstSentence(f.Help)}
		if f.Short != 0 {
			o.Short = string(f.Short)
		}
		if !f.IsBoolFlag() {
			o.Value = strings.Trim(f.FormatPlaceHolder(), `".`)
			o.Files = fileValue.MatchString(f.FormatPlaceHolder()) || strings.HasSuffix(f.Name, ".file")
			if values := of(command, f.Name); len(values) > 1 { // one is the default
				o.Choices = strings.Join(values, " ")
			}
		} else if slices.Equal(f.Default, []string{"true"}) {
			out = append(out, option{Name: "no-" + f.Name, Help: "Disable: " + o.Help})
		}
		out = append(out, o)
	}
	return out
}

// firstSentence returns the help text of a menu entry.
func firstSentence(s string) string {
	s, _, _ = strings.Cut(s, ". ")
	return strings.TrimSuffix(s, ".")
}

// quoted returns a word of bash, zsh and fish.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func fishQuoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}

func zshEntry(o option) string { return quoted(o.Name + ":" + strings.ReplaceAll(o.Help, ":", `\:`)) }

var zshSpecial = strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`)

// zshFlag returns a spec of _arguments.
func zshFlag(o option) string {
	help := "[" + zshSpecial.Replace(o.Help) + "]"
	switch {
	case o.Choices != "":
		return quoted(fmt.Sprintf("--%s=%s:value:(%s)", o.Name, help, o.Choices))
	case o.Files:
		return quoted(fmt.Sprintf("--%s=%s:%s:_files", o.Name, help, zshSpecial.Replace(o.Value)))
	case o.Value != "":
		return quoted(fmt.Sprintf("--%s=%s:%s:", o.Name, help, zshSpecial.Replace(o.Value)))
	}
	return quoted("--" + o.Name + help)
}
