package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/words"
)

// parse parses a command line. Errors name the flag or argument, and the help that applies.
func (p *program) parse(args []string) (name string, err error) {
	args = normal(args)
	ctx, err := p.ParseContext(args)
	if ctx == nil {
		return "", err
	}
	p.named = p.commandIn(ctx, args)
	if err = p.valueMissing(args); err == nil {
		if name, err = p.Parse(args); err == nil {
			return name, nil
		}
		err = p.rejected(ctx, args, err)
	}
	return "", fmt.Errorf("%w; see %s --help", err, p.prefix())
}

// normal rewrites what kingpin does not handle well: "help COMMAND", whose errors it prints itself, and "-o -", whose
// dash it takes for an empty value.
func normal(args []string) []string {
	if len(args) > 1 && args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	args = slices.Clone(args)
	for i := len(args) - 1; i > 0; i-- {
		if args[i] == "-" && (args[i-1] == "-o" || args[i-1] == "--output") {
			args = slices.Replace(args, i-1, i+1, "--output=-")
		}
	}
	return args
}

// prefix returns the beginning of errors: the program, and the command if one is named.
func (p *program) prefix() string { return words.Join(" ", p.Name, p.named.FullCommand) }

// commandIn returns the command that the arguments name. Without one it has no name, the flags of the default command,
// and all commands below it.
func (p *program) commandIn(ctx *kingpin.ParseContext, args []string) *kingpin.CmdModel {
	if c := ctx.SelectedCommand; c != nil {
		if first, _, _ := strings.Cut(c.FullCommand(), " "); slices.Contains(args, first) {
			return c.Model()
		}
	}
	m := p.Model()
	none := &kingpin.CmdModel{ArgGroupModel: m.ArgGroupModel, CmdGroupModel: m.CmdGroupModel}
	for _, c := range m.Commands {
		if c.Default {
			none.FlagGroupModel = c.FlagGroupModel
		}
	}
	return none
}

// flags returns the flags that may be given: those of all commands and of the one that is named.
func (p *program) flags() []*kingpin.FlagModel { return slices.Concat(p.Model().Flags, p.named.Flags) }

// valueMissing returns the error of a flag whose value is missing. kingpin names the next flag, and ignores the last
// one without a command.
func (p *program) valueMissing(args []string) error {
	for i, arg := range args {
		switch {
		case arg == "--":
			return nil
		case i < len(args)-1 && !isFlag(args[i+1]):
			continue
		}
		for _, f := range p.flags() {
			if !f.IsBoolFlag() && (arg == "--"+f.Name || f.Short != 0 && arg == "-"+string(f.Short)) {
				return fmt.Errorf("%s: value missing", arg)
			}
		}
	}
	return nil
}

func isFlag(arg string) bool { return len(arg) > 1 && arg[0] == '-' && arg != "--" }

// rejected returns why kingpin rejects a command line, from where it stopped and what the command has: its errors have
// no types.
func (p *program) rejected(ctx *kingpin.ParseContext, args []string, err error) error {
	switch stop := ctx.Peek(); {
	case ctx.Error():
		return err
	case stop.IsFlag():
		given := stop.String()
		if i := stop.Index - 1; i < len(args) && strings.HasPrefix(args[i], given) { // -severity for -s
			given, _, _ = strings.Cut(args[i], "=")
		}
		return p.unknownFlag(given)
	case stop.Type == kingpin.TokenArg:
		return p.unexpected(stop.Value)
	case p.named.FullCommand != "" && len(p.named.Commands) > 0:
		return fmt.Errorf("subcommand missing: %s", strings.Join(words.Map(p.named.Commands, commandName), ", "))
	}
	return cmp.Or(p.wrongFlag(ctx), p.required(ctx), err)
}

// wrongFlag returns the error of the first flag that does not accept its value, or is repeated.
func (p *program) wrongFlag(ctx *kingpin.ParseContext) error {
	given := map[string]bool{}
	for _, e := range ctx.Elements {
		c, ok := e.Clause.(*kingpin.FlagClause)
		if !ok {
			continue
		}
		f := c.Model()
		if err := p.wrongValue(ctx.SelectedCommand, f, *e.Value); err != nil {
			return fmt.Errorf("--%s=%s: %w", f.Name, *e.Value, err)
		}
		if given[f.Name] && !isRepeatable(f.Value) {
			return fmt.Errorf("--%s: given more than once", f.Name)
		}
		given[f.Name] = true
	}
	return nil
}

// required returns the error of the first required flag or argument that is not given.
func (p *program) required(ctx *kingpin.ParseContext) error {
	given := map[string]bool{}
	for _, e := range ctx.Elements {
		switch c := e.Clause.(type) {
		case *kingpin.FlagClause:
			given["--"+c.Model().Name] = true
		case *kingpin.ArgClause:
			given[c.Model().Name] = true
		}
	}
	for _, f := range p.flags() {
		if f.Required && !given["--"+f.Name] {
			return fmt.Errorf("%s is required", FlagUsage(f))
		}
	}
	for _, a := range p.named.Args {
		if a.Required && !given[a.Name] {
			return fmt.Errorf("%s is required", a.Name)
		}
	}
	return nil
}

// wrongValue returns why a flag does not accept a value, nil if it does.
func (p *program) wrongValue(of *kingpin.CmdClause, f *kingpin.FlagModel, value string) error {
	err := f.Value.Set(value)
	if err == nil {
		return nil
	}
	if v, ok := f.Value.(kingpin.Getter); ok {
		switch v.Get().(type) {
		case time.Duration:
			return errors.New("must be a duration such as 30s or 5m")
		case int:
			return errors.New("must be a number")
		}
	}
	choices, ofAll, _ := p.FlagCompletion(f.Name, "")
	if !ofAll && of != nil {
		choices, _, _ = of.FlagCompletion(f.Name, "")
	}
	if len(choices) > 0 {
		return fmt.Errorf("must be one of %s", strings.Join(choices, ", "))
	}
	return err
}

// unknownFlag returns the error of a flag that the command does not have.
func (p *program) unknownFlag(given string) error {
	name := strings.TrimLeft(given, "-")
	known := namesOf(p.flags())
	var others []string
	for _, c := range p.Model().FlattenedCommands() {
		if !slices.Contains(known, name) && slices.Contains(namesOf(c.Flags), name) {
			others = append(others, c.FullCommand)
		}
	}
	near := command.Closest(strings.TrimPrefix(name, "no-"), known)
	switch {
	case len(others) > 0 && p.named.FullCommand == "":
		return fmt.Errorf("--%s is a flag of %s and must follow that command", name, strings.Join(others, ", "))
	case len(others) > 0:
		return fmt.Errorf("--%s is a flag of %s", name, strings.Join(others, ", "))
	case len(near) > 0 && len(name) > 1:
		return fmt.Errorf("unknown flag %s (did you mean --%s?)", given, near[0])
	}
	return fmt.Errorf("unknown flag %s", given)
}

// namesOf returns the names of flags, without hidden ones.
func namesOf(flags []*kingpin.FlagModel) []string { return words.Map(Visible(flags), flagName) }

func flagName(f *kingpin.FlagModel) string { return f.Name }

// unexpected returns the error of a word that is neither a command nor an argument.
func (p *program) unexpected(word string) error {
	if len(p.named.Commands) == 0 {
		return fmt.Errorf("unexpected argument %s", word)
	}
	whole := words.Join(" ", p.named.FullCommand, word)
	if near := command.Closest(whole, words.Map(p.named.Commands, commandName)); len(near) > 0 {
		return fmt.Errorf("unknown command %s (did you mean %s?)", whole, near[0])
	}
	return fmt.Errorf("unknown command %s", whole)
}

func commandName(c *kingpin.CmdModel) string { return c.FullCommand }
