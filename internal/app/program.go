package app

import (
	"context"
	"io"
	"log/slog"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	promslogflag "github.com/prometheus/common/promslog/flag"
)

// program is the command line: flags, their values, and the functions of the commands.
type program struct {
	*kingpin.Application
	config config
	logs   *promslog.Config
	runs   map[string]runner
}

// runner runs a command whose flags are parsed.
type runner func(ctx context.Context, stdout, stderr io.Writer, log *slog.Logger) (int, error)

// The daemons; serveCommand is the default.
const (
	serveCommand  = "serve"
	fabricCommand = "fabric"
	helperCommand = "helper"
)

// CommandLine describes commands and flags, for the man page and shell completions.
func CommandLine() *kingpin.ApplicationModel { return newProgram(Outside{}).Model() }

func newProgram(o Outside) *program {
	p := &program{
		Application: kingpin.New("rdma_exporter", "Prometheus exporter and alerting daemon for RDMA fabrics under GPU clusters: InfiniBand, RoCEv2, iWARP and cloud adapters. Read-only."),
		logs:        &promslog.Config{},
		runs:        map[string]runner{},
	}
	p.Version(versionText())
	p.UsageTemplate(usageTemplate)
	p.UsageFuncs(usageFuncs)
	p.HelpFlag.Short('h').Help("Show help; after a command, the help of the command.")
	p.VersionFlag.Help("Show version and build information.")
	p.config.flags(p.Application)
	promslogflag.AddFlags(p.Application, p.logs)
	p.commands(o)
	return p
}

// commands adds the commands, in the order of --help.
func (p *program) commands(out Outside) {
	c := &p.config

	s := serveConfig{serve: out.Serve}
	s.flags(p.add(p, serveCommand, "Serve metrics, evaluate the alerting rules, send alerts (default).", func(ctx context.Context, _, _ io.Writer, log *slog.Logger) (int, error) {
		return runServe(ctx, c, &s, log)
	}).Default())

	f := fabricConfig{open: out.MAD}
	f.flags(p.add(p, fabricCommand, "Serve metrics of a whole InfiniBand subnet, swept from a port of this host. Run it once per subnet.", func(ctx context.Context, _, _ io.Writer, log *slog.Logger) (int, error) {
		return runFabric(ctx, c, &f, log)
	}))

	p.add(p, helperCommand, "Read for serve what requires CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH: processes, vital product data, DMA-BUFs. Listens on --helper.socket or a systemd socket.", func(ctx context.Context, _, _ io.Writer, log *slog.Logger) (int, error) {
		return runHelper(ctx, c, log)
	})

	var k checkConfig
	k.flags(p.add(p, "check", "Report the faults of this host. Exit code: 0 ok, 1 warning, 2 critical, 3 unknown.", func(ctx context.Context, stdout, stderr io.Writer, log *slog.Logger) (int, error) {
		return runCheck(ctx, c, &k, stdout, stderr, log)
	}))

	var h healthyConfig
	h.flags(p.add(p, "healthy", "Health check of the exporter in this container or on this host. Exit code: 0 healthy, 1 not.", func(ctx context.Context, stdout, _ io.Writer, _ *slog.Logger) (int, error) {
		return runHealthy(ctx, &h, stdout)
	}))

	var t topoConfig
	t.flags(p.add(p, "topo", "Draw GPUs and NICs in the PCI tree, with their distances and whether GPUDirect RDMA works between them.", func(ctx context.Context, stdout, _ io.Writer, log *slog.Logger) (int, error) {
		return runTopo(ctx, c, &t, stdout, log)
	}))

	var o listConfig
	o.flags(p.add(p, "optics", "Show the transceivers and cables of this host: temperature, optical power, thresholds.", func(ctx context.Context, stdout, _ io.Writer, log *slog.Logger) (int, error) {
		return runOptics(ctx, c, &o, stdout, log)
	}))

	var e listConfig
	expect := p.Command("expect", "Expected rate and width of links.")
	e.flags(p.add(expect, "list", "List the expected rate and width of each link, and the source of the expectation.", func(ctx context.Context, stdout, _ io.Writer, log *slog.Logger) (int, error) {
		return runExpectList(ctx, c, &e, stdout, log)
	}))

	var v listConfig
	inventory := p.Command("inventory", "Known RDMA devices.")
	v.flags(p.add(inventory, "list", "List the known RDMA devices, and which of them are missing.", func(ctx context.Context, stdout, _ io.Writer, log *slog.Logger) (int, error) {
		return runInventoryList(ctx, c, &v, stdout, log)
	}))

	var ac acceptConfig
	ac.flags(p.add(p, "accept", "Accept a planned change: the running exporters discard the earlier state of devices and links, of this host and of the fabric. Without NAME and --all, list what there is to accept.", func(ctx context.Context, stdout, _ io.Writer, _ *slog.Logger) (int, error) {
		return runAccept(ctx, c, &ac, stdout)
	}))

	var mc maintenanceConfig
	planned := p.Command("maintenance", "Announce planned work on this host. The shipped Alertmanager configuration then inhibits its other alerts.")
	mc.flags(p.add(planned, "start", "Start maintenance, replacing the current one. It ends after --for.", func(ctx context.Context, stdout, _ io.Writer, _ *slog.Logger) (int, error) {
		return runMaintenanceStart(ctx, c, &mc, stdout)
	}))
	p.add(planned, "end", "End maintenance.", func(ctx context.Context, stdout, _ io.Writer, _ *slog.Logger) (int, error) {
		return runMaintenanceEnd(ctx, c, stdout)
	})
	p.add(planned, "status", "Show the current maintenance.", func(ctx context.Context, stdout, _ io.Writer, _ *slog.Logger) (int, error) {
		return runMaintenanceStatus(ctx, c, stdout)
	})

	var gr gpuReleaseConfig
	gpu := p.Command("gpu", "Release the GPUs that the running exporter reads, before a GPU reset or a driver update.")
	gr.flags(p.add(gpu, "release", "Pause GPU monitoring and close all GPU handles. GPUs are read again after --for.", func(ctx context.Context, stdout, _ io.Writer, _ *slog.Logger) (int, error) {
		return runGPURelease(ctx, c, &gr, stdout)
	}))
	p.add(gpu, "resume", "End the pause of GPU monitoring.", func(ctx context.Context, stdout, _ io.Writer, _ *slog.Logger) (int, error) {
		return runGPUResume(ctx, c, stdout)
	})
	p.add(gpu, "status", "Show whether GPU monitoring is paused, until when, and by whom.", func(ctx context.Context, stdout, _ io.Writer, _ *slog.Logger) (int, error) {
		return runGPUStatus(ctx, c, stdout)
	})

	p.add(p, "reload", "Reload the files of the running exporter: site configuration, rules, Alertmanager configuration. Exit code: 0 reloaded, 2 not, with the error.", func(ctx context.Context, stdout, _ io.Writer, _ *slog.Logger) (int, error) {
		return runReload(ctx, c, stdout)
	})

	var w captureConfig
	w.flags(p.add(p, "capture", "Write everything that the collectors read on this host to one text archive.", func(ctx context.Context, stdout, _ io.Writer, log *slog.Logger) (int, error) {
		return runCapture(ctx, c, &w, stdout, log)
	}))

	var l checkConfigConfig
	l.flags(p.add(p, "check-config", "Validate a file for --config.file. Exit code: 0 valid, 2 invalid.", func(_ context.Context, stdout, stderr io.Writer, _ *slog.Logger) (int, error) {
		return runCheckConfig(&l, stdout, stderr)
	}))

	var r rulesConfig
	r.flags(p.add(p, "rules", "Write the built-in alerting rules, for a Prometheus.", func(_ context.Context, stdout, _ io.Writer, _ *slog.Logger) (int, error) {
		return runRules(&r, stdout)
	}))

	var bt backtestConfig
	bt.flags(p.add(p, "backtest", "Evaluate the rules on the history in a Prometheus: which alerts would have fired, how often, on which hosts.", func(ctx context.Context, stdout, stderr io.Writer, _ *slog.Logger) (int, error) {
		return runBacktest(ctx, &bt, stdout, stderr)
	}))

	var rb runbookConfig
	rb.flags(p.add(p, "runbook", "Print the runbook of an alert: meaning and remedy.", func(_ context.Context, stdout, _ io.Writer, _ *slog.Logger) (int, error) {
		return runRunbook(&rb, stdout)
	}))

	var b dashboardsConfig
	b.flags(p.add(p, "dashboards", "Write the Grafana dashboards.", func(context.Context, io.Writer, io.Writer, *slog.Logger) (int, error) {
		return runDashboards(&b)
	}))
}

// add adds a command with its function.
func (p *program) add(to interface {
	Command(name, help string) *kingpin.CmdClause
}, name, help string, run runner,
) *kingpin.CmdClause {
	c := to.Command(name, help)
	p.runs[c.FullCommand()] = run
	return c
}
