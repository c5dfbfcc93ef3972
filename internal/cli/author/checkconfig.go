package author

import (
	"context"
	"fmt"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/machine"
)

// CheckConfig is the command check-config, with its flags.
type CheckConfig struct {
	file string
}

// Flags adds the flags.
func (k *CheckConfig) Flags(a *kingpin.CmdClause) {
	a.Arg("FILE", "Configuration file to validate.").Required().StringVar(&k.file)
}

// Run prints the content of a valid file in numbers, or all errors of an invalid one, a line each.
func (k *CheckConfig) Run(_ context.Context, _ *machine.Config, std command.Streams) (int, error) {
	_, c, err := machine.ParseSite(k.file)
	if err != nil {
		fmt.Fprintln(std.Err, err)
		return command.UsageError, nil
	}
	fmt.Fprintf(std.Out, "%s: valid, %d pins, %d ignores, %d cables, %d setups, %d switches, %d racks, %d peers\n",
		k.file,
		len(c.Pins), len(c.Ignore), len(c.Cabling), len(c.Setup), len(c.Switches), len(c.Racks),
		len(c.Peers))
	return command.OK, nil
}
