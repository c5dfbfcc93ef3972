package app

import (
	"context"
	"io"
	"log/slog"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	promslogflag "github.com/prometheus/common/promslog/flag"
)

// program is the command line: its flags, what they were set to, and what its commands run.
type program struct {
	*kingpin.Application
	config config
	logs   *promslog.Config
	runs   map[string]runner
}

// runner runs a command whose flags are parsed.
type runner func(ctx context.Context, stdout, stderr io.Writer, log *slog.Logger) (int, error)

// The commands that stay and serve; serveCommand runs where none is named.
const (
	serveCommand  = "serve"
	fabricCommand = "fabric"
)

// CommandLine describes commands and flags, for the man page and the completions of shells.
func CommandLine() *kingpin.ApplicationModel { return newProgram(Outside{}).Model() }

func newProgram(o Outside) *program {
	p := &program{
		Application: kingpin.New("rdma_exporter", "Health of RDMA fabrics (InfiniBand and RoCE) for Prometheus. Reads only, changes nothing."),
		logs:        &promslog.Config{},
		runs:        map[string]runner{},
	}
	p.Version(versionText())
	p.UsageTemplate(usageTemplate)
	p.UsageFuncs(usageFuncs)
	p.HelpFlag.Short('h').Help("Show this; after a command, its own flags.")
	p.VersionFlag.Help("Show version, revision and what the program is built with.")
	p.config.flags(p.Application)
	promslogflag.AddFlags(p.Application, p.logs)
	p.commands(o)
	return p
}

// commands adds the commands, in the order in which a person meets them.
func (p *program) commands(out Outside) {
	c := &p.config

	s := serveConfig{serve: out.Serve}
	s.flags(p.add(p, serveCommand, "Serve metrics, evaluate the rules, send alerts (the default).", func(ctx context.Context, _, _ io.Writer, log *slog.Logger) (int, error) {
		return runServe(ctx, c, &s, log)
	}).Default())

	f := fabricConfig{open: out.MAD}
	f.flags(p.add(p, fabricCommand, "Serve metrics of a whole InfiniBand fabric, seen from a port of this host: one for each fabric.", func(ctx context.Context, _, _ io.Writer, log *slog.Logger) (int, error) {
		return runFabric(ctx, c, &f, log)
	}))

	var k checkConfig
	k.flags(p.add(p, "check", "Say what is wrong with this host. Exit code: 0 ok, 1 warning, 2 critical, 3 unknown.", func(ctx context.Context, stdout, stderr io.Writer, log *slog.Logger) (int, error) {
		return runCheck(ctx, c, &k, stdout, stderr, log)
	}))

	var h healthyConfig
	h.flags(p.add(p, "healthy", "Say whether the exporter in this container or on this host answers. Exit code: 0 yes, 1 no.", func(ctx context.Context, stdout, _ io.Writer, _ *slog.Logger) (int, error) {
		return runHealthy(ctx, &h, stdout)
	}))

	var t topoConfig
	t.flags(p.add(p, "topo", "Draw the machine: GPUs and NICs in the PCI tree, their distances, and whether data goes between them directly.", func(ctx context.Context, stdout, _ io.Writer, log *slog.Logger) (int, error) {
		return runTopo(ctx, c, &t, stdout, log)
	}))

	var o listConfig
	o.flags(p.add(p, "optics", "Show the modules and cables of this host: temperature, optical power, thresholds.", func(ctx context.Context, stdout, _ io.Writer, log *slog.Logger) (int, error) {
		return runOptics(ctx, c, &o, stdout, log)
	}))

	var e listConfig
	expect := p.Command("expect", "What rate and width links ought to have, and why.")
	e.flags(p.add(expect, "list", "Say what is expected of each link, with the source of the evidence.", func(ctx context.Context, stdout, _ io.Writer, log *slog.Logger) (int, error) {
		return runExpectList(ctx, c, &e, stdout, log)
	}))

	var v listConfig
	inventory := p.Command("inventory", "Which RDMA devices ought to be there.")
	v.flags(p.add(inventory, "list", "Say which devices are remembered, and which of them are missing.", func(ctx context.Context, stdout, _ io.Writer, log *slog.Logger) (int, error) {
		return runInventoryList(ctx, c, &v, stdout, log)
	}))

	var ac acceptConfig
	ac.flags(p.add(p, "accept", "After a planned change: make the running exporters forget what was there before, devices and links of this host and of the fabric. Without a name only show what there is to accept.", func(ctx context.Context, stdout, _ io.Writer, _ *slog.Logger) (int, error) {
		return runAccept(ctx, c, &ac, stdout)
	}))

	var mc maintenanceConfig
	planned := p.Command("maintenance", "Announce planned work on this host, so that nobody is paged for it.")
	mc.flags(p.add(planned, "start", "Announce maintenance from now on, in place of what is announced already. It ends by itself.", func(ctx context.Context, stdout, _ io.Writer, _ *slog.Logger) (int, error) {
		return runMaintenanceStart(ctx, c, &mc, stdout)
	}))
	p.add(planned, "end", "End the maintenance that is announced.", func(ctx context.Context, stdout, _ io.Writer, _ *slog.Logger) (int, error) {
		return runMaintenanceEnd(ctx, c, stdout)
	})
	p.add(planned, "status", "Print the maintenance that is announced.", func(ctx context.Context, stdout, _ io.Writer, _ *slog.Logger) (int, error) {
		return runMaintenanceStatus(ctx, c, stdout)
	})

	var w captureConfig
	w.flags(p.add(p, "capture", "Write everything that the collectors read on this host into one text archive.", func(ctx context.Context, stdout, _ io.Writer, log *slog.Logger) (int, error) {
		return runCapture(ctx, c, &w, stdout, log)
	}))

	var l checkConfigConfig
	l.flags(p.add(p, "check-config", "Say whether a file for --config.file is valid. Exit code: 0 yes, 2 no.", func(_ context.Context, stdout, stderr io.Writer, _ *slog.Logger) (int, error) {
		return runCheckConfig(&l, stdout, stderr)
	}))

	var r rulesConfig
	r.flags(p.add(p, "rules", "Write out the alerting rules in the binary, for a Prometheus.", func(_ context.Context, stdout, _ io.Writer, _ *slog.Logger) (int, error) {
		return runRules(&r, stdout)
	}))

	var bt backtestConfig
	bt.flags(p.add(p, "backtest", "List the alerts that would have fired on a fleet's history in a Prometheus: how often, on which hosts.", func(ctx context.Context, stdout, stderr io.Writer, _ *slog.Logger) (int, error) {
		return runBacktest(ctx, &bt, stdout, stderr)
	}))

	var rb runbookConfig
	rb.flags(p.add(p, "runbook", "Print what an alert means and what to do about it.", func(_ context.Context, stdout, _ io.Writer, _ *slog.Logger) (int, error) {
		return runRunbook(&rb, stdout)
	}))

	var b dashboardsConfig
	b.flags(p.add(p, "dashboards", "Write out the Grafana dashboards of this version.", func(context.Context, io.Writer, io.Writer, *slog.Logger) (int, error) {
		return runDashboards(&b)
	}))
}

// add adds a command with what it runs.
func (p *program) add(to interface {
	Command(name, help string) *kingpin.CmdClause
}, name, help string, run runner,
) *kingpin.CmdClause {
	c := to.Command(name, help)
	p.runs[c.FullCommand()] = run
	return c
}
