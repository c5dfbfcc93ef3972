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

// stateEntry is where a capture has what the exporter remembered.
const stateEntry = "exporter/state.json"

// remembered is what is known of the machine from earlier runs: of a replay what its capture has, else what the state directory
// has, where there is one.
func (c *config) remembered(m *machine) (d expect.Data, err error) {
	if m.player == nil {
		err = state.Read(c.stateDir, &d)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = nil
		case errors.Is(err, fs.ErrPermission):
			err = fmt.Errorf("%w: run as the user of the exporter, or as root", err)
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

// encodeState writes what is remembered as a capture has it.
func encodeState(d expect.Data) ([]byte, error) {
	b, err := json.MarshalIndent(d, "", " ")
	return append(b, '\n'), err
}
