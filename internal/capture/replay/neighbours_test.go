package replay

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/host/rooted"
)

// networkd answers with frames or an error.
type networkd struct {
	frames []byte
	err    error
}

func (n networkd) LLDPNeighbours(context.Context, string, uint64) ([]byte, error) {
	return n.frames, n.err
}

// TestNetworkdRecorded: an answer of networkd is recorded as the file of an earlier version; without one there is the
// file itself, if any.
func TestNetworkdRecorded(t *testing.T) {
	const file = "run/systemd/netif/lldp/5"
	frames := []byte("\x05\x00\x00\x00\x00\x00\x00\x00frame")
	dir := t.TempDir()
	for _, d := range []string{"sys", "proc", "run/systemd/netif"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	machine, err := live.Open(rooted.Paths{RootFS: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = machine.Close() })
	for _, c := range []struct {
		name string
		networkd
		want []byte
		read error
	}{
		{"an answer", networkd{frames: frames}, frames, nil},
		{"no neighbours", networkd{}, nil, nil},
		{"no permission", networkd{err: access.Denied("socket")}, nil, syscall.EACCES},
		{"not active", networkd{err: &access.Error{Op: "query", Path: "socket", Err: syscall.ENOENT}}, nil, syscall.ENOENT},
		{"an earlier version", networkd{err: &access.Error{Op: "query", Path: "socket", Err: syscall.EOPNOTSUPP}}, nil, syscall.ENOENT},
		{"no answer", networkd{err: access.ErrLate}, nil, syscall.ENOENT},
	} {
		t.Run(c.name, func(t *testing.T) {
			inner := &host.Host{Files: machine.Files, Networkd: c.networkd}
			p := replayed(t, inner, func(h *host.Host) { _, _ = h.Networkd.LLDPNeighbours(t.Context(), "eth0", 5) })
			got, err := p.Read(file, nil)
			if p.Host().Networkd != nil || !bytes.Equal(got, c.want) || !errors.Is(err, c.read) {
				t.Errorf("%q, %v, want %q, %v", got, err, c.want, c.read)
			}
		})
	}
	if NewRecorder(&host.Host{}).Host().Networkd != nil {
		t.Error("a host without networkd is asked")
	}
}
