package report

import (
	"context"
	"errors"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/machine"
)

// Modules is the command modules, with its flags.
type Modules struct{ json bool }

// Flags adds the flags.
func (m *Modules) Flags(a *kingpin.CmdClause) {
	a.Flag("json", "Print JSON instead of a table.").BoolVar(&m.json)
}

// Run prints the kernel modules that RDMA requires.
func (m *Modules) Run(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	seen, _, err := c.Observe(ctx, std.Log, "infiniband", "modules")
	if err != nil {
		return command.Usage(err)
	}
	if seen.Node().Modules == nil {
		return command.Usage(errors.New("the kernel modules cannot be read: see the log above"))
	}
	if m.json {
		return command.OK, command.PrintJSON(std.Out, seen.Node().Modules.Modules)
	}
	t := command.Table{}
	t.Row("MODULE", "FLAVOUR", "VERSION")
	for _, module := range seen.Node().Modules.Modules {
		t.Row(module.Name, module.Flavour, module.Version)
	}
	return command.OK, command.PrintPlain(std.Out, t.Print)
}
