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

	"github.com/prometheus/common/promslog"

	"rdma_exporter/collector"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/host"
)

// Exit codes. check has its own, check.ExitUnknown for all that is not the host's fault.
const (
	exitOK    = 0
	exitUsage = 2
)

// Run runs the program with its arguments until ctx ends, and returns its exit code.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return RunOn(ctx, Outside{}, args, stdout, stderr)
}

// Outside is what the program meets beyond this host. A test has its own; what is nil is the kernel's.
type Outside struct {
	MAD   OpenMAD // the way into a fabric
	Serve Serve   // how serve is reached
}

// RunOn is Run with another outside: a simulated fabric, or clients that need no socket.
func RunOn(ctx context.Context, o Outside, args []string, stdout, stderr io.Writer) int {
	if o.MAD == nil {
		o.MAD = host.OpenMAD
	}
	if o.Serve == nil {
		o.Serve = serveUntil
	}
	code, err := run(ctx, o, args, stdout, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "rdma_exporter: %s\n", oneLine(err))
	}
	return code
}

// oneLine keeps a joined error on the line that an operator reads.
func oneLine(err error) string { return check.Plain(strings.ReplaceAll(err.Error(), "\n", "; ")) }

func run(ctx context.Context, o Outside, args []string, stdout, stderr io.Writer) (int, error) {
	p := newProgram(o)
	done := false
	p.Terminate(func(int) { done = true })
	p.UsageWriter(stdout)
	p.ErrorWriter(stderr)
	p.logs.Writer = stderr

	command, err := p.Parse(joinDash(args))
	if done { // --help, --version
		return exitOK, nil
	}
	wrong := exitUsage
	if slices.Contains(args, "check") { // 2 would say that the host is sick
		wrong = check.ExitUnknown
	}
	if err != nil {
		return wrong, fmt.Errorf("%w (see rdma_exporter --help)", err)
	}
	log := promslog.New(p.logs)
	if command != serveCommand && command != fabricCommand { // the result is what one looks at; news of devices are not
		log = slog.New(atLeastWarn{log.Handler()})
	}
	if err := p.config.check(); err != nil {
		return wrong, err
	}
	return p.runs[command](ctx, stdout, stderr, log)
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
	return c.switchedOn(collector.All(c.options(m, memory)))
}

func (c *config) switchedOn(all []*collector.Collector) ([]*collector.Collector, error) {
	var on []*collector.Collector
	for _, x := range all {
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
		ListenLLDP: c.listenLLDP, AskSubnet: c.askSubnet || m.player != nil, MADCounters: c.madCounters(m),
	}
}

// madCounters says where the counters of InfiniBand ports come from; a replay has them as they were recorded.
func (c *config) madCounters(m *machine) collector.MADCounters {
	switch {
	case m.player != nil:
		return collector.CountersRecorded
	case c.askAgents:
		return collector.CountersByMAD
	}
	return collector.CountersOfFiles
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
