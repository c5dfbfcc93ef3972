package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/words"
)

// parse parses a command line. Errors name the flag or argument, and the help that applies.
func (p *program) parse(args []string) (name string, err error) {
	args = normal(args)
	if name, err = p.Parse(args); err == nil {
		return name, nil
	}
	ctx, _ := p.ParseContext(args)
	of := commandIn(ctx, args)
	help := words.Join(" ", p.Name, fullCommand(of), "--help")
	return "", fmt.Errorf("%w; see %s", p.reworded(ctx, of, args, err), help)
}

// normal rewrites what kingpin does not handle well: "help COMMAND", whose errors it prints itself, and "-o -".
func normal(args []string) []string {
	if len(args) > 1 && args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	return joinDash(args)
}

// joinDash makes "-o -" one argument: kingpin takes a lone dash for an empty one.
func joinDash(args []string) []string {
	var out []string
	for _, arg := range args {
		if n := len(out); arg == "-" && n > 0 && (out[n-1] == "-o" || out[n-1] == "--output") {
			out[n-1] = "--output=-"
			continue
		}
		out = append(out, arg)
	}
	return out
}

// prefix begins the errors of a command line: the program, and the command if one is named.
func (p *program) prefix(args []string) string {
	args = normal(args)
	ctx, _ := p.ParseContext(args)
	return words.Join(" ", p.Name, fullCommand(commandIn(ctx, args)))
}

// commandIn is the command that the arguments name; nil for the default one.
func commandIn(ctx *kingpin.ParseContext, args []string) *kingpin.CmdClause {
	if ctx == nil || ctx.SelectedCommand == nil {
		return nil
	}
	first, _, _ := strings.Cut(ctx.SelectedCommand.FullCommand(), " ")
	if !slices.Contains(args, first) {
		return nil
	}
	return ctx.SelectedCommand
}

func fullCommand(c *kingpin.CmdClause) string {
	if c == nil {
		return ""
	}
	return c.FullCommand()
}

// Errors of kingpin, which has no types for them (v2, app.go, flags.go, parser.go).
var (
	unknownFlag     = regexp.MustCompile(`^unknown (?:long|short) flag '(.+)'$`)
	valueMissing    = regexp.MustCompile(`^expected argument for flag '(.+)'$`)
	flagRepeated    = regexp.MustCompile(`^flag '(.+)' cannot be repeated$`)
	flagsMissing    = regexp.MustCompile(`^required flag\(s\) (.+) not provided$`)
	argumentMissing = regexp.MustCompile(`^required argument '(.+)' not provided$`)
	unexpectedWord  = regexp.MustCompile(`^(?:unexpected(?: argument)?|expected command but got) ['"]?(.+?)['"]?$`)
	subcommandOf    = regexp.MustCompile(`^must select a subcommand of '(.+)'$`)
	oneOf           = regexp.MustCompile(`One of: \[(.+)\]`)
	notInEnum       = regexp.MustCompile(`^enum value must be one of (.+), got '.*'$`)
)

// reworded is an error of kingpin as the other errors are worded. of is the command that is named, if any.
func (p *program) reworded(ctx *kingpin.ParseContext, of *kingpin.CmdClause, args []string, err error) error {
	for _, known := range []struct {
		form     *regexp.Regexp
		reworded func(what string) error
	}{
		{unknownFlag, func(name string) error { return p.unknownFlag(of, args, name) }},
		{valueMissing, func(name string) error { return fmt.Errorf("%s: value missing", withoutValue(args, name)) }},
		{flagRepeated, func(name string) error { return fmt.Errorf("--%s: given more than once", name) }},
		{flagsMissing, func(names string) error {
			return fmt.Errorf("required flag missing: %s", p.usages(of, strings.ReplaceAll(names, "'", "")))
		}},
		{argumentMissing, func(name string) error { return fmt.Errorf("required argument missing: %s", name) }},
		{subcommandOf, func(name string) error {
			return fmt.Errorf("subcommand missing: %s", strings.Join(p.below(name), ", "))
		}},
		{unexpectedWord, func(word string) error { return p.unexpected(of, word) }},
	} {
		if m := known.form.FindStringSubmatch(err.Error()); m != nil {
			return known.reworded(m[1])
		}
	}
	if flag, given, wrong := wrongValue(ctx); wrong != nil {
		return fmt.Errorf("--%s=%s: %w", flag, given, wrong)
	}
	return err
}

// withoutValue is the flag whose value is missing: where the next flag has its value after a =, kingpin names that one
// (flags.go, parse).
func withoutValue(args []string, named string) string {
	for i, a := range args {
		if i > 0 && strings.HasPrefix(a, named+"=") {
			return args[i-1]
		}
	}
	return named
}

// flagsOf are the flags that a command has, with those of all commands. Without a command they are those of the default
// one.
func (p *program) flagsOf(c *kingpin.CmdClause) (out []*kingpin.FlagModel) {
	m := p.Model()
	out = slices.Clone(m.Flags)
	for _, x := range m.FlattenedCommands() {
		if x.FullCommand == fullCommand(c) || c == nil && x.Default {
			out = append(out, x.Flags...)
		}
	}
	return slices.DeleteFunc(out, func(f *kingpin.FlagModel) bool { return f.Hidden })
}

func (p *program) unknownFlag(of *kingpin.CmdClause, args []string, given string) error {
	for _, arg := range args { // -severity=critical
		if rest, ok := strings.CutPrefix(arg, given); ok && !strings.HasPrefix(given, "--") && rest != "" {
			given, _, _ = strings.Cut(arg, "=")
			break
		}
	}
	name := strings.TrimPrefix(strings.TrimLeft(given, "-"), "no-")
	var others []string
	for _, c := range p.Model().FlattenedCommands() {
		if c.FullCommand != fullCommand(of) &&
			slices.ContainsFunc(c.Flags, func(f *kingpin.FlagModel) bool { return f.Name == name }) {
			others = append(others, c.FullCommand)
		}
	}
	near := command.Closest(name, words.Of(p.flagsOf(of), func(f *kingpin.FlagModel) string { return f.Name }))
	switch whole := strings.TrimLeft(given, "-") == name; {
	case whole && len(others) > 0 && of == nil:
		return fmt.Errorf("--%s is a flag of %s and must follow that command", name, strings.Join(others, ", "))
	case whole && len(others) > 0:
		return fmt.Errorf("--%s is a flag of %s", name, strings.Join(others, ", "))
	case len(near) > 0 && len(name) > 1:
		return fmt.Errorf("unknown flag %s (did you mean --%s?)", given, near[0])
	}
	return fmt.Errorf("unknown flag %s", given)
}

// usages writes flags, which are separated by commas, with their values.
func (p *program) usages(of *kingpin.CmdClause, flags string) string {
	var out []string
	for flag := range strings.SplitSeq(flags, ", ") {
		for _, f := range p.flagsOf(of) {
			if "--"+f.Name == flag {
				out = append(out, FlagUsage(f))
			}
		}
	}
	return strings.Join(out, ", ")
}

// below lists the commands of a group, or all without one.
func (p *program) below(group string) (out []string) {
	for _, c := range p.Model().FlattenedCommands() {
		if group == "" || strings.HasPrefix(c.FullCommand, group+" ") {
			out = append(out, c.FullCommand)
		}
	}
	return out
}

// unexpected is the error of a word that is neither a command nor an argument.
func (p *program) unexpected(of *kingpin.CmdClause, word string) error {
	group := fullCommand(of)
	candidates := p.below(group)
	switch {
	case of == nil:
		candidates = append(candidates, "expect", "gpu", "inventory", "maintenance")
	case len(candidates) == 0 && slices.Contains(p.below(""), word):
		return fmt.Errorf("unexpected argument %s: only one command can be given", word)
	case len(candidates) == 0:
		return fmt.Errorf("unexpected argument %s", word)
	}
	whole := words.Join(" ", group, word)
	if near := command.Closest(whole, candidates); len(near) > 0 {
		return fmt.Errorf("unknown command %s (did you mean %s?)", whole, near[0])
	}
	return fmt.Errorf("unknown command %s", whole)
}

// wrongValue finds the flag whose value is the cause of an error, which kingpin does not name.
func wrongValue(ctx *kingpin.ParseContext) (flag, given string, err error) {
	for _, e := range ctx.Elements {
		f, ok := e.Clause.(*kingpin.FlagClause)
		if !ok || e.Value == nil {
			continue
		}
		m := f.Model()
		if err = m.Value.Set(*e.Value); err == nil {
			continue
		}
		switch text := err.Error(); {
		case notInEnum.MatchString(text):
			err = fmt.Errorf("must be one of %s", strings.ReplaceAll(notInEnum.FindStringSubmatch(text)[1], ",", ", "))
		case strings.HasPrefix(text, "time: "):
			err = errors.New("must be a duration such as 30s or 5m")
		case strings.HasPrefix(text, "strconv."):
			err = errors.New("must be a number")
		case oneOf.MatchString(m.Help): // of promslog
			err = fmt.Errorf("must be one of %s", oneOf.FindStringSubmatch(m.Help)[1])
		}
		return m.Name, *e.Value, err
	}
	return "", "", nil
}
