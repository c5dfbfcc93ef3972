package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/maintenance"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/state"
)

// MaintenanceFolder is the directory of announced maintenance below the state directory.
const MaintenanceFolder = "maintenance"

// Announced reads the maintenance saved by the running exporter, for one-off evaluations; nil for a replay.
func (c *Config) Announced(ctx context.Context, m *Machine) func() (*maintenance.Notice, bool) {
	if m.Player != nil {
		return nil
	}
	return func() (*maintenance.Notice, bool) {
		var a maintenance.Announcement
		if state.Read(ctx, filepath.Join(c.StateDir, MaintenanceFolder), &a) != nil {
			return nil, false
		}
		return a.At(m.MaintenanceClock()), true
	}
}

// stateEntry is the entry of a capture with the known links and devices.
const stateEntry = "exporter/state.json"

// Remembered returns the known links and devices from earlier runs: from the capture of a replay, else from the state
// directory if there is one.
func (c *Config) Remembered(ctx context.Context, m *Machine) (d expect.Data, err error) {
	if m.Player == nil {
		err = state.Read(ctx, c.StateDir, &d)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = nil
		case errors.Is(err, fs.ErrPermission):
			err = fmt.Errorf("%w: run as root or as the user of the exporter", err)
		}
		return d, err
	}
	b, err := m.Files.Read(stateEntry, nil)
	if err != nil {
		if access.IsAbsent(err) {
			err = nil
		}
		return d, err
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return d, fmt.Errorf("--replay=%s: %s: %w", c.Replay, stateEntry, err)
	}
	return d, nil
}

// encodeState returns the content of stateEntry. It has no baselines: they are kept with the serial number of their
// transceiver.
func encodeState(d expect.Data) ([]byte, error) {
	d.Baselines = nil
	b, err := json.MarshalIndent(d, "", " ")
	return append(b, '\n'), err
}

// Observed is the state of a machine.
type Observed struct {
	*rounds.Picture
	Host   string // its name; empty: unknown
	Replay string // the recording; empty: a live host
}

// Observe collects with some collectors, infiniband among them: one round of a live host, all rounds of a replay. It
// starts from the known links and devices.
func (c *Config) Observe(
	ctx context.Context, log *slog.Logger, collectors ...string,
) (*Observed, *expect.Memory, error) {
	m, err := c.Open(time.Now())
	if err != nil {
		return nil, nil, err
	}
	defer func() { command.LogError(log, "cannot release the host files", m.Close()) }()
	known, err := c.Remembered(ctx, m)
	if err != nil {
		return nil, nil, err
	}
	memory := expect.NewMemory(known)
	on, err := c.Collectors(m, memory)
	if err != nil {
		return nil, nil, err
	}
	sched := rounds.New(ctx,
		rounds.Options{Host: m.Host, Collectors: on, Timeout: c.Timeout, Limits: c.Limits, Now: m.Now, Logger: log})
	var p *rounds.Picture
	neighbours := slices.ContainsFunc(on, func(x *collector.Collector) bool { return x.Name == "neighbour" })
	for _, t := range m.Times() {
		if err := m.Seek(t); err != nil {
			return nil, nil, err
		}
		if neighbours { // the settings of both ends are evidence for the expected rate
			if _, err := sched.Collect(ctx, []string{"neighbour"}); err != nil {
				return nil, nil, err
			}
		}
		if p, err = sched.Collect(ctx, collectors); err != nil {
			return nil, nil, err
		}
	}
	if p.Node().InfiniBand == nil {
		return nil, nil, errors.New("timed out reading the RDMA devices: try --collect.timeout=30s")
	}
	return &Observed{p, m.Hostname(), m.Recording(c)}, memory, nil
}
