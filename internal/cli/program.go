package cli

import (
	"context"
	"strings"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	promslogflag "github.com/prometheus/common/promslog/flag"

	"rdma_exporter/internal/cli/author"
	"rdma_exporter/internal/cli/operate"
	"rdma_exporter/internal/cli/report"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/serve/fabricdaemon"
	"rdma_exporter/internal/serve/nodedaemon"
)

// program is the command line: flags, their values, and the functions of the commands.
type program struct {
	*kingpin.Application
	config machine.Config
	logs   *promslog.Config
	runs   map[string]runner
	named  *kingpin.CmdModel // on the command line that is parsed
	color  string
}

// runner runs a command whose flags are parsed.
type runner func(ctx context.Context, c *machine.Config, std command.Streams) (int, error)

const helperCommand = "helper"

// CommandLine describes commands and flags, for the man page and shell completions.
func CommandLine() *kingpin.ApplicationModel { return newProgram(Outside{}).Model() }

// Choices returns the values of a flag, and those of the first argument of a command without one; nil if they are not
// limited. words are those of the command; empty: of the flags of all.
func Choices(words, flag string) []string {
	type completer interface {
		FlagCompletion(flag, value string) ([]string, bool, bool)
		CmdCompletion(*kingpin.ParseContext) []string
	}
	p := newProgram(Outside{})
	of, above := completer(p.Application), p.Application.GetCommand
	for _, word := range strings.Fields(words) {
		c := above(word)
		of, above = c, c.GetCommand
	}
	if flag == "" {
		return of.CmdCompletion(&kingpin.ParseContext{})
	}
	choices, _, _ := of.FlagCompletion(flag, "")
	return choices
}

func newProgram(o Outside) *program {
	p := &program{
		Application: kingpin.New("rdma_exporter",
			"Prometheus exporter and alerting daemon for RDMA fabrics under GPU clusters: InfiniBand, RoCEv2, iWARP and cloud adapters. Read-only."),
		logs:  &promslog.Config{},
		runs:  map[string]runner{},
		named: &kingpin.CmdModel{},
	}
	p.Version(versionText())
	p.UsageTemplate(usageTemplate)
	p.UsageFuncs(usageFuncs)
	p.HelpFlag.Short('h').Help("Show help; after a command, the help of the command.")
	p.VersionFlag.Help("Show version and build information.")
	p.config.Flags(p.Application)
	p.Flag("color", "Colours in the text of commands. auto: on a terminal, unless NO_COLOR is set.").
		Default(command.ColorAuto).PlaceHolder("auto|always|never").
		EnumVar(&p.color, command.ColorAuto, command.ColorAlways, command.ColorNever)
	promslogflag.AddFlags(p.Application, p.logs)
	p.commands(o)
	return p
}

// commands adds the commands, in the order of --help.
func (p *program) commands(out Outside) {
	s, f := nodedaemon.Command{Serve: out.Serve}, fabricdaemon.Command{FabricConfig: machine.FabricConfig{Open: out.MAD}}
	var (
		k = report.Check{Sweep: machine.FabricConfig{Open: out.MAD}}
		h operate.Healthy
		t report.Topo
		j report.Job
		o report.Optics
		x report.Compare
		l report.Links
		i report.Inventory
		a operate.Accept
		m operate.Maintenance
		g operate.GPURelease
		w = report.Capture{Sweep: machine.FabricConfig{Open: out.MAD}}
		v author.CheckConfig
		r author.Rules
		b author.Backtest
		n author.Runbook
		d author.Dashboards
	)
	groups := map[string]*kingpin.CmdClause{}
	for _, c := range []struct {
		name, help string
		flags      func(*kingpin.CmdClause)
		run        runner // nil: a group
	}{
		{nodedaemon.Name, "Serve metrics, evaluate the alerting rules, send alerts (default).", s.Flags, s.Run},
		{fabricdaemon.Name, "Serve metrics of a whole InfiniBand subnet, swept from a port of this host. Run it once per subnet.", f.Flags, f.Run},
		{helperCommand, "Read for serve what requires CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH: processes, vital product data, DMA-BUFs. Listens on --helper.socket or a systemd socket.", nil, operate.RunHelper},
		{"check", "Report the faults of this host. Exit code: 0 ok, 1 warning, 2 critical, 3 unknown.", k.Flags, k.Run},
		{"healthy", "Health check of the exporter in this container or on this host. Exit code: 0 healthy, 1 not.", h.Flags, h.Run},
		{"topo", "Draw GPUs and NICs in the PCI tree, with their distances and whether GPUDirect RDMA works between them.", t.Flags, t.Run},
		{"job", "Show the jobs that use RDMA ports of this host: GPUs, processes, ports, findings on these, and what NCCL itself reports.", j.Flags, j.Run},
		{"optics", "Show the transceivers and cables of this host: temperature, optical power, thresholds.", o.Flags, o.Run},
		{"compare", "Compare the settings, links, firmware and software of hosts: exporters, captures, or files of check --setup --json. Exit code: 0 nothing that jobs depend on differs, 1 it does, 3 unknown.", x.Flags, x.Run},
		{"expect", "Expected rate and width of links.", nil, nil},
		{"expect list", "List the expected rate and width of each link, and the source of the expectation.", l.Flags, l.Run},
		{"inventory", "Known RDMA devices.", nil, nil},
		{"inventory list", "List the known RDMA devices, and which of them are missing.", i.Flags, i.Run},
		{"accept", "Accept a planned change: the running exporters discard the earlier state of devices and links, of this host and of the fabric. Without NAME and --all, list what there is to accept.", a.Flags, a.Run},
		{"maintenance", "Announce planned work on this host. The shipped Alertmanager configuration then inhibits its other alerts.", nil, nil},
		{"maintenance start", "Start maintenance, replacing the current one. It ends after --for.", m.Flags, m.Run},
		{"maintenance end", "End maintenance.", nil, operate.RunMaintenanceEnd},
		{"maintenance status", "Show the current maintenance.", nil, operate.RunMaintenanceStatus},
		{"gpu", "Release the GPUs that the running exporter reads, before a GPU reset or a driver update.", nil, nil},
		{"gpu release", "Pause GPU monitoring and close all GPU handles. GPUs are read again after --for.", g.Flags, g.Run},
		{"gpu resume", "End the pause of GPU monitoring.", nil, operate.RunGPUResume},
		{"gpu status", "Show whether GPU monitoring is paused, until when, and by whom.", nil, operate.RunGPUStatus},
		{"reload", "Reload the files of the running exporter: site configuration, rules, Alertmanager configuration. Exit code: 0 reloaded, 2 not, with the error.", nil, operate.RunReload},
		{"capture", "Write everything that the collectors read on this host to one text archive.", w.Flags, w.Run},
		{"check-config", "Validate a file for --config.file. Exit code: 0 valid, 2 invalid.", v.Flags, v.Run},
		{"rules", "Write the built-in alerting rules, for a Prometheus.", r.Flags, r.Run},
		{"backtest", "Evaluate the rules on the history in a Prometheus: which alerts would have fired, how often, on which hosts.", b.Flags, b.Run},
		{"runbook", "Print the runbook of an alert: meaning and remedy.", n.Flags, n.Run},
		{"dashboards", "Write the Grafana dashboards.", d.Flags, d.Run},
	} {
		add, name := p.Command, c.name
		if group, sub, ok := strings.Cut(c.name, " "); ok {
			add, name = groups[group].Command, sub
		}
		clause := add(name, c.help)
		if groups[name] = clause; c.flags != nil {
			c.flags(clause)
		}
		if c.run != nil {
			p.runs[c.name] = c.run
		}
		if name == nodedaemon.Name {
			clause.Default()
		}
	}
}
