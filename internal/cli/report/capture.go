package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/model"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/anonymise"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/machine"
)

// Capture is the command capture, with its flags.
type Capture struct {
	out       string
	length    time.Duration
	every     time.Duration
	anonymise bool
	kernelLog bool
	fabric    bool
	Sweep     machine.FabricConfig
}

// Flags adds the flags.
func (p *Capture) Flags(a *kingpin.CmdClause) {
	a.Flag("output", "Output file; - is standard output.").Short('o').Required().PlaceHolder("FILE").StringVar(&p.out)
	a.Flag("for", "Duration of the capture. 0s captures one round.").Default("0s").DurationVar(&p.length)
	a.Flag("every", "Interval between rounds.").Default("15s").DurationVar(&p.every)
	a.Flag("anonymise", "Replace host names, addresses, UUIDs and serial numbers with consistent pseudonyms. Files, answers and fields whose form is not known are left out; capture.json names them.").BoolVar(&p.anonymise)
	a.Flag("fabric", "Capture an InfiniBand fabric in place of this host: the answers to sweeps, each of all nodes, for fabric --replay.").BoolVar(&p.fabric)
	p.Sweep.PortFlags(a)
	a.Flag("kernel-log", "Include the lines of the kernel log that are recognised as they were printed, for bug reports. Not with --anonymise.").BoolVar(&p.kernelLog)
}

func (p *Capture) check() error {
	return command.Checks{
		{p.out == "", errors.New("--output: must be a file, or - for standard output")},
		{p.fabric && (p.anonymise || p.kernelLog), errors.New("--fabric: cannot be combined with --anonymise or --kernel-log")},
		{p.kernelLog && p.anonymise, errors.New("--kernel-log: not with --anonymise: lines of the kernel log are not anonymised")},
		{p.length < 0 || p.every <= 0, fmt.Errorf("--for=%s --every=%s: --for must be 0s or more, --every greater than 0s", p.length, p.every)},
		{p.length/max(p.every, 1) > 10000, fmt.Errorf("--for=%s --every=%s: more than 10000 rounds", p.length, p.every)},
	}.First()
}

// Run runs the command.
func (p *Capture) Run(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	if err := cmp.Or(p.check(), p.Sweep.Check()); err != nil {
		return command.Usage(err)
	}
	m, err := c.Open(time.Time{})
	if err != nil {
		return command.Usage(err)
	}
	defer func() { command.LogError(std.Log, "cannot release the host files", m.Close()) }()
	if p.fabric {
		return p.runFabric(ctx, c, m, std)
	}
	known, err := c.Remembered(ctx, m)
	command.LogError(std.Log, "cannot read the state directory, known links and devices are missing in the capture", err)
	on, err := c.Collectors(m, expect.NewMemory(known))
	if err != nil {
		return command.Usage(err)
	}

	r := c.Record(ctx, m, on, known, std.Log)
	r.Recorder.WholeKernelLog = p.kernelLog
	shown := command.NewProgress(std.Err)
	defer shown.End()
	for i, offset := range p.offsets(m) {
		if err := m.Reach(ctx, r.Meta.Time.Add(offset)); err != nil {
			return command.Usage(fmt.Errorf("%w: nothing was written", err))
		}
		if i == 1 {
			std.Log.Info("capturing further rounds", "every", p.every, "for", p.length)
		}
		if err := r.Round(ctx, offset); err != nil {
			return command.Usage(fmt.Errorf("capture failed: %w", err))
		}
		if p.length > 0 {
			shown.Show("capturing: %s of %s", model.Duration(offset), model.Duration(p.length))
		}
	}
	shown.End()
	a := r.Recorder.Archive(r.Meta)
	if err := c.Site.Record(a, p.anonymise); err != nil {
		return command.Usage(fmt.Errorf("capture failed: %w", err))
	}
	if p.anonymise {
		anonymise.Archive(a, c.Site.Store.Current().Systems()...)
		if whole, partly := a.Meta.LeftOutCount(); whole+partly > 0 {
			std.Log.Warn("files left out of the anonymised capture, or fields of them: they are not known or not public; "+
				"capture.json names the files", "files", whole, "in_part", partly)
		}
	}
	return p.write(a, std)
}

// runFabric captures a fabric.
func (p *Capture) runFabric(
	ctx context.Context, c *machine.Config, m *machine.Machine, std command.Streams,
) (int, error) {
	known, err := c.RememberedFabric(ctx, m)
	if err != nil {
		return command.Usage(err)
	}
	meta := m.NewMeta()
	stop := command.NewProgress(std.Err).Time("sweeping the fabric")
	r, err := c.NewFabric(&p.Sweep, m, known, m.Now, std.Log).Record(ctx, &p.Sweep, p.offsets(m),
		func(offset time.Duration) error { return m.Reach(ctx, meta.Time.Add(offset)) })
	stop()
	if err != nil {
		return command.Usage(fmt.Errorf("capture failed, nothing was written: %w", err))
	}
	a := r.Archive(meta)
	if err := c.Site.Record(a, false); err != nil {
		return command.Usage(fmt.Errorf("capture failed: %w", err))
	}
	return p.write(a, std)
}

func (p *Capture) write(a *capture.Archive, std command.Streams) (int, error) {
	b, err := capture.Format(a)
	if err != nil {
		return command.Usage(fmt.Errorf("capture failed: %w", err))
	}
	if err := command.WriteFile(p.out, b, std.Out); err != nil {
		return command.Usage(fmt.Errorf("--output=%s: %w", p.out, err))
	}
	return command.OK, nil
}

// offsets returns the times of the rounds to record: those of a replay, unless --for is set.
func (p *Capture) offsets(m *machine.Machine) []time.Duration {
	if m.Player != nil && p.length == 0 {
		var out []time.Duration
		for _, t := range m.Player.Times() {
			out = append(out, t.Sub(m.Player.Times()[0]))
		}
		return out
	}
	out := []time.Duration{0}
	for t := p.every; t <= p.length; t += p.every {
		out = append(out, t)
	}
	return out
}
