package report

import (
	"context"
	"fmt"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/traits"
	"rdma_exporter/internal/verdict"
)

// runSetup reads the settings of the host and prints what differs from what is wanted.
func (k *Check) runSetup(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	p, _, err := c.Observe(ctx, std.Log)
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
		err = check.SetupJSON(std.Out, report)
	} else {
		err = check.SetupTable(std.Out, report, rows, k.style(std))
	}
	if err != nil {
		return check.ExitUnknown, err
	}
	return report.ExitCode, nil
}
