// Package reading reads the host for collectors: a Reader reads the files and requests of one device, with failures,
// cost and quarantine; Devices reads all devices of a round; Kept keeps values that are not read in each round.
package reading

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
)

// Reader reads the files of one device, or of the host, from one source after the other (From), and records failures.
type Reader struct {
	Ctx    context.Context
	Host   *host.Host
	Device string           // empty: of the host
	Issues []snapshot.Issue // the failures so far
	// Quarantine may be kept by the collector between rounds; nil: failing items are read in each round.
	Quarantine *Quarantine
	// Held is the number of items in quarantines other than Quarantine.
	Held uint64

	reduced *snapshot.Reduced // what is left out of the device
	buf     []byte
	clock   time.Time // of the host, at the start of the device; zero until used
	// State of the present group of reads: source, number of requests, start, and the time of earlier groups.
	source source.Source
	asked  int
	used   bool // at least one request was made
	beside bool // at least one of them was not the read of a file
	since  time.Time
	spent  time.Duration
	budget budget
}

// budget says whether deferrable data may be read in this round.
type budget int8

const (
	budgetUnknown budget = iota
	budgetLeft
	budgetSpent
)

// New returns a reader of a device, or of the host if device is empty. End charges it.
func New(ctx context.Context, h *host.Host, device string) *Reader {
	return &Reader{Ctx: ctx, Host: h, Device: device, since: time.Now()}
}

// OfHost calls read with a Reads of a source of the host, in a turn, and returns the issues. After an error the results
// of read must not be used: it has panicked, or not returned yet.
func OfHost(
	ctx context.Context, h *host.Host, turn string, s source.Source, read func(Reads),
) ([]snapshot.Issue, error) {
	r := New(ctx, h, "")
	if err := h.Turns.Do(ctx, turn, func() {
		defer r.End()
		read(r.From(s))
	}); err != nil {
		return nil, err
	}
	return r.Issues, nil
}

// Request makes one request of a source in a turn, and charges it to the source. After an error the results of ask must
// not be used: it has failed, has not returned, or panicked.
func Request(ctx context.Context, h *host.Host, turn string, s source.Source, ask func() error) error {
	var failed error
	if err := h.Turns.Do(ctx, turn, func() {
		h.Meter.Begin(s, s.Lock(), 1)
		start := time.Now()
		failed = ask()
		h.Meter.Spend(s, s.Lock(), time.Since(start))
	}); err != nil {
		return err
	}
	return failed
}

// IssueOf returns the issue for a failed read of a source of the host.
func IssueOf(s source.Source, err error) snapshot.Issue {
	return snapshot.Issue{Source: s.Name(), Needs: s.NeedsAfter(err), Reason: string(access.ReasonOf(err)), Err: err}
}

// Reduced reports whether some metrics of the device are not read.
func (r *Reader) Reduced() bool { return r.reduced.Of(r.Device) }

// Wants reports whether a metric of the device is read.
func (r *Reader) Wants(metric string) bool { return !r.reduced.LeavesOut(r.Device, metric) }

// Reads reads one source for a reader. An absent value is a nil pointer or an empty string.
type Reads struct {
	*Reader
	from source.Source
}

// From starts a group of reads of one source. The clock is read once per group with requests: it costs a tenth of
// reading a file.
func (r *Reader) From(s source.Source) Reads {
	r.turnTo(s)
	return Reads{r, s}
}

// turnTo starts a group of a source, unless the present group is of that source.
func (r *Reader) turnTo(s source.Source) {
	if r.source != s {
		r.settle()
		r.source = s
	}
}

// count counts requests of the source, before they are made.
func (r Reads) count(n int) {
	r.turnTo(r.from)
	r.asked += n
}

// Ask counts requests that are not made through a method of Reads.
func (r Reads) Ask(n int) {
	r.count(n)
	r.beside = true
}

// Try makes a request whose result is discarded if it fails.
func (r Reads) Try(request func() error) error {
	r.count(1)
	err := request()
	r.beside = r.beside || err == nil
	return err
}

// isMixed reports whether the data may belong to two devices, because the device was replaced since the start of the
// round. Reads without an error through descriptors that were open by then belong to the first device.
func (r *Reader) isMixed() bool {
	if !r.used || !r.beside && len(r.Issues) == 0 && r.Host.Settled() {
		return false
	}
	return r.Host.Replaced(r.Device)
}

// End closes the last group and charges the device.
func (r *Reader) End() {
	r.settle()
	r.Host.Budget.Spend(r.Device, r.spent)
	r.spent = 0
}

// settle charges the present group to its source.
func (r *Reader) settle() {
	if r.asked == 0 {
		return
	}
	now := time.Now()
	took := now.Sub(r.since)
	r.Host.Meter.Begin(r.source, r.source.Lock(), r.asked)
	r.Host.Meter.Spend(r.source, r.source.Lock(), took)
	r.spent += took
	r.asked, r.used, r.since = 0, true, now
}

// Apart runs f outside the present group: f charges the device and the source itself, or only waits.
func (r *Reader) Apart(s source.Source, f func()) {
	r.settle()
	r.source, r.used, r.beside = s, true, true
	f()
	r.since = time.Now()
}

// UnderRTNL makes n requests of a source that take rtnl. After an error, which is recorded, the results of f must not
// be used, because f may still be running. For the same reason f must not use the reader.
func (r *Reader) UnderRTNL(s source.Source, n int, f func()) (err error) {
	r.Apart(s, func() { err = r.Host.UnderRTNL(r.Ctx, s, r.Device, n, f) })
	if err != nil {
		r.From(s).Issue(err)
	}
	return err
}

// Now returns the time of the reading. It is the same for all files of a device, since reading the clock costs a tenth
// of reading a file.
func (r *Reader) Now() time.Time {
	if r.clock.IsZero() {
		r.clock = r.Host.Now()
	}
	return r.clock
}

// Deferrable reports whether deferrable data, which changes only with a link or a configuration, may be read in this
// round.
func (r *Reader) Deferrable() bool {
	if r.budget == budgetUnknown {
		r.budget = budgetSpent
		if r.Host.Budget.Allow(r.Device) {
			r.budget = budgetLeft
		}
	}
	return r.budget == budgetLeft
}

// Issue records a failed read of the source. Cancelled reads are reported elsewhere.
func (r Reads) Issue(err error) {
	issue := IssueOf(r.from, err)
	issue.Device = r.Device
	r.Issues = append(r.Issues, issue)
}

// IssueUnless records a failed read like Issue, unless its reason is an expected one.
func (r Reads) IssueUnless(err error, expected ...access.Reason) {
	if err != nil && !slices.Contains(expected, access.ReasonOf(err)) {
		r.Issue(err)
	}
}

// Outcome records the outcome of a request that drivers may not support. An unsupported request is not a failure.
func (r Reads) Outcome(dir, item string, err error) {
	r.Quarantine.Note(dir, item, r.Now(), err)
	r.IssueUnless(err, access.Absent, access.Unsupported)
}

// Ask makes a request that takes rtnl and that drivers may not support. dir and item name it in the quarantine. The
// answer is nil if the request is unsupported, quarantined, or failed (which is recorded). made is false if rtnl is
// unavailable.
func Ask[T any](
	r *Reader, s source.Source, dir, item, object string, ask func(context.Context, string) (T, error),
) (answer *T, made bool) {
	if r.Quarantine.Held(dir, item, r.Now()) {
		return nil, true
	}
	ctx, got := r.Ctx, new(T) // may still be written to after a refusal
	var err error
	if r.UnderRTNL(s, 1, func() { *got, err = ask(ctx, object) }) != nil {
		return nil, false
	}
	if r.From(s).Outcome(dir, item, err); err != nil {
		return nil, true
	}
	return got, true
}

// file reads a file, unless it is held in quarantine. The content is valid until the next read.
func (r Reads) file(dir, name string) (b []byte, held bool, err error) {
	if r.Quarantine.Held(dir, name, r.Now()) {
		return nil, true, nil
	}
	r.count(1)
	b, err = r.Host.Files.ReadIn(dir, name, r.buf)
	if err != nil {
		return nil, false, err
	}
	r.buf = b
	return bytes.TrimSpace(b), false, nil
}

// Bytes reads a mandatory file. The result is valid until the next read.
func (r Reads) Bytes(dir, name string) ([]byte, bool) {
	b, held, err := r.file(dir, name)
	if held {
		return nil, false
	}
	r.Quarantine.Note(dir, name, r.Now(), err)
	if err != nil {
		r.Issue(err)
		return nil, false
	}
	return b, true
}

// Text reads a mandatory text; an empty file is malformed.
func (r Reads) Text(dir, name string) string {
	b, ok := r.Bytes(dir, name)
	if ok && len(b) == 0 {
		r.Issue(access.ErrGarbled(dir+"/"+name, b))
	}
	return string(b)
}

// Optional reads a text that some drivers lack or leave empty.
func (r Reads) Optional(path string) string {
	slash := strings.LastIndexByte(path, '/')
	return string(r.optional(path[:slash], path[slash+1:]))
}

// optional is Optional for dir/name. The result is valid until the next read.
func (r Reads) optional(dir, name string) []byte {
	b, held, err := r.file(dir, name)
	if held {
		return nil
	}
	r.Quarantine.Note(dir, name, r.Now(), err)
	if err != nil && !access.IsAbsent(err) {
		r.Issue(err)
	}
	return b
}

// Optionals reads several texts of a directory like Optional, and passes the existing ones to use. A text is valid
// until use returns.
func (r Reads) Optionals(dir string, names []string, use func(name string, text []byte)) {
	now := r.Now()
	names = r.Quarantine.allowed(dir, names, now)
	r.count(len(names))
	r.buf = r.Host.Files.ReadEach(dir, names, r.buf, func(name string, b []byte, err error) {
		r.Quarantine.Note(dir, name, now, err)
		switch {
		case err == nil:
			use(name, bytes.TrimSpace(b))
		case !access.IsAbsent(err):
			r.Issue(err)
		}
	})
}

// Parsed reads and parses a text that some drivers lack or leave empty. A text that cannot be parsed is malformed.
func Parsed[T any](r Reads, path string, parse func(string) (T, bool)) *T {
	text := r.Optional(path)
	if text == "" {
		return nil
	}
	v, ok := parse(text)
	if !ok {
		r.Issue(access.ErrGarbled(path, []byte(text)))
		return nil
	}
	return &v
}

// Decimal reads an optional decimal number. Other content is malformed.
func (r Reads) Decimal(path string) *uint64 {
	return Parsed(r, path, func(text string) (uint64, bool) { return parseDecimal([]byte(text)) })
}

// Count is Decimal for files with other content on some drivers, which is ignored.
func (r Reads) Count(path string) *uint64 {
	slash := strings.LastIndexByte(path, '/')
	return CountOf(r.optional(path[:slash], path[slash+1:]))
}

// CountOf parses a decimal number; nil if the text is not a number.
func CountOf(text []byte) *uint64 {
	n, ok := parseDecimal(text)
	if !ok {
		return nil
	}
	return &n
}

// Entry is the state of a table entry.
type Entry int

// The states.
const (
	EntryUsed Entry = iota
	EntryEmpty
	EntryUnread // unknown
)

// TableEntry reads an entry of a table; the kernel returns EINVAL for an empty one.
func (r Reads) TableEntry(dir, name string) (string, Entry) {
	b, held, err := r.file(dir, name)
	if held {
		return "", EntryUnread
	}
	switch reason := access.ReasonOf(err); {
	case err == nil:
	case reason == access.Invalid:
		return "", EntryEmpty
	case reason == access.Absent: // removed with its netdev
		return "", EntryUnread
	}
	r.Quarantine.Note(dir, name, r.Now(), err)
	if err != nil {
		r.Issue(err)
		return "", EntryUnread
	}
	return string(b), EntryUsed
}

// Number reads an integer: decimal, 0x…, or followed by a text as in "4: ACTIVE".
func (r Reads) Number(dir, name string) *uint64 {
	b, ok := r.Bytes(dir, name)
	if !ok {
		return nil
	}
	n, ok := parseNumber(b)
	if !ok {
		r.Issue(access.ErrGarbled(dir+"/"+name, b))
		return nil
	}
	return &n
}

// NumbersUnderRTNL is Number for files that take rtnl. ok is false if rtnl is unavailable.
func (r *Reader) NumbersUnderRTNL(s source.Source, dir string, names ...string) (numbers []*uint64, ok bool) {
	now, files := r.Now(), r.Host.Files
	numbers = make([]*uint64, len(names))
	rest := r.Quarantine.allowed(dir, names, now)
	if len(rest) == 0 {
		return numbers, true
	}
	contents, errs := make([][]byte, len(rest)), make([]error, len(rest))
	if r.UnderRTNL(s, len(rest), func() {
		for i, name := range rest {
			contents[i], errs[i] = files.ReadIn(dir, name, nil)
		}
	}) != nil {
		return numbers, false
	}
	for i, name := range rest {
		err := errs[i]
		r.Quarantine.Note(dir, name, now, err)
		n, ok := parseNumber(bytes.TrimSpace(contents[i]))
		if err == nil && !ok {
			err = access.ErrGarbled(dir+"/"+name, contents[i])
		}
		if err != nil {
			r.From(s).Issue(err)
			continue
		}
		numbers[slices.Index(names, name)] = &n
	}
	return numbers, true
}

// noPMA is the content of a counter file on old kernels if the driver has no performance management agent
// (show_pma_counter, drivers/infiniband/core/sysfs.c).
const noPMA = "N/A (no PMA)"

// Stats reads the named counters in a directory, in the order of names. Counters that cannot be read are left out.
func (r Reads) Stats(dir string, names []string) []wire.Stat {
	now := r.Now()
	names = r.Quarantine.allowed(dir, names, now)
	out := make([]wire.Stat, 0, len(names))
	r.count(len(names))
	r.buf = r.Host.Files.ReadEach(dir, names, r.buf, func(name string, b []byte, err error) {
		b = bytes.TrimSpace(b)
		if err == nil && string(b) == noPMA {
			err = access.NotSupported(dir + "/" + name)
		}
		r.Quarantine.Note(dir, name, now, err)
		if err != nil {
			r.Issue(err)
			return
		}
		n, ok := parseDecimal(b)
		if !ok {
			r.Issue(access.ErrGarbled(dir+"/"+name, b))
			return
		}
		out = append(out, wire.Stat{Name: name, Value: n})
	})
	return out
}
