// Package app wires the program together. It is the only place with flags; Run is the whole program, so that a test can
// run it.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	promslogflag "github.com/prometheus/common/promslog/flag"
	"github.com/prometheus/common/version"

	"rdma_exporter/collector"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/expect"
)

// Exit codes. check has its own, check.ExitUnknown for all that is not the host's fault.
const (
	exitOK    = 0
	exitUsage = 2
)

// Run runs the program with its arguments until ctx ends, and returns its exit code.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	code, err := run(ctx, args, stdout, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "rdma_exporter: %s\n", oneLine(err))
	}
	return code
}

// oneLine keeps a joined error on the line that an operator reads.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (int, error) {
	a := kingpin.New("rdma_exporter", "Health of RDMA fabrics (InfiniBand and RoCE) for Prometheus. Reads only, changes nothing.")
	done := false
	if version.Version == "" {
		version.Version = "unreleased"
	}
	a.Version(version.Print("rdma_exporter"))
	a.Terminate(func(int) { done = true })
	a.UsageWriter(stdout)
	a.ErrorWriter(stderr)
	a.HelpFlag.Short('h')

	var c config
	c.flags(a)
	logs := &promslog.Config{Writer: stderr}
	promslogflag.AddFlags(a, logs)

	serve := a.Command("serve", "Serve metrics (the default).").Default()
	var s serveConfig
	s.flags(serve)
	judging := a.Command("check", "Say what is wrong with this host. Exit code: 0 ok, 1 warning, 2 critical, 3 could not judge.")
	var k checkConfig
	k.flags(judging)
	checkConfig := a.Command("check-config", "Say whether a file for --config.file is valid. Exit code: 0 yes, 2 no.")
	var l checkConfigConfig
	l.flags(checkConfig)
	exp := a.Command("expect", "What rate and width links ought to have, and why.")
	expList := exp.Command("list", "Say what is expected of each link, with the source of the evidence.")
	expAccept := exp.Command("accept", "After a planned change: make the running exporter forget what links of devices did before.")
	inv := a.Command("inventory", "Which RDMA devices ought to be there.")
	invList := inv.Command("list", "Say which devices are remembered, and which of them are missing.")
	invAccept := inv.Command("accept", "After maintenance: make the running exporter forget devices that were taken away.")
	var e, v listConfig
	e.flags(expList)
	v.flags(invList)
	var ea, va acceptConfig
	ea.flags(expAccept, "RDMA device.")
	va.flags(invAccept, "RDMA device, or its PCI address.")
	optics := a.Command("optics", "Show the modules and cables of this host: temperature, optical power, thresholds.")
	var o listConfig
	o.flags(optics)
	capt := a.Command("capture", "Write everything that the collectors read on this host into one text archive.")
	var p captureConfig
	p.flags(capt)

	ruleSet := a.Command("rules", "Write out the alerting rules in the binary, for a Prometheus.")
	var r rulesConfig
	r.flags(ruleSet)
	top := a.Command("topo", "Draw the machine: GPUs and NICs in the PCI tree, their distances, and whether data goes between them directly.")
	var t topoConfig
	t.flags(top)
	boards := a.Command("dashboards", "Write out the Grafana dashboards of this version.")
	var b dashboardsConfig
	b.flags(boards)

	command, err := a.Parse(joinDash(args))
	if done { // --help, --version
		return exitOK, nil
	}
	wrong := exitUsage
	if slices.Contains(args, judging.FullCommand()) { // 2 would say that the host is sick
		wrong = check.ExitUnknown
	}
	if err != nil {
		return wrong, fmt.Errorf("%w (see rdma_exporter --help)", err)
	}
	log := promslog.New(logs)
	if command != serve.FullCommand() { // the result is what one looks at; news of devices are not
		log = slog.New(atLeastWarn{log.Handler()})
	}
	if err := c.check(); err != nil {
		return wrong, err
	}
	switch command {
	case judging.FullCommand():
		return runCheck(ctx, &c, &k, stdout, stderr, log)
	case checkConfig.FullCommand():
		return runCheckConfig(&l, stdout, stderr)
	case expList.FullCommand():
		return runExpectList(ctx, &c, &e, stdout, log)
	case expAccept.FullCommand():
		return runExpectAccept(ctx, &c, &ea, stdout)
	case invList.FullCommand():
		return runInventoryList(ctx, &c, &v, stdout, log)
	case invAccept.FullCommand():
		return runInventoryAccept(ctx, &c, &va, stdout)
	case optics.FullCommand():
		return runOptics(ctx, &c, &o, stdout, log)
	case capt.FullCommand():
		return runCapture(ctx, &c, &p, stdout, log)
	case ruleSet.FullCommand():
		return runRules(&r, stdout)
	case top.FullCommand():
		return runTopo(ctx, &c, &t, stdout, log)
	case boards.FullCommand():
		return runDashboards(&b)
	default:
		return runServe(ctx, &c, &s, log)
	}
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

// usage marks an error that the operator mends by another command line: exit code 2.
func usage(err error) (int, error) { return exitUsage, err }

// collectors returns those that are switched on.
func (c *config) collectors(m *machine, memory *expect.Memory) ([]*collector.Collector, error) {
	var on []*collector.Collector
	for _, x := range collector.All(c.options(m, memory)) {
		if c.isOn(x) {
			on = append(on, x)
		}
	}
	if len(on) == 0 {
		return nil, errors.New("all collectors are switched off: leave at least one --collector.NAME on")
	}
	return on, nil
}

func (c *config) options(m *machine, memory *expect.Memory) collector.Options {
	return collector.Options{
		Include: c.include, Exclude: c.exclude, Site: &c.site.store, Hostname: m.hostname(), Memory: memory, NCCL: c.nccl,
		SampleInterval: c.sampleInterval, ModuleInterval: c.moduleInterval, GPUInterval: c.gpuInterval, GPUFull: c.gpuMode == gpuFull, Bufinfo: c.bufinfo,
		ListenLLDP: c.listenLLDP, AskSubnet: c.askSubnet || m.player != nil,
	}
}

// atLeastWarn lets warnings and errors through.
type atLeastWarn struct{ slog.Handler }

func (h atLeastWarn) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

// discard logs an error that changes nothing for the caller.
func discard(log *slog.Logger, what string, err error) {
	if err != nil {
		log.Warn(what, "err", err)
	}
}
