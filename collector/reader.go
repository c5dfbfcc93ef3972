package collector

import (
	"bytes"
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/workers"
)

// slowInterval is how long data is kept that changes only with a link or a configuration: identity, GID and P_Key tables, the netdev of a
// port, link modes.
const slowInterval = time.Minute

// reading is the result of reading one device.
type reading[T any] struct {
	issues []snapshot.Issue
	held   uint64 // items in quarantine
	value  T
	ok     bool
	err    error
}

// eachDevice reads devices in their lanes, passes all results to use, and calls done when all have returned or ctx ends. A device that
// has not returned by then is reported, costs only its own data, and is not read again until it returns. All of this may run in a
// goroutine without a recover of its own.
func eachDevice[T any](ctx context.Context, h *host.Host, n *snapshot.Node, collector string, names []string, read func(*reader, string) (T, bool), use func([]T), done func(error)) {
	var mu sync.Mutex
	var buf []byte // of the reader that has ended, for the next one
	readings := make([]*reading[T], len(names))
	one := func(name string) (res reading[T]) {
		leave, err := h.Lanes.Enter(collector + "/" + name)
		if err != nil {
			return reading[T]{err: err}
		}
		defer leave()
		r := reader{ctx: ctx, h: h, device: name, since: time.Now(), reduced: n.Reduced}
		mu.Lock()
		r.buf, buf = buf, nil
		mu.Unlock()
		func() {
			defer r.end()
			res.value, res.ok = read(&r, name)
		}()
		if r.used && h.Replaced(name) { // the data may be of two devices, and failures are no fault
			res.ok, r.issues = false, nil
		}
		res.issues, res.held = r.issues, r.quarantine.items(r.now())+r.held
		mu.Lock()
		defer mu.Unlock()
		buf = r.buf
		return res
	}
	workers.Do(ctx, len(names), func(i int) {
		var res reading[T]
		if err := host.Guard(func() error { res = one(names[i]); return nil }); err != nil {
			res.issues = []snapshot.Issue{{Device: names[i], Reason: string(host.ReasonOf(err)), Err: err}}
		}
		mu.Lock()
		defer mu.Unlock()
		readings[i] = &res
	}, func() {
		done(host.Guard(func() error {
			mu.Lock()
			defer mu.Unlock()
			out := make([]T, 0, len(names))
			for i, res := range readings {
				if res == nil {
					res = &reading[T]{err: fmt.Errorf("%s/%s: %w: no answer in time", collector, names[i], host.ErrStuck)}
				}
				n.Devices = append(n.Devices, snapshot.DeviceRead{Device: names[i], Stuck: res.err != nil, Quarantined: res.held})
				if res.err != nil {
					n.Issues = append(n.Issues, snapshot.Issue{Device: names[i], Reason: string(host.Stuck), Err: res.err})
					continue
				}
				n.Issues = append(n.Issues, res.issues...)
				if res.ok {
					out = append(out, res.value)
				}
			}
			use(out)
			return nil
		}))
	})
}

// reader reads the files of one device and records failures. An absent value is a nil pointer or an empty string.
type reader struct {
	ctx    context.Context
	h      *host.Host
	device string
	issues []snapshot.Issue
	buf    []byte
	// quarantine outlives the round if the collector keeps it.
	quarantine *quarantine
	held       uint64 // items of other quarantines

	clock time.Time // of the host, at the start of the device; zero until used
	// The present source, number of requests of this group of reads, its start, and the time of earlier groups.
	source host.Source
	asked  int
	used   bool // at least one request was made
	since  time.Time
	spent  time.Duration
	mayAsk *bool // whether deferrable data may be read in this round; nil until used

	reduced *snapshot.Reduced // what is left out of the device
}

// reads reports whether a metric of the device is read.
func (r *reader) reads(d *Desc) bool { return d != nil && !r.reduced.LeavesOut(r.device, d.Name) }

// begin starts a group of reads of one source. The clock is read once per group with requests: it costs a tenth of reading a file.
func (r *reader) begin(s host.Source) {
	if r.asked > 0 && r.source != s {
		r.settle(time.Now())
	}
	r.source = s
}

// end closes the last group and charges the device.
func (r *reader) end() {
	if r.asked > 0 {
		r.settle(time.Now())
	}
	r.h.Budget.Spend(r.device, r.spent)
	r.spent = 0
}

func (r *reader) settle(now time.Time) {
	took := now.Sub(r.since)
	r.h.Meter.Begin(r.source, r.source.Lock(), r.asked)
	r.h.Meter.Spend(r.source, r.source.Lock(), took)
	r.spent += took
	r.asked, r.used, r.since = 0, true, now
}

// underRTNL makes n requests of a source that take rtnl. After an error the results of f must not be used, because f may still be
// running. For the same reason f must not use the reader.
func (r *reader) underRTNL(s host.Source, n int, f func()) error {
	if r.asked > 0 {
		r.settle(time.Now())
	}
	r.source, r.used = s, true
	err := r.h.UnderRTNL(r.ctx, s, r.device, n, f)
	r.since = time.Now()
	if err != nil {
		r.issue(err)
	}
	return err
}

// apart runs requests in f that charge the device and the source themselves.
func (r *reader) apart(s host.Source, f func()) {
	if r.asked > 0 {
		r.settle(time.Now())
	}
	r.source, r.used = s, true
	f()
	r.since = time.Now()
}

// now is the time of the reading, one for all files of a device: reading the clock costs a tenth of reading a file.
func (r *reader) now() time.Time {
	if r.clock.IsZero() {
		r.clock = r.h.Now()
	}
	return r.clock
}

// deferrable reports whether deferrable data (changes only with a link or a configuration) may be read in this round.
func (r *reader) deferrable() bool {
	if r.mayAsk == nil {
		ok := r.h.Budget.Allow(r.device)
		r.mayAsk = &ok
	}
	return *r.mayAsk
}

// due reports whether data of a given time has to be read again. Data that was never read is always due.
func (r *reader) due(at time.Time) bool {
	return at.IsZero() || r.now().Sub(at) >= slowInterval && r.deferrable()
}

// issue records a failed read. A cancelled one is reported elsewhere.
func (r *reader) issue(err error) {
	r.issues = append(r.issues, snapshot.Issue{Device: r.device, Source: r.source.Name(), Needs: r.source.NeedsAfter(err), Reason: string(host.ReasonOf(err)), Err: err})
}

// bytes reads a mandatory file. The result is valid until the next read.
func (r *reader) bytes(dir, name string) ([]byte, bool) {
	now := r.now()
	if r.quarantine.held(dir, name, now) {
		return nil, false
	}
	r.asked++
	b, err := r.h.Files.ReadIn(dir, name, r.buf)
	r.quarantine.note(dir, name, now, err)
	if err != nil {
		r.issue(err)
		return nil, false
	}
	r.buf = b
	return bytes.TrimSpace(b), true
}

// text reads a mandatory text; an empty file is malformed.
func (r *reader) text(dir, name string) string {
	b, ok := r.bytes(dir, name)
	if ok && len(b) == 0 {
		r.issue(host.ErrGarbled(dir+"/"+name, b))
	}
	return string(b)
}

// optional reads a text that some drivers lack or leave empty.
func (r *reader) optional(path string) string {
	slash := strings.LastIndexByte(path, '/')
	dir, name := path[:slash], path[slash+1:]
	now := r.now()
	if r.quarantine.held(dir, name, now) {
		return ""
	}
	r.asked++
	b, err := r.h.Files.ReadIn(dir, name, r.buf)
	r.quarantine.note(dir, name, now, err)
	if err != nil {
		if !host.IsAbsent(err) {
			r.issue(err)
		}
		return ""
	}
	r.buf = b
	return string(bytes.TrimSpace(b))
}

// found is the state of a table entry.
type found int

const (
	entryUsed found = iota
	entryEmpty
	entryUnread // unknown
)

// tableEntry reads an entry of a table; the kernel returns EINVAL for an empty one.
func (r *reader) tableEntry(dir, name string) (string, found) {
	now := r.now()
	if r.quarantine.held(dir, name, now) {
		return "", entryUnread
	}
	r.asked++
	b, err := r.h.Files.ReadIn(dir, name, r.buf)
	switch reason := host.ReasonOf(err); {
	case err == nil:
	case reason == host.Invalid:
		return "", entryEmpty
	case reason == host.Absent: // removed with its netdev
		return "", entryUnread
	}
	r.quarantine.note(dir, name, now, err)
	if err != nil {
		r.issue(err)
		return "", entryUnread
	}
	r.buf = b
	return string(bytes.TrimSpace(b)), entryUsed
}

// entry is tableEntry for a single entry.
func (r *reader) entry(dir, name string) (string, bool) {
	text, found := r.tableEntry(dir, name)
	return text, found == entryUsed
}

// number reads an integer: decimal, 0x…, or the number in front of a text as in "4: ACTIVE".
func (r *reader) number(dir, name string) *uint64 {
	b, ok := r.bytes(dir, name)
	if !ok {
		return nil
	}
	n, ok := parseNumber(b)
	if !ok {
		r.issue(host.ErrGarbled(dir+"/"+name, b))
		return nil
	}
	return &n
}

// numbersUnderRTNL is number for files that take rtnl. ok is false if rtnl is unavailable.
func (r *reader) numbersUnderRTNL(s host.Source, dir string, names ...string) (numbers []*uint64, ok bool) {
	now, files := r.now(), r.h.Files
	numbers = make([]*uint64, len(names))
	rest := r.quarantine.allowed(dir, names, now)
	if len(rest) == 0 {
		return numbers, true
	}
	contents, errs := make([][]byte, len(rest)), make([]error, len(rest))
	if r.underRTNL(s, len(rest), func() {
		for i, name := range rest {
			contents[i], errs[i] = files.ReadIn(dir, name, nil)
		}
	}) != nil {
		return numbers, false
	}
	for i, name := range rest {
		err := errs[i]
		r.quarantine.note(dir, name, now, err)
		n, ok := parseNumber(bytes.TrimSpace(contents[i]))
		if err == nil && !ok {
			err = host.ErrGarbled(dir+"/"+name, contents[i])
		}
		if err != nil {
			r.issue(err)
			continue
		}
		numbers[slices.Index(names, name)] = &n
	}
	return numbers, true
}

// noPMA is the content of a counter file on old kernels if the driver has no performance management agent (show_pma_counter,
// drivers/infiniband/core/sysfs.c).
const noPMA = "N/A (no PMA)"

// stats reads the counters in a directory by name, in the order of names.
func (r *reader) stats(dir string, names []string) []snapshot.Stat {
	now := r.now()
	names = r.quarantine.allowed(dir, names, now)
	out := make([]snapshot.Stat, 0, len(names))
	r.asked += len(names)
	r.buf = r.h.Files.ReadEach(dir, names, r.buf, func(name string, b []byte, err error) {
		if err == nil && string(bytes.TrimSpace(b)) == noPMA {
			err = host.NotSupported(dir + "/" + name)
		}
		r.quarantine.note(dir, name, now, err)
		if err != nil {
			r.issue(err)
			return
		}
		n, ok := parseDecimal(bytes.TrimSpace(b))
		if !ok {
			r.issue(host.ErrGarbled(dir+"/"+name, b))
			return
		}
		out = append(out, snapshot.Stat{Name: name, Value: n})
	})
	return out
}

// parseDecimal is strconv.ParseUint on bytes, without an allocation.
func parseDecimal(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		hi, lo := bits.Mul64(n, 10)
		var carry uint64
		if n, carry = bits.Add64(lo, uint64(c-'0'), 0); hi+carry != 0 {
			return 0, false
		}
	}
	return n, true
}

// parseNumber parses the kernel's formats %d, %u, 0x%x, "%d: %s" and "%u: %s".
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
