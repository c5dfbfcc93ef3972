package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"golang.org/x/sys/unix"

	"rdma_exporter/collector"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/rounds"
)

type captureConfig struct {
	out       string
	length    time.Duration
	every     time.Duration
	anonymise bool
}

func (p *captureConfig) flags(a *kingpin.CmdClause) {
	a.Flag("output", "Output file; - is standard output.").Short('o').Required().PlaceHolder("FILE").StringVar(&p.out)
	a.Flag("for", "Duration of the capture. 0s captures one round.").Default("0s").DurationVar(&p.length)
	a.Flag("every", "Interval between rounds.").Default("15s").DurationVar(&p.every)
	a.Flag("anonymise", "Replace host names and addresses with consistent pseudonyms.").BoolVar(&p.anonymise)
}

func (p *captureConfig) check() error {
	if p.out == "" {
		return errors.New("--output: must be a file, or - for standard output")
	}
	if p.length < 0 || p.every <= 0 {
		return fmt.Errorf("--for=%s --every=%s: --for must be 0s or more, --every greater than 0s", p.length, p.every)
	}
	if p.length/p.every > 10000 {
		return fmt.Errorf("--for=%s --every=%s: more than 10000 rounds", p.length, p.every)
	}
	return nil
}

func runCapture(ctx context.Context, c *config, p *captureConfig, stdout io.Writer, log *slog.Logger) (int, error) {
	if err := p.check(); err != nil {
		return usage(err)
	}
	m, err := c.open(time.Time{})
	if err != nil {
		return usage(err)
	}
	defer func() { discard(log, "cannot release the host files", m.close()) }()
	known, err := c.remembered(m)
	discard(log, "cannot read the state directory, known links and devices are missing in the capture", err)
	on, err := c.collectors(m, expect.NewMemory(known))
	if err != nil {
		return usage(err)
	}

	r := c.record(ctx, m, on, known, log)
	for i, offset := range p.offsets(m) {
		if err := m.reach(ctx, r.meta.Time.Add(offset)); err != nil {
			return usage(fmt.Errorf("%w: nothing was written", err))
		}
		if i == 1 {
			log.Info("capturing further rounds", "every", p.every, "for", p.length)
		}
		if err := r.round(ctx, offset); err != nil {
			return usage(fmt.Errorf("capture failed: %w", err))
		}
	}
	a := r.rec.Archive(r.meta)
	if err := c.site.record(a, p.anonymise); err != nil {
		return usage(fmt.Errorf("capture failed: %w", err))
	}
	if p.anonymise {
		capture.Anonymise(a, c.site.store.Current().Systems()...)
	}
	b, err := capture.Format(a)
	if err != nil {
		return usage(fmt.Errorf("capture failed: %w", err))
	}
	if err := write(p.out, b, stdout); err != nil {
		return usage(fmt.Errorf("--output=%s: %w", p.out, err))
	}
	return exitOK, nil
}

// captureRun reads a machine with its own collectors and records what they read.
type captureRun struct {
	rec   *capture.Recorder
	sched *rounds.Scheduler
	meta  capture.Meta
	known *expect.Data // known links and devices; nil once recorded
}

func (c *config) record(ctx context.Context, m *machine, on []*collector.Collector, known expect.Data, log *slog.Logger) *captureRun {
	r := &captureRun{rec: capture.NewRecorder(m.Host), meta: m.meta, known: &known}
	r.sched = rounds.New(ctx, rounds.Options{Host: r.rec.Host(), Collectors: on, Timeout: c.timeout, Limits: c.limits, Now: m.Now, Logger: log})
	if m.player == nil {
		r.meta = liveMeta(m)
	}
	return r
}

// round reads a round, at an offset from the first.
func (r *captureRun) round(ctx context.Context, offset time.Duration) error {
	if _, err := r.sched.Collect(ctx, nil); err != nil {
		return err
	}
	if known := r.known; known != nil && len(known.Links)+len(known.Functions) > 0 {
		b, err := encodeState(*known)
		if err != nil {
			return err
		}
		r.rec.Put(stateEntry, b)
	}
	r.known = nil
	r.rec.EndRound(offset)
	return nil
}

// offsets are the times of the rounds: those of a replay, unless --for is set.
func (p *captureConfig) offsets(m *machine) []time.Duration {
	if m.player != nil && p.length == 0 {
		var out []time.Duration
		for _, t := range m.player.Times() {
			out = append(out, t.Sub(m.player.Times()[0]))
		}
		return out
	}
	out := []time.Duration{0}
	for t := p.every; t <= p.length; t += p.every {
		out = append(out, t)
	}
	return out
}

// reach waits until a time. A replay is moved there.
func (m *machine) reach(ctx context.Context, t time.Time) error {
	if m.player != nil {
		return m.player.Seek(t)
	}
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return errors.New("interrupted")
	}
}

func liveMeta(m *machine) capture.Meta {
	meta := capture.Meta{Time: time.Now().UTC().Truncate(time.Second), Kernel: m.firstLine("proc/sys/kernel/osrelease"), Hostname: m.firstLine("proc/sys/kernel/hostname")}
	status, err := m.Files.Read("proc/self/status", nil)
	if err != nil {
		return meta
	}
	for line := range strings.Lines(string(status)) {
		if set, ok := strings.CutPrefix(line, "CapEff:"); ok {
			if mask, err := strconv.ParseUint(strings.TrimSpace(set), 16, 64); err == nil {
				meta.Capabilities = capabilities(mask)
			}
		}
	}
	return meta
}

func (m *machine) firstLine(path string) string {
	b, err := m.Files.Read(path, nil)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

// capabilities are the names of those that reading RDMA state may require.
func capabilities(mask uint64) (out []string) {
	named := map[int]string{
		unix.CAP_DAC_READ_SEARCH: "CAP_DAC_READ_SEARCH", unix.CAP_NET_ADMIN: "CAP_NET_ADMIN", unix.CAP_NET_RAW: "CAP_NET_RAW",
		unix.CAP_SYS_ADMIN: "CAP_SYS_ADMIN", unix.CAP_SYS_PTRACE: "CAP_SYS_PTRACE", unix.CAP_SYS_RAWIO: "CAP_SYS_RAWIO", unix.CAP_IPC_LOCK: "CAP_IPC_LOCK",
	}
	for ; mask != 0; mask &= mask - 1 {
		if name, ok := named[bits.TrailingZeros64(mask)]; ok {
			out = append(out, name)
		}
	}
	return out
}

// unfinished is the prefix of files that are being written.
const unfinished = ".rdma_exporter-capture-"

// write replaces a file atomically.
func write(name string, b []byte, stdout io.Writer) (err error) {
	if name == "-" {
		_, err := stdout.Write(b)
		return err
	}
	if st, err := os.Stat(name); err == nil && !st.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0) // a pipe or a device
		if err != nil {
			return errors.Unwrap(err)
		}
		_, err = f.Write(b)
		return errors.Join(err, f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(name), unfinished)
	if err != nil {
		return errors.Unwrap(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err := f.Write(b); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
