package machine

import (
	"context"
	"log/slog"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/collector"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/replay"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/rounds"
)

// Recording reads a machine with its own collectors and records what they read.
type Recording struct {
	Recorder *replay.Recorder
	sched    *rounds.Scheduler
	Meta     capture.Meta
	known    *expect.Data // known links and devices; nil once recorded
}

// Record starts a recording by these collectors.
func (c *Config) Record(
	ctx context.Context, m *Machine, on []*collector.Collector, known expect.Data, log *slog.Logger,
) *Recording {
	r := &Recording{Recorder: replay.NewRecorder(m.Host), Meta: m.NewMeta(), known: &known}
	r.sched = rounds.New(ctx, rounds.Options{
		Host: r.Recorder.Host(), Collectors: on, Timeout: c.Timeout, Limits: c.Limits, Now: m.Now, Logger: log,
	})
	return r
}

// Round reads a round, at an offset from the first.
func (r *Recording) Round(ctx context.Context, offset time.Duration) error {
	if _, err := r.sched.Collect(ctx, nil); err != nil {
		return err
	}
	if known := r.known; known != nil && len(known.Links)+len(known.Functions) > 0 {
		b, err := encodeState(*known)
		if err != nil {
			return err
		}
		r.Recorder.Put(stateEntry, b)
	}
	r.known = nil
	r.Recorder.EndRound(offset)
	return nil
}

// NewMeta describes a capture of the machine that begins now; that of a replay is as recorded.
func (m *Machine) NewMeta() capture.Meta {
	if m.Player != nil {
		return m.Meta
	}
	return liveMeta(m)
}

func liveMeta(m *Machine) capture.Meta {
	meta := capture.Meta{
		Time: time.Now().UTC().Truncate(time.Second), Kernel: m.FirstLine("proc/sys/kernel/osrelease"),
		Hostname: m.FirstLine("proc/sys/kernel/hostname"),
	}
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

// capabilities returns the names of the capabilities in a mask that reading RDMA state may require.
func capabilities(mask uint64) (out []string) {
	named := map[int]string{
		unix.CAP_DAC_READ_SEARCH: "CAP_DAC_READ_SEARCH", unix.CAP_NET_ADMIN: "CAP_NET_ADMIN", unix.CAP_NET_RAW: "CAP_NET_RAW",
		unix.CAP_SYS_ADMIN: "CAP_SYS_ADMIN", unix.CAP_SYS_PTRACE: "CAP_SYS_PTRACE", unix.CAP_SYS_RAWIO: "CAP_SYS_RAWIO",
		unix.CAP_IPC_LOCK: "CAP_IPC_LOCK",
	}
	for ; mask != 0; mask &= mask - 1 {
		if name, ok := named[bits.TrailingZeros64(mask)]; ok {
			out = append(out, name)
		}
	}
	return out
}
