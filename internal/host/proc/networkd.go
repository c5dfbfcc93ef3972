package proc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/lldp"
)

const (
	networkdSocket = "run/systemd/netif/io.systemd.Network"
	// networkdActive is a link of the service manager for journald: unit_export_state_files. It is removed when the unit
	// becomes inactive or fails (unit_notify, src/core/unit.c, since systemd 236).
	networkdActive = "run/systemd/units/invocation:systemd-networkd.service"
)

// Limits of an answer. An interface has at most 128 neighbours with 15 kB each, nearly all of it text in octal escapes:
// sd-lldp-rx.c, lldp-neighbor.c.
const (
	networkdTime   = time.Second
	networkdAnswer = 4 << 20
)

// NetworkdClient makes one connection with one request. Nothing remains open between requests.
type NetworkdClient struct{ Files *rooted.Tree }

func (c NetworkdClient) LLDPNeighbours(ctx context.Context, netdev string, index uint64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, networkdTime)
	defer cancel()
	return c.ask(ctx, netdev, index)
}

// ask is LLDPNeighbours until ctx ends.
func (c NetworkdClient) ask(ctx context.Context, netdev string, index uint64) ([]byte, error) {
	frames, err := c.neighbours(ctx, netdev, index)
	late := errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) // the latter of a dial
	if err != nil && (late || ctx.Err() != nil) {
		err = fmt.Errorf("%w in time", access.ErrLate)
	}
	return frames, access.Wrapped("query", networkdSocket, err)
}

func (c NetworkdClient) neighbours(ctx context.Context, netdev string, index uint64) ([]byte, error) {
	if _, err := c.Files.Link(networkdActive); err != nil {
		return nil, rooted.Errno(err)
	}
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	answer, err := callVarlink(conn, "io.systemd.Network.GetLLDPNeighbors", map[string]any{
		"InterfaceIndex": index, "InterfaceName": netdev,
	})
	switch {
	case errors.Is(err, errVarlinkParameter):
		return nil, nil
	case err != nil:
		return nil, err
	}
	frames, err := lldp.Networkd(answer, index)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", access.ErrMalformed, err)
	}
	return frames, nil
}

// dial connects by a descriptor, which stays inside the root, and whose path is short enough for an address.
func (c NetworkdClient) dial(ctx context.Context) (net.Conn, error) {
	fd, err := c.Files.Open(networkdSocket, unix.O_PATH)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d", fd))
	if e := new(net.OpError); errors.As(err, &e) {
		err = e.Err // without the path
	}
	return conn, err
}

// errVarlinkParameter is the error of a request whose parameters the service does not accept.
var errVarlinkParameter = errors.New("invalid parameter")

// varlinkErrors are the standard errors of Varlink, the interface org.varlink.service.
var varlinkErrors = map[string]error{
	"org.varlink.service.InvalidParameter":     errVarlinkParameter,
	"org.varlink.service.InterfaceNotFound":    syscall.EOPNOTSUPP,
	"org.varlink.service.MethodNotFound":       syscall.EOPNOTSUPP,
	"org.varlink.service.MethodNotImplemented": syscall.EOPNOTSUPP,
	"org.varlink.service.PermissionDenied":     syscall.EACCES,
}

// callVarlink calls a method, and returns the parameters of its answer. Messages are JSON objects that end with a NUL:
// https://varlink.org/Method-Call.
func callVarlink(conn io.ReadWriter, method string, parameters map[string]any) (json.RawMessage, error) {
	request, err := json.Marshal(map[string]any{"method": method, "parameters": parameters})
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(append(request, 0)); err != nil {
		return nil, callError(err)
	}
	message, err := readMessage(conn, networkdAnswer)
	if err != nil {
		return nil, callError(err)
	}
	var answer struct {
		Parameters json.RawMessage `json:"parameters"`
		Error      string          `json:"error"`
	}
	if json.Unmarshal(message, &answer) != nil {
		return nil, fmt.Errorf("%w: %.32q", access.ErrMalformed, message)
	}
	if answer.Error == "" {
		return answer.Parameters, nil
	}
	if known := varlinkErrors[answer.Error]; known != nil {
		return nil, known
	}
	return nil, fmt.Errorf("%.64q", answer.Error)
}

// callError is an error of the connection without its addresses.
func callError(err error) error {
	if e := new(net.OpError); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// readMessage reads up to a NUL.
func readMessage(r io.Reader, limit int) ([]byte, error) {
	var all []byte
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		end := bytes.IndexByte(buf[:n], 0)
		switch {
		case end >= 0 && len(all)+end <= limit:
			return append(all, buf[:end]...), nil
		case end >= 0 || len(all)+n > limit:
			return nil, fmt.Errorf("%w: more than %d bytes", syscall.EMSGSIZE, limit)
		case err == io.EOF:
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		}
		all = append(all, buf[:n]...)
	}
}
