package report

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/traits"
	"rdma_exporter/internal/verdict"
)

// runSetup reads the settings of the host and prints what differs from what is wanted.
func (k *Check) runSetup(ctx context.Context, c *machine.Config, stdout io.Writer, log *slog.Logger) (int, error) {
	p, _, err := c.Observe(ctx, log)
	if err != nil {
		return check.ExitUnknown, err
	}
	if p.Node().Setup == nil {
		return check.ExitUnknown, fmt.Errorf("the settings were not read within --collect.timeout=%s, or the collector setup is off", c.Timeout)
	}
	rows := p.Node().Setup.Rows
	report := check.NewSetup(rows, verdict.Seen(p.Picture).Objects, p.Node().InfiniBand.OnlyVirtual(), k.filter.Strict)
	report.Exporter, report.Replay, report.Host, report.Time = verdict.Build(), p.Replay, p.Host, p.Read.UTC()
	of := traits.Of(p.Node())
	report.Kind, report.Traits = of.Kind, of.Traits
	if k.json {
		err = check.SetupJSON(stdout, report)
	} else {
		err = check.SetupTable(stdout, report, rows, k.style(stdout))
	}
	if err != nil {
		return check.ExitUnknown, err
	}
	return report.ExitCode, nil
}

func (k *Check) style(w io.Writer) check.Style {
	return check.Style{
		Colour:  command.IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Verbose: k.verbose, Short: k.short,
	}
}
