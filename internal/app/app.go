// Package app wires the program together. It is the only place with flags. Run is the whole program, for tests.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/prometheus/common/promslog"

	"rdma_exporter/collector"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/host"
)

// Exit codes. check has its own: check.ExitUnknown for all errors that are no findings.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// Run runs the program with its arguments until ctx ends, and returns its exit code.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return RunOn(ctx, Outside{}, args, stdout, stderr)
}

// Outside is the access to what is outside of this host. Tests replace it; nil fields are the real ones.
type Outside struct {
	MAD   OpenMAD // access to an InfiniBand subnet
	Serve Serve   // listener of serve
}

// RunOn is Run with another Outside: a simulated fabric, or clients without a socket.
func RunOn(ctx context.Context, o Outside, args []string, stdout, stderr io.Writer) int {
	if o.MAD == nil {
		o.MAD = host.OpenMAD
	}
	if o.Serve == nil {
		o.Serve = serveUntil
	}
	p := newProgram(o)
	code, err := p.run(ctx, args, stdout, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "%s: %s\n", p.prefix(args), oneLine(err))
	}
	return code
}

// oneLine writes a joined error on one line.
func oneLine(err error) string { return check.Plain(strings.ReplaceAll(err.Error(), "\n", "; ")) }

func (p *program) run(ctx context.Context, args []string, stdout, stderr io.Writer) (int, error) {
	done := false
	p.Terminate(func(int) { done = true })
	p.UsageWriter(stdout)
	p.ErrorWriter(stderr)
	p.logs.Writer = stderr

	command, err := p.parse(args)
	if done { // --help, --version
		return exitOK, nil
	}
	wrong := exitUsage
	if slices.Contains(args, "check") { // 2 is a critical finding
		wrong = check.ExitUnknown
	}
	if err != nil {
		return wrong, err
	}
	log := promslog.New(p.logs)
	if command != serveCommand && command != fabricCommand && command != helperCommand { // changes of devices are of interest to a daemon only
		log = slog.New(atLeastWarn{log.Handler()})
	}
	if err := p.config.check(); err != nil {
		return wrong, err
	}
	return p.runs[command](ctx, stdout, stderr, log)
}

// usage is the result for an error that another command line corrects: exit code 2.
func usage(err error) (int, error) { return exitUsage, err }

// collectors returns the enabled collectors.
func (c *config) collectors(m *machine, memory *expect.Memory) ([]*collector.Collector, error) {
	return c.enabled(collector.All(c.options(m, memory)))
}

func (c *config) enabled(all []*collector.Collector) ([]*collector.Collector, error) {
	var on []*collector.Collector
	for _, x := range all {
		if c.isOn(x) {
			on = append(on, x)
		}
	}
	if len(on) == 0 {
		return nil, errors.New("all collectors are disabled: enable at least one with --collector.NAME")
	}
	return on, nil
}

func (c *config) options(m *machine, memory *expect.Memory) collector.Options {
	return collector.Options{
		Include: c.include, Exclude: c.exclude, Site: &c.site.store, Hostname: m.hostname(), Memory: memory, NCCL: c.nccl,
		SampleInterval: c.sampleInterval, ModuleInterval: c.moduleInterval, GPUInterval: c.gpuInterval, GPUFull: c.gpuMode == gpuFull, Bufinfo: c.bufinfo,
		PartMetrics: c.partMetrics(), MaxDevices: c.limits.Devices,
		ListenLLDP: c.listenLLDP, AskSubnet: c.askSubnet || m.player != nil, MADCounters: c.madCounters(m),
	}
}

// madCounters is the source of the counters of InfiniBand ports. A replay has them as recorded.
func (c *config) madCounters(m *machine) collector.MADCounters {
	if m.player != nil {
		return collector.CountersRecorded
	}
	return madModes[c.madMode]
}

// atLeastWarn lets warnings and errors through.
type atLeastWarn struct{ slog.Handler }

func (h atLeastWarn) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

// discard logs an error that the caller ignores.
func discard(log *slog.Logger, what string, err error) {
	if err != nil {
		log.Warn(what, "err", err)
	}
}
