package collector

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

// slowInterval is how long facts that change with a link or a configuration only are kept: identity, GID and P_Key tables,
// the netdev of a port, link modes.
const slowInterval = time.Minute

// eachDevice reads all devices side by side, each in its lane. One that does not return in time is reported and costs its
// own data only.
func eachDevice[T any](ctx context.Context, h *host.Host, n *snapshot.Node, names []string, read func(*reader, string) (T, bool)) []T {
	type result struct {
		r     reader
		value T
		ok    bool
		err   error
	}
	results := make([]*result, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			// A late reader keeps its own result: what is handed out below is then another one.
			res := &result{r: reader{ctx: ctx, h: h, device: name}}
			err := h.Lanes.Do(ctx, name, func() { res.value, res.ok = read(&res.r, name) })
			if err != nil {
				res = &result{err: err}
			}
			results[i] = res
		})
	}
	wg.Wait()
	var out []T
	for i, res := range results {
		n.Devices = append(n.Devices, snapshot.DeviceRead{Device: names[i], Stuck: res.err != nil})
		if res.err != nil {
			n.Issues = append(n.Issues, snapshot.Issue{Device: names[i], Reason: string(host.Stuck), Err: res.err})
			continue
		}
		n.Issues = append(n.Issues, res.r.issues...)
		if res.ok {
			out = append(out, res.value)
		}
	}
	return out
}

// reader reads the files of one device and remembers what it could not read. An absent value is a nil pointer or an empty
// string.
type reader struct {
	ctx    context.Context
	h      *host.Host
	device string
	issues []snapshot.Issue
	buf    []byte
}

// issue notes a failed read. A canceled one has its own report.
func (r *reader) issue(err error) {
	r.issues = append(r.issues, snapshot.Issue{Device: r.device, Reason: string(host.ReasonOf(err)), Err: err})
}

// bytes reads a file that has to be there. The result is valid until the next read.
func (r *reader) bytes(path string) ([]byte, bool) {
	b, err := r.h.Files.Read(path, r.buf)
	if err != nil {
		r.issue(err)
		return nil, false
	}
	r.buf = b
	return bytes.TrimSpace(b), true
}

// text reads a text that has to be there; an empty file is malformed.
func (r *reader) text(path string) string {
	b, ok := r.bytes(path)
	if ok && len(b) == 0 {
		r.issue(host.ErrGarbled(path, b))
	}
	return string(b)
}

// optional reads a text that some drivers do not have, or leave empty.
func (r *reader) optional(path string) string {
	b, err := r.h.Files.Read(path, r.buf)
	if err != nil {
		if !host.IsAbsent(err) {
			r.issue(err)
		}
		return ""
	}
	r.buf = b
	return string(bytes.TrimSpace(b))
}

// number reads an integer: decimal, 0x…, or the number in front of a text as in "4: ACTIVE".
func (r *reader) number(path string) *uint64 {
	b, ok := r.bytes(path)
	if !ok {
		return nil
	}
	n, ok := parseNumber(b)
	if !ok {
		r.issue(host.ErrGarbled(path, b))
		return nil
	}
	return &n
}

// stats reads the counters in a directory by name. Names in first are read before the others; skip are left out.
func (r *reader) stats(dir string, names, first []string, skip string) []snapshot.Stat {
	out := make([]snapshot.Stat, 0, len(names))
	add := func(name string) {
		path := dir + "/" + name
		b, ok := r.bytes(path)
		if !ok {
			return
		}
		n, err := strconv.ParseUint(string(b), 10, 64)
		if err != nil {
			r.issue(host.ErrGarbled(path, b))
			return
		}
		out = append(out, snapshot.Stat{Name: name, Value: n})
	}
	isFirst := func(name string) bool {
		for _, f := range first {
			if f == name {
				return true
			}
		}
		return false
	}
	for _, name := range names {
		if isFirst(name) {
			add(name)
		}
	}
	for _, name := range names {
		if name != skip && !isFirst(name) {
			add(name)
		}
	}
	return out
}

// parseNumber reads what the kernel prints with %d, %u, 0x%x, "%d: %s" or "%u: %s".
func parseNumber(b []byte) (uint64, bool) {
	s, _, _ := strings.Cut(string(b), ":")
	n, err := strconv.ParseUint(strings.TrimSpace(s), 0, 64)
	return n, err == nil
}

// ports lists the port numbers of a device. The directory may appear a moment after the device.
func (r *reader) ports(dev string) []int {
	dir := classDir + "/" + dev + "/ports"
	names, err := r.h.Files.List(dir)
	if err != nil {
		if !host.IsAbsent(err) {
			r.issue(err)
		}
		return nil
	}
	var out []int
	for _, n := range names {
		if i, err := strconv.Atoi(n); err == nil && i > 0 {
			out = append(out, i)
		}
	}
	return out
}
