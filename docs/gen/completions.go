package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/cli"
)

// completions are the shell completions, by path in packaging/completions.
func completions() []page {
	m := cli.CommandLine()
	return []page{
		{"bash/rdma_exporter", bashCompletion(m)},
		{"zsh/_rdma_exporter", zshCompletion(m)},
		{"fish/rdma_exporter.fish", fishCompletion(m)},
	}
}

const completionHead = "# Written by go run ./docs/gen from the flags and commands of the program.\n"

// option is a flag for completion.
type option struct {
	name, help string
	short      string // a letter, or empty
	value      string // placeholder after =; empty for a boolean flag
	choices    []string
	files      bool
}

// fileValue matches placeholders of files and directories, and defaults that are paths.
var fileValue = regexp.MustCompile(`^(FILE|DIR|GLOB|"/.*")$|/`)

func options(flags []*kingpin.FlagModel) (out []option) {
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		o := option{name: f.Name, help: firstSentence(f.Help)}
		if f.Short != 0 {
			o.short = string(f.Short)
		}
		if f.IsBoolFlag() {
			if strings.HasPrefix(cli.FlagUsage(f), "--[no-]") {
				out = append(out, option{name: "no-" + f.Name, help: "Disable: " + o.help})
			}
			out = append(out, o)
			continue
		}
		o.value = strings.Trim(f.FormatPlaceHolder(), `".`)
		o.files = fileValue.MatchString(f.FormatPlaceHolder()) || strings.HasSuffix(f.Name, ".file")
		if strings.Contains(o.value, "|") {
			o.choices = strings.Split(o.value, "|")
		}
		out = append(out, o)
	}
	return out
}

// firstSentence is the help text of a menu entry.
func firstSentence(s string) string {
	s, _, _ = strings.Cut(s, ". ")
	return strings.TrimSuffix(s, ".")
}

// shown are the commands of a group, without help.
func shown(commands []*kingpin.CmdModel) []*kingpin.CmdModel {
	return slices.DeleteFunc(slices.Clone(commands), func(c *kingpin.CmdModel) bool { return c.Name == "help" })
}

func names(commands []*kingpin.CmdModel) string {
	var out []string
	for _, c := range shown(commands) {
		out = append(out, c.Name)
	}
	return strings.Join(out, " ")
}

// flagsWithout are the flags without a command: those of all commands and of the default one.
func flagsWithout(m *kingpin.ApplicationModel) []*kingpin.FlagModel {
	flags := slices.Clone(m.Flags)
	for _, c := range m.Commands {
		if c.Default {
			flags = append(flags, c.Flags...)
		}
	}
	return flags
}

// each calls f for every command and its subcommands.
func each(commands []*kingpin.CmdModel, f func(*kingpin.CmdModel)) {
	for _, c := range shown(commands) {
		f(c)
		each(c.Commands, f)
	}
}

// quoted is a word of sh, zsh and fish.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func bashWords(flags []*kingpin.FlagModel) string {
	var words []string
	for _, o := range options(flags) {
		w := "--" + o.name
		if o.value != "" {
			w += "="
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

func bashCompletion(m *kingpin.ApplicationModel) []byte {
	var d document
	d.WriteString("# bash completion for rdma_exporter\n" + completionHead)
	d.WriteString(`_rdma_exporter() {
  local i word command='' cur=$2 flags words=''
  # After = is a value: a choice, or a file name, which the shell completes itself.
  if [[ $cur == = || ${COMP_WORDS[COMP_CWORD-1]} == = ]]; then
    case ${COMP_WORDS[COMP_CWORD-1]}${COMP_WORDS[COMP_CWORD-2]} in
`)
	choices := map[string]bool{}
	each(m.Commands, func(c *kingpin.CmdModel) {
		for _, o := range options(c.Flags) {
			if o.choices != nil && !choices[o.name] {
				choices[o.name] = true
				d.line("      *--%s*) words=%s ;;", o.name, quoted(strings.Join(o.choices, " ")))
			}
		}
	})
	d.WriteString(`    esac
    [[ -z $words ]] || mapfile -t COMPREPLY < <(compgen -W "$words" -- "${cur#=}")
    return
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    [[ $word == -* || $word == = || ${COMP_WORDS[i-1]} == = ]] || command+="${command:+ }$word"
  done
`)
	d.line("  flags=%s", quoted(bashWords(m.Flags)))
	d.line("  case $command in")
	d.line("    '') words=%s; flags=%s ;;", quoted(names(m.Commands)+" help"), quoted(bashWords(flagsWithout(m))))
	each(m.Commands, func(c *kingpin.CmdModel) {
		set := ""
		if own := bashWords(c.Flags); own != "" {
			set = "flags+=" + quoted(" "+own)
		}
		if below := names(c.Commands); below != "" {
			set = "words=" + quoted(below)
		}
		if set != "" {
			d.line("    %s) %s ;;", quoted(c.FullCommand), set)
		}
	})
	d.WriteString(`  esac
  [[ $cur != -* ]] || words=$flags
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
  [[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace
}
complete -o default -F _rdma_exporter rdma_exporter
`)
	return d.Bytes()
}

func fishCompletion(m *kingpin.ApplicationModel) []byte {
	var d document
	d.WriteString("# fish completion for rdma_exporter\n" + completionHead)
	d.line("complete -c rdma_exporter -f")
	fishCommands(&d, "__fish_use_subcommand", m.Commands)
	fishFlags(&d, "", m.Flags)
	each(m.Commands, func(c *kingpin.CmdModel) {
		when := ""
		for _, word := range strings.Fields(c.FullCommand) {
			when += "; and __fish_seen_subcommand_from " + word
		}
		when = strings.TrimPrefix(when, "; and ")
		if below := names(c.Commands); below != "" {
			fishCommands(&d, when+"; and not __fish_seen_subcommand_from "+below, c.Commands)
		}
		if c.Default {
			when += "; or __fish_use_subcommand"
		}
		fishFlags(&d, when, c.Flags)
	})
	return d.Bytes()
}

func fishCommands(d *document, when string, commands []*kingpin.CmdModel) {
	for _, c := range shown(commands) {
		d.line("complete -c rdma_exporter -n %s -a %s -d %s", quoted(when), c.Name, fishQuoted(firstSentence(c.Help)))
	}
}

func fishFlags(d *document, when string, flags []*kingpin.FlagModel) {
	for _, o := range options(flags) {
		line := "complete -c rdma_exporter"
		if when != "" {
			line += " -n " + quoted(when)
		}
		if o.short != "" {
			line += " -s " + o.short
		}
		line += " -l " + o.name
		switch {
		case o.choices != nil:
			line += " -x -a " + quoted(strings.Join(o.choices, " "))
		case o.files:
			line += " -r -F"
		case o.value != "":
			line += " -x"
		}
		d.line("%s -d %s", line, fishQuoted(o.help))
	}
}

func fishQuoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}

func zshCompletion(m *kingpin.ApplicationModel) []byte {
	var d document
	d.WriteString("#compdef rdma_exporter\n" + completionHead)
	d.line("\n_rdma_exporter() {")
	d.line("  local curcontext=$curcontext state line")
	d.line("  local -a global=(\n%s\n  )", zshFlags(m.Flags, "    ", ""))
	zshLevel(&d, m.Commands, flagsWithout(m)[len(m.Flags):], "  ")
	d.line("}\n\n_rdma_exporter \"$@\"")
	return d.Bytes()
}

// zshLevel completes the flags before a command, the commands, and their flags and arguments.
func zshLevel(d *document, commands []*kingpin.CmdModel, before []*kingpin.FlagModel, indent string) {
	d.line("%s_arguments -C $global \\\n%s%s  '1: :->command' '*:: :->rest'",
		indent, zshFlags(before, indent+"  ", " \\\n"), indent)
	d.line("%scase $state in", indent)
	d.line("%s  command)", indent)
	d.line("%s    local -a commands=(", indent)
	for _, c := range shown(commands) {
		d.line("%s      %s", indent, quoted(c.Name+":"+strings.ReplaceAll(firstSentence(c.Help), ":", `\:`)))
	}
	d.line("%s    )\n%s    _describe command commands ;;", indent, indent)
	d.line("%s  rest)\n%s    case $words[1] in", indent, indent)
	for _, c := range shown(commands) {
		d.line("%s      %s)", indent, c.Name)
		if len(c.Commands) > 0 {
			zshLevel(d, c.Commands, nil, indent+"        ")
			d.line("%s        ;;", indent)
			continue
		}
		d.line("%s        _arguments $global \\\n%s%s          %s ;;",
			indent, zshFlags(c.Flags, indent+"          ", " \\\n"), indent, zshArgs(c.Args))
	}
	d.line("%s    esac ;;\n%sesac", indent, indent)
}

func zshArgs(args []*kingpin.ArgModel) string {
	if len(args) == 0 {
		return "'*: :'"
	}
	action := ""
	if args[0].Name == "FILE" {
		action = "_files"
	}
	return fmt.Sprintf("'*:%s:%s'", args[0].Name, action)
}

var zshSpecial = strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`)

// zshFlags writes the specs of _arguments, one per line, each followed by end.
func zshFlags(flags []*kingpin.FlagModel, indent, end string) string {
	var specs []string
	for _, o := range options(flags) {
		spec := "--" + o.name
		if o.value != "" {
			spec += "="
		}
		spec += "[" + zshSpecial.Replace(o.help) + "]"
		switch {
		case o.choices != nil:
			spec += ":value:(" + strings.Join(o.choices, " ") + ")"
		case o.files:
			spec += ":" + o.value + ":_files"
		case o.value != "":
			spec += ":" + zshSpecial.Replace(o.value) + ":"
		}
		specs = append(specs, indent+quoted(spec)+end)
	}
	if end == "" {
		return strings.Join(specs, "\n")
	}
	return strings.Join(specs, "")
}
