package operate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"

	"github.com/coreos/go-systemd/v22/activation"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/host/proc"
	"rdma_exporter/internal/machine"
)

// helperMode: only the exporter's user connects.
const helperMode = 0o600

// RunHelper answers the exporter until ctx ends.
func RunHelper(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	h, err := proc.OpenHelper(c.Paths)
	if err != nil {
		return command.Usage(err)
	}
	defer func() { command.LogError(std.Log, "cannot release the host files", h.Close()) }()
	l, err := helperListener(c.Paths.Helper)
	if err != nil {
		return command.Usage(err)
	}
	std.Log.Info("starting rdma_exporter helper", "socket", l.Addr().String())
	if err := h.Serve(ctx, l, func(err error) { std.Log.Warn("request rejected", "err", err) }); err != nil {
		return command.Usage(fmt.Errorf("cannot serve on %s: %w", l.Addr(), err))
	}
	return command.OK, nil
}

// helperListener returns the socket that systemd passes, or one at a path.
func helperListener(path string) (*net.UnixListener, error) {
	passed, err := activation.Listeners()
	if err != nil {
		return nil, err
	}
	if len(passed) > 0 {
		l, ok := passed[0].(*net.UnixListener)
		if !ok || len(passed) > 1 {
			return nil, errors.New("systemd passes other sockets than one ListenStream= with a path")
		}
		return l, nil
	}
	if path == "" {
		return nil, errors.New("no socket: set --helper.socket, or start rdma_exporter-helper.socket")
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeSocket { // of a helper that has ended
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("--helper.socket=%s: %w", path, err)
	}
	if err := os.Chmod(path, helperMode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
