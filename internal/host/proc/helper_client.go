package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/snapshot/accel"
)

// helperClient reads by a helper.
type helperClient struct {
	Socket string
	Names  bool // names of jobs and users are permitted
	Tree   *rooted.Tree
	Limit  time.Duration
}

// ask makes one request. It returns at the deadline of ctx, or shortly before it, so that the error names the helper.
func (c helperClient) ask(ctx context.Context, r helperRequest) (answer helperAnswer, err error) {
	left := c.Limit
	if end, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(end)*9/10)
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", c.Socket)
	if err != nil {
		return answer, c.failed(err)
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	if err := errors.Join(json.NewEncoder(conn).Encode(r), conn.(*net.UnixConn).CloseWrite()); err != nil {
		return answer, c.failed(err)
	}
	if err := receiveJSON(conn, helperAnswerSize, &answer); err != nil {
		return answer, c.failed(err)
	}
	switch {
	case answer.Errno == helperStuck:
		return answer, access.ErrStuck
	case answer.Errno == helperLate:
		return answer, access.ErrLate
	case answer.Errno != 0:
		return answer, answer.Errno
	}
	return answer, nil
}

// failed is the error of a request without an answer. The errno of the socket is text only: ENOENT would be the absence
// of a source.
func (c helperClient) failed(err error) error {
	kind := access.ErrNoHelper
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		kind, err = access.ErrLate, errors.New("helper")
	case errors.Is(err, access.ErrMalformed), errors.Is(err, syscall.EMSGSIZE):
		kind = access.ErrMalformed
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("connection closed without an answer")
	}
	if e := new(net.OpError); errors.As(err, &e) {
		err = e.Err
	}
	return &access.Error{Op: "query", Path: c.Socket, Err: fmt.Errorf("%w (%v)", kind, err)}
}

// Processes returns the processes that the helper has found. A list that is too long is cut, and then not complete.
func (c helperClient) Processes(ctx context.Context, first []int, only bool) ([]accel.Process, bool, error) {
	if len(first) > helperNamed {
		first, only = first[:helperNamed], false
	}
	a, err := c.ask(ctx, helperRequest{
		Read: source.Processes.Name(), First: first, Only: only, Names: c.Names, Groups: nodeGroups(c.Tree),
	})
	if err == nil && !areProcesses(a.Processes) {
		err = c.failed(access.ErrMalformed)
	}
	if err != nil {
		return nil, false, err
	}
	return a.Processes, a.Refused, nil
}

// helperFiles are files of which some are read by the helper.
type helperFiles struct {
	host.Files
	Helper helperClient
}

// Read reads vital product data by the helper.
func (f helperFiles) Read(p string, buf []byte) ([]byte, error) {
	function, ok := strings.CutSuffix(p, vpdFile)
	if !ok {
		return f.Files.Read(p, buf)
	}
	content, _, err := f.file(p, vpdSize, helperRequest{Read: source.VPD.Name(), Function: path.Base(function)})
	return append(buf[:0], content...), err
}

// Head reads the list of DMA-BUFs by the helper.
func (f helperFiles) Head(p string, size int) ([]byte, bool, error) {
	if p != host.BufinfoFile {
		return f.Files.Head(p, size)
	}
	return f.file(p, size, helperRequest{Read: source.Bufinfo.Name()})
}

func (f helperFiles) file(p string, size int, r helperRequest) ([]byte, bool, error) {
	a, err := f.Helper.ask(context.Background(), r)
	if err == nil && len(a.Content) > size {
		err = f.Helper.failed(access.ErrMalformed)
	}
	if err != nil {
		return nil, false, &access.Error{Op: "read", Path: p, Err: err}
	}
	return a.Content, a.Whole, nil
}

// commandLength is TASK_COMM_LEN, in characters of up to three bytes where they were invalid.
const commandLength = 64

// areProcesses reports whether a list has the form of one from processTable: the helper is not trusted more than the
// processes themselves.
func areProcesses(list []accel.Process) bool {
	last := 0
	return !slices.ContainsFunc(list, func(p accel.Process) bool {
		sorted := p.PID > last
		last = p.PID
		return !sorted || !isProcess(&p)
	})
}

func isProcess(p *accel.Process) bool {
	isMinor := func(n int) bool { return n >= 0 }
	isNode := func(name string) bool {
		_, err := strconv.Atoi(strings.TrimPrefix(name, "uverbs"))
		return err == nil && strings.HasPrefix(name, "uverbs")
	}
	topology, err := ReducedTopology([]byte(p.Topology))
	return allOf(p.GPUs, isMinor) && allOf(p.Verbs, isNode) && allOf(p.DMABUFs, isDMABUFs) && len(p.DMABUFs) <= 2 &&
		len(p.Command) <= commandLength && p.Command == printable(p.Command) &&
		(p.NCCL == "" || ncclLibrary().MatchString("libnccl.so."+p.NCCL)) &&
		isPlaced(p) && p.PeersOver == possibleNames(p.PeersOver) && areLibraries(p.Libraries) &&
		areSettings(p.Env, variableName(), otherNames) && areSettings(p.Conf, settingName(), nil) &&
		err == nil && topology == p.Topology &&
		p.Regions == nil && p.RegionBytes == nil
}

// isDMABUFs reports whether it is a sum that dmabufs returns.
func isDMABUFs(d accel.DMABUFs) bool {
	return exportsGPUMemory(d.Exporter, true) && d.Buffers > 0 && d.Buffers <= maxDMABUFs
}

func allOf[T any](list []T, ok func(T) bool) bool {
	return len(list) <= maxOpenFiles && !slices.ContainsFunc(list, func(x T) bool { return !ok(x) })
}

// areSettings reports whether settings are within the limits, with names that match or others.
func areSettings(set map[string]string, names *regexp.Regexp, others []string) bool {
	room := settingsLength
	fits := map[string]string{}
	for name, value := range set {
		if !names.MatchString(name) && !slices.Contains(others, name) || !addSetting(fits, &room, name, value) {
			return false
		}
	}
	return true
}

// ByHelper returns the files and processes of a tree, as the helper at the socket p.Helper reads those that need
// privileges.
func ByHelper(t *rooted.Tree, p rooted.Paths) (host.Files, host.Processes) {
	client := helperClient{p.Helper, p.JobNames, t, helperTime}
	return helperFiles{t, client}, client
}
