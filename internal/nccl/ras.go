// Package nccl reads what NCCL says: its settings and topology files, the dumps of its inspector, and its RAS service
// (2.24 and later). It sends the commands for protocol, timeout, format and status only. Source of protocol and texts:
// github.com/NVIDIA/nccl, src/ras/client_support.cc.
package nccl

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"rdma_exporter/internal/lazy"
	"rdma_exporter/internal/words"
)

// DefaultAddress is that of the service without NCCL_RAS_ADDR.
const DefaultAddress = "localhost:28028"

const (
	protocol = 2 // NCCL_RAS_CLIENT_PROTOCOL, src/ras/ras_internal.h, in v2.24.3 to v2.30.7
	// legTimeout is the wait for one process, RAS_COLLECTIVE_LEG_TIMEOUT_SEC; the service adds the same once for the whole
	// answer.
	legTimeout = 5 * time.Second
)

// limits of a query.
type limits struct {
	total  time.Duration // of a query: the service takes up to 5s + 5s
	silent time.Duration // to the first line. NCCL's client has the same; a process that is stopped accepts connections
	// Every process of a job listens on the port (SO_REUSEPORT), and each connection may reach another one.
	tries  int
	line   int // bytes of a line of the handshake
	answer int // bytes; in JSON a rank takes 0.9 kB for each communicator
}

var defaults = limits{total: 12 * time.Second, silent: time.Second, tries: 4, line: 1 << 10, answer: 8 << 20}

// HasRAS reports whether a version of NCCL has the service. An unknown one may have it.
func HasRAS(version string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return n < 2 || major > 2 || major == 2 && minor >= 24
}

// ErrNone is an address that no RAS service listens on.
var ErrNone = errors.New("no RAS service")

// Query asks the service at an address, for at most 12s. Errors: ErrNone, ErrForeign, and those of a service that sends
// no answer, half of one, or something else.
func Query(ctx context.Context, address string, job Local) (*Answer, error) {
	a, err := defaults.query(ctx, address, job)
	return words.AllForeign(a), words.AllForeign(err)
}

var (
	errSilent = errors.New("no response")
	errLarge  = errors.New("answer too large")
)

func (l limits) query(ctx context.Context, address string, job Local) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, l.total)
	defer cancel()
	var failed error
	format := JSON
	for range l.tries {
		a, err := l.once(ctx, address, format)
		if err == nil {
			err = a.check(job)
		}
		if err == nil {
			return a, nil
		}
		failed = err
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return nil, fmt.Errorf("%s: no complete answer within %s: %w", address, l.total, err)
		case errors.Is(err, errLarge) && format == JSON:
			format = Text
		case !errors.Is(err, errSilent) && !errors.Is(err, ErrForeign): // these two may be better on another connection
			return nil, fmt.Errorf("%s: %w", address, err)
		}
	}
	return nil, fmt.Errorf("%s: %w", address, failed)
}

// once asks on one connection.
func (l limits) once(ctx context.Context, address, format string) (*Answer, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	s := session{Conn: c, read: bufio.NewReaderSize(c, l.line)}
	if err := s.greet(l.silent); err != nil {
		return nil, err
	}
	if format, err = s.agree(format); err != nil {
		return nil, err
	}
	command := "VERBOSE STATUS" // the text then lists more of the ranks with a problem
	parse := parseText
	if format == JSON {
		command, parse = "STATUS", parseJSON
	}
	if err := s.send(command); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(s.read, int64(l.answer)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("answer is incomplete after %d bytes: %w", len(b), err)
	case len(b) > l.answer:
		return nil, fmt.Errorf("%w: more than %d bytes", errLarge, l.answer)
	}
	return parse(b)
}

// session is a connection to the service.
type session struct {
	net.Conn
	read *bufio.Reader
}

var serverProtocol = lazy.Regexp(`^SERVER PROTOCOL (\d{1,4})$`)

// greet exchanges the version of the protocol.
func (s session) greet(silent time.Duration) error {
	late := time.AfterFunc(silent, func() { _ = s.SetReadDeadline(time.Unix(1, 0)) })
	line, err := s.ask(fmt.Sprintf("CLIENT PROTOCOL %d", protocol))
	if !late.Stop() {
		return fmt.Errorf("%w within %s", errSilent, silent)
	}
	if err != nil {
		return err
	}
	m := serverProtocol().FindStringSubmatch(line)
	switch {
	case m == nil:
		return fmt.Errorf("not NCCL's RAS service: it responds %.80q", line)
	case m[1] != fmt.Sprint(protocol):
		return fmt.Errorf("protocol %s of a later NCCL is not supported, only %d", m[1], protocol)
	}
	return nil
}

// agree sets timeout and format. Versions before 2.28.7 have no SET FORMAT: these answer in text.
func (s session) agree(format string) (string, error) {
	line, err := s.ask(fmt.Sprintf("TIMEOUT %d", int(legTimeout.Seconds())))
	if err != nil {
		return "", err
	}
	if line != "OK" {
		return "", fmt.Errorf("TIMEOUT rejected: %.80q", line)
	}
	if format == Text {
		return Text, nil
	}
	line, err = s.ask("SET FORMAT " + JSON)
	switch {
	case err != nil:
		return "", err
	case line == "OK":
		return JSON, nil
	case strings.HasPrefix(line, "ERROR: Unknown command"):
		return Text, nil
	}
	return "", fmt.Errorf("SET FORMAT rejected: %.80q", line)
}

func (s session) send(command string) error {
	if _, err := io.WriteString(s, command+"\n"); err != nil {
		return fmt.Errorf("cannot send %s: %w", command, err)
	}
	return nil
}

// ask sends a command and reads its one-line response.
func (s session) ask(command string) (string, error) {
	if err := s.send(command); err != nil {
		return "", err
	}
	line, err := s.read.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return "", fmt.Errorf("response to %s is longer than %d bytes", command, len(line))
	case errors.Is(err, io.EOF):
		return "", fmt.Errorf("connection closed after %s", command)
	case err != nil:
		return "", fmt.Errorf("no response to %s: %w", command, err)
	}
	return string(bytes.TrimRight(line, "\r\n")), nil
}
