package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/state"
)

// stateEntry is the entry of a capture with the known links and devices.
const stateEntry = "exporter/state.json"

// remembered is the known links and devices from earlier runs: from the capture of a replay, else from the state directory if there is one.
func (c *config) remembered(m *machine) (d expect.Data, err error) {
	if m.player == nil {
		err = state.Read(c.stateDir, &d)
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
		if host.IsAbsent(err) {
			err = nil
		}
		return d, err
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return d, fmt.Errorf("--replay=%s: %s: %w", c.replay, stateEntry, err)
	}
	return d, nil
}

// encodeState is the content of stateEntry. It has no baselines: they are kept with the serial number of their transceiver.
func encodeState(d expect.Data) ([]byte, error) {
	d.Baselines = nil
	b, err := json.MarshalIndent(d, "", " ")
	return append(b, '\n'), err
}
