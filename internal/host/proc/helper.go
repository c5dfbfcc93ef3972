package proc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/snapshot/accel"
)

// helperRequest is a request to the helper, a process that may read what the exporter may not. It has no path: the
// helper reads a closed list of sources. Each connection has one request and one answer.
type helperRequest struct {
	Read     string `json:"read"`     // name of the source: processes, vpd, bufinfo
	First    []int  `json:"first"`    // processes: see Processes
	Only     bool   `json:"only"`     // processes
	Names    bool   `json:"names"`    // processes: with the names of jobs and users
	Function string `json:"function"` // vpd: PCI address
	// Groups, for processes, are those of nodeGroups: /dev is hidden from the helper.
	Groups []uint32 `json:"groups,omitempty"`
}

// helperAnswer is the answer to it.
type helperAnswer struct {
	Errno     syscall.Errno   `json:"errno"` // 0: success; helperStuck, helperLate: the read has not returned
	Processes []accel.Process `json:"processes"`
	Refused   bool            `json:"refused"`
	Content   []byte          `json:"content"` // of a file
	Whole     bool            `json:"whole"`
}

// Limits of the protocol, in bytes, and of the time of a request.
const (
	helperRequestSize = 64 << 10
	helperAnswerSize  = 8 << 20
	helperTime        = 10 * time.Second
	helperStuck       = syscall.ETIMEDOUT
	helperLate        = syscall.ETIME
	helperConnections = 16
	helperNamed       = 4096 // PIDs in a request
)

// Vital product data has up to 32 KiB (PCI 2.2, appendix I).
const (
	vpdFile = "/vpd"
	vpdSize = 32 << 10
)

// Helper reads processes and files for an exporter that may not read them itself.
type Helper struct {
	tree  *rooted.Tree
	table *processTable
	turns *access.Turns
	limit time.Duration // of a request
}

// OpenHelper opens the trees.
func OpenHelper(p rooted.Paths) (*Helper, error) {
	t, err := rooted.Open(p)
	if err != nil {
		return nil, err
	}
	turns := access.NewTurns()
	turns.CPU = access.NewCPUWait(access.CPUOfProcess())
	return &Helper{tree: t, table: NewProcessTable(t, true), turns: turns, limit: helperTime}, nil
}

// Close closes the trees.
func (h *Helper) Close() error { return h.tree.Close() }

// Serve answers the requests on a socket until ctx ends. Its clients are the owner of the socket file and root;
// rejected is called with the reason for each other one, and for requests that are malformed.
func (h *Helper) Serve(ctx context.Context, l *net.UnixListener, rejected func(error)) error {
	info, err := os.Stat(l.Addr().String())
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	var open sync.WaitGroup
	defer open.Wait()
	free := make(chan struct{}, helperConnections)
	for {
		free <- struct{}{}
		conn, err := l.AcceptUnix()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		open.Go(func() {
			defer func() { <-free }()
			if err := errors.Join(h.converse(ctx, conn, owner), conn.Close()); err != nil {
				rejected(err)
			}
		})
	}
}

// converse answers one request. A client that has disconnected is no error.
func (h *Helper) converse(ctx context.Context, conn *net.UnixConn, owner uint32) error {
	ctx, cancel := context.WithTimeout(ctx, h.limit)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	if err := checkPeer(conn, owner); err != nil {
		return err
	}
	var request helperRequest
	if err := receiveJSON(conn, helperRequestSize, &request); err != nil {
		return &access.Error{Op: "receive", Path: "request", Err: err}
	}
	answer, err := json.Marshal(h.answer(ctx, request))
	if err == nil && len(answer) > helperAnswerSize {
		answer, err = json.Marshal(helperAnswer{Errno: syscall.EFBIG})
	}
	if err == nil {
		_, _ = conn.Write(answer)
	}
	return err
}

// answer reads in turns: a read that hangs is not started twice. A panic is an error of the request.
func (h *Helper) answer(ctx context.Context, r helperRequest) helperAnswer {
	var out helperAnswer
	read := func() (err error) {
		switch {
		case r.Read == source.Processes.Name():
			h.table.groups = r.Groups
			out.Processes, out.Refused, err = h.table.find(ctx, r.First, r.Only)
			if !r.Names {
				out.Processes = withoutNames(out.Processes)
			}
		case r.Read == source.VPD.Name() && pci.IsAddress(r.Function):
			out.Content, out.Whole, err = h.tree.Head("sys/bus/pci/devices/"+r.Function+vpdFile, vpdSize)
		case r.Read == source.Bufinfo.Name():
			out.Content, out.Whole, err = h.tree.Head(host.BufinfoFile, host.BufinfoSize)
		default:
			err = syscall.EINVAL
		}
		return err
	}
	var failed error
	err := h.turns.Do(ctx, r.Read+r.Function, func() { failed = read() })
	if err != nil { // out may still be written
		return helperAnswer{Errno: errnoOf(err)}
	}
	out.Errno = errnoOf(failed)
	return out
}

func errnoOf(err error) syscall.Errno {
	var e syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.Is(err, access.ErrStuck):
		return helperStuck
	case errors.Is(err, access.ErrLate):
		return helperLate
	case errors.As(err, &e):
		return e
	}
	return syscall.EIO
}

// checkPeer accepts root and the owner of the socket.
func checkPeer(conn *net.UnixConn, owner uint32) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return err
	}
	if failed == nil && peer.Uid != owner && peer.Uid != 0 {
		failed = syscall.EACCES
	}
	return access.Wrapped("accept", "connection", failed)
}

// receiveJSON reads one value until the other side has closed its direction.
func receiveJSON(r io.Reader, limit int64, to any) error {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return err
	}
	if len(b) == 0 {
		return io.ErrUnexpectedEOF
	}
	if int64(len(b)) > limit {
		return syscall.EMSGSIZE
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if d.Decode(to) != nil || d.More() {
		return access.ErrMalformed // an error of the decoder may quote the other side
	}
	return nil
}
