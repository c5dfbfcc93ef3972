// Package cli is the program: the table of its commands, parsing and help. Run is the whole program, for tests.
package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/prometheus/common/promslog"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/umad"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/serve"
	"rdma_exporter/internal/serve/fabricdaemon"
	"rdma_exporter/internal/serve/nodedaemon"
)

// Run runs the program with its arguments until ctx ends, and returns its exit code.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return RunOn(ctx, Outside{}, args, stdout, stderr)
}

// Outside is the access to what is outside of this host. Tests replace it; nil fields are the real ones.
type Outside struct {
	MAD   machine.OpenMAD  // access to an InfiniBand subnet
	Serve serve.Serve      // listener of serve
	Host  func(*host.Host) // replaces sources of the host that is read
}

// RunOn is Run with another Outside: a simulated fabric, or clients without a socket.
func RunOn(ctx context.Context, o Outside, args []string, stdout, stderr io.Writer) int {
	if o.MAD == nil {
		o.MAD = umad.OpenMAD
	}
	if o.Serve == nil {
		o.Serve = serve.ListenAndServe
	}
	p := newProgram(o)
	p.config.Around = o.Host
	code, err := p.run(ctx, args, stdout, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "%s: %s\n", p.prefix(), command.OneLine(err))
	}
	return code
}

func (p *program) run(ctx context.Context, args []string, stdout, stderr io.Writer) (int, error) {
	done := false
	p.Terminate(func(int) { done = true })
	p.UsageWriter(stdout)
	p.ErrorWriter(stderr)
	p.logs.Writer = stderr

	name, err := p.parse(args)
	if done { // --help, --version
		return command.OK, nil
	}
	wrong := command.UsageError
	if slices.Contains(args, "check") { // 2 is a critical finding
		wrong = check.ExitUnknown
	}
	if err != nil {
		return wrong, err
	}
	log := slog.New(plainLog{promslog.New(p.logs).Handler()})
	// Changes of devices are of interest to a daemon only.
	if name != nodedaemon.Name && name != fabricdaemon.Name && name != helperCommand {
		log = slog.New(atLeastWarn{log.Handler()})
	}
	if err := p.config.Check(); err != nil {
		return wrong, err
	}
	code, err := p.runs[name](ctx, &p.config, command.Streams{
		Out: stdout, Err: stderr, Log: log, Style: command.StyleOf(stdout, p.color),
	})
	if err != nil && code == command.OK { // all is done but the output
		return wrong, fmt.Errorf("cannot print the result: %w", err)
	}
	return code, err
}
