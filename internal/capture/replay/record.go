// Package replay records everything that is read on a machine, and replays it in place of the machine.
package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
)

// Recorder records everything that is read through it.
type Recorder struct {
	// WholeKernelLog records the lines of the kernel log that are recognised as they were printed, in addition to their
	// kind and object.
	WholeKernelLog bool

	inner *host.Host
	answers
	otherReads

	mu     sync.Mutex
	rounds []capture.Round
	all    map[string]capture.Entry // the machine as of the rounds written so far
	now    map[string]capture.Entry // what this round has read
	listed map[string][]string      // directories listed in this round
	dirs   map[string]string        // canonical directories of this round
	plain  map[string]bool          // canonical paths that are not links

	tracedAt time.Time // of the first reading of eBPF programs, for the ages in their entry
}

// NewRecorder records what is read through Host until Archive is called.
func NewRecorder(inner *host.Host) *Recorder {
	r := &Recorder{inner: inner, all: map[string]capture.Entry{}, plain: map[string]bool{}}
	r.answers, r.otherReads = answers{recorder: r}, otherReads{r.Read, r.List, r.Identity}
	r.clear()
	return r
}

// start returns the time that ages count from; with now it is the present one, unless it is set.
func (r *Recorder) start(now bool) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now && r.tracedAt.IsZero() {
		r.tracedAt = r.inner.Now()
	}
	return r.tracedAt
}

func (r *Recorder) clear() {
	r.now, r.listed, r.dirs = map[string]capture.Entry{}, map[string][]string{}, map[string]string{}
}

// Host returns the recorded machine.
func (r *Recorder) Host() *host.Host {
	h := *r.inner
	h.Files, h.RDMA, h.Ethtool, h.Devlink, h.DCB, h.GPUs, h.Processes = r, r, r, r, r, r, r
	replace(&h.Launchers, host.Launchers(r))
	replace(&h.Networkd, host.Networkd(r))
	replace(&h.Pods, host.Pods(r))
	replace(&h.Subnet, host.Subnet(r))
	replace(&h.Tracer, host.Tracer(r))
	replace(&h.KernelLog, host.KernelLog(r))
	return &h
}

// replace replaces a source that the machine has.
func replace[T comparable](source *T, by T) {
	var none T
	if *source != none {
		*source = by
	}
}

// EndRound ends the round that was read at an offset from the first.
func (r *Recorder) EndRound(at time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addListed()
	round := capture.Round{At: at}
	for _, p := range slices.Sorted(maps.Keys(r.now)) { // removed paths precede their replacements
		e := r.now[p]
		if e.IsGone() {
			if !r.known(p) {
				continue
			}
		} else if old, ok := r.all[p]; ok && (old.Equal(e) || e.Kind == capture.Unread) {
			continue // unchanged; or read in an earlier round and only listed in this one
		}
		capture.Advance(r.all, e)
		round.Entries = append(round.Entries, e)
	}
	r.rounds = append(r.rounds, round)
	r.clear()
}

// addListed turns listings into entries: a path that was listed and not read exists; a known path that is no longer
// listed is gone.
func (r *Recorder) addListed() {
	dirs := map[string]bool{} // directories with contents
	gone := map[string]bool{}
	each := func(entries map[string]capture.Entry, visit func(dir, child string)) {
		for p := range entries {
			for child, dir := p, path.Dir(p); dir != "."; child, dir = dir, path.Dir(dir) {
				visit(dir, child)
			}
		}
	}
	each(r.now, func(dir, _ string) { dirs[dir] = true })
	each(r.all, func(dir, child string) {
		dirs[dir] = true
		if names, listed := r.listed[dir]; listed {
			if _, there := slices.BinarySearch(names, path.Base(child)); !there {
				gone[child] = true
			}
		}
	})
	for dir := range r.listed {
		dirs[dir] = true
	}
	maps.DeleteFunc(r.now, func(p string, e capture.Entry) bool { return e.Kind == capture.Unread && dirs[p] })
	for dir, names := range r.listed {
		if len(names) == 0 {
			r.now[dir] = capture.Entry{Path: dir, Kind: capture.Dir}
		}
		for _, n := range names {
			p := path.Join(dir, n)
			if _, read := r.now[p]; !read && !dirs[p] {
				r.now[p] = capture.Entry{Path: p, Kind: capture.Unread}
			}
		}
	}
	for p := range gone {
		r.now[p] = capture.Entry{Path: p, Kind: capture.Error, Errno: syscall.ENOENT}
	}
}

func (r *Recorder) known(p string) bool {
	for q := range r.all {
		if capture.IsBelow(q, p) {
			return true
		}
	}
	return false
}

// Keep keeps the last n rounds, and merges earlier ones into the first of them. Offsets count from that round: moved is
// by how much they have changed.
func (r *Recorder) Keep(n int) (moved time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	drop := len(r.rounds) - n
	if drop <= 0 {
		return 0
	}
	first := map[string]capture.Entry{}
	for _, round := range r.rounds[:drop+1] {
		for _, e := range round.Entries { // removed paths precede their replacements
			capture.Advance(first, e)
		}
	}
	left := slices.Clone(r.rounds[drop:])
	moved = left[0].At
	left[0].Entries = nil
	for _, p := range slices.Sorted(maps.Keys(first)) {
		left[0].Entries = append(left[0].Entries, first[p])
	}
	for i := range left {
		left[i].At -= moved
	}
	r.rounds = left
	return moved
}

// Archive returns what was recorded, with meta as its description.
func (r *Recorder) Archive(meta capture.Meta) *capture.Archive {
	r.mu.Lock()
	defer r.mu.Unlock()
	meta.Version = capture.Version
	return &capture.Archive{Meta: meta, Rounds: r.rounds}
}

// put records an entry. An error other than an errno is not recorded: it is not a fact of the machine.
func (r *Recorder) put(p string, e capture.Entry, err error) {
	e.Path = p
	if err != nil {
		e = capture.Entry{Path: p, Kind: capture.Error}
		if !errors.As(err, &e.Errno) {
			return
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	old, read := r.now[p]
	dangling := old.Kind == capture.Link && e.Kind == capture.Error // such a link stays a link
	if read && (e.Kind == capture.Unread || dangling) {
		return
	}
	r.now[p] = e
}

// canonical follows the links of p except in its last element, and records them.
func (r *Recorder) canonical(p string) string {
	dir, base := path.Split(p)
	dir = path.Clean(dir)
	if dir == "." {
		return base
	}
	r.mu.Lock()
	real, ok := r.dirs[dir]
	r.mu.Unlock()
	if !ok {
		var err error
		if real, err = r.Resolve(dir); err != nil {
			real = dir
		}
		r.mu.Lock()
		r.dirs[dir] = real
		r.mu.Unlock()
	}
	return path.Join(real, base)
}

// file is canonical for a file, which may be a link itself.
func (r *Recorder) file(p string) string {
	real := r.canonical(p)
	r.mu.Lock()
	plain := r.plain[real]
	r.mu.Unlock()
	if plain {
		return real
	}
	target, err := r.Resolve(real)
	if err != nil {
		return real
	}
	if target == real {
		r.mu.Lock()
		r.plain[real] = true
		r.mu.Unlock()
	}
	return target
}

// Read records the content, or the errno.
func (r *Recorder) Read(p string, buf []byte) ([]byte, error) {
	b, err := r.inner.Files.Read(p, buf)
	r.put(r.file(p), capture.Entry{Data: slices.Clone(b)}, err)
	return b, err
}

// List records the names.
func (r *Recorder) List(p string) ([]string, error) {
	names, err := r.inner.Files.List(p)
	real, rerr := r.Resolve(p)
	if rerr != nil {
		real = p
	}
	if err != nil {
		r.put(real, capture.Entry{}, err)
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listed[real] = names
	return names, nil
}

// Lines records the lines.
func (r *Recorder) Lines(p string, words []string) ([]byte, error) {
	b, err := r.inner.Files.Lines(p, words)
	r.put(r.file(p), capture.Entry{Data: b}, err)
	return b, err
}

// Head records the beginning of a file.
func (r *Recorder) Head(p string, size int) (content []byte, whole bool, err error) {
	b, whole, err := r.inner.Files.Head(p, size)
	r.put(r.file(p), capture.Entry{Data: bytes.Clone(b)}, err)
	return b, whole, err
}

// Opened is not recorded.
func (r *Recorder) Opened() uint64 { return r.inner.Files.Opened() }

// Identity is not recorded: a replay has its own.
func (r *Recorder) Identity(p string) (uint64, error) { return r.inner.Files.Identity(p) }

// Link records a link.
func (r *Recorder) Link(p string) (string, error) {
	target, err := r.inner.Files.Link(p)
	switch {
	case err == nil:
		r.putLink(r.canonical(p), target)
	case access.IsAbsent(err):
		r.put(r.canonical(p), capture.Entry{}, err)
	}
	return target, err
}

// putLink records a link. A link with a target outside the tree, such as /var/run to the absolute /run, is not
// followed: reads below it fail, and the failure is recorded.
func (r *Recorder) putLink(p, target string) {
	if !capture.LeadsOutside(p, target) {
		r.put(p, capture.Entry{Kind: capture.Link, Target: target}, nil)
	}
}

// Resolve records the links of the path.
func (r *Recorder) Resolve(p string) (string, error) { return rooted.ResolveBy(r.plainLink, p) }

// plainLink is Link for a path whose directory is canonical.
func (r *Recorder) plainLink(p string) (string, error) {
	target, err := r.inner.Files.Link(p)
	if err == nil {
		r.putLink(p, target)
	}
	return target, err
}

// Readable records that the path exists, or why it is not readable.
func (r *Recorder) Readable(p string) error {
	err := r.inner.Files.Readable(p)
	r.put(r.canonical(p), capture.Entry{Kind: capture.Unread}, err)
	return err
}

// Mode records the permission bits, and the group of a file that others may not read and write.
func (r *Recorder) Mode(p string) (mode uint32, group *uint32, err error) {
	mode, group, err = r.inner.Files.Mode(p)
	text := fmt.Sprintf("%04o", mode)
	if group != nil && mode&0o006 != 0o006 {
		text += fmt.Sprintf(" %d", *group)
	}
	r.put(path.Join(answer.ModesDir, p), capture.Entry{Data: []byte(text + "\n")}, err)
	return mode, group, err
}

// Put records an entry of the exporter's own data.
func (r *Recorder) Put(p string, data []byte) { r.put(p, capture.Entry{Data: data}, nil) }

// answer records a netlink answer. A missing netlink family is recorded by the absence of its entries.
func (r *Recorder) answer(p string, data []byte, err error) {
	if err != nil && access.IsAbsent(err) {
		err = &access.Error{Op: "query", Path: p, Err: syscall.ENOENT}
	}
	r.put(p, capture.Entry{Data: data}, err)
}

// LLDPNeighbours records an answer of systemd-networkd as the file that earlier versions have: a replay has no socket.
// Without an answer there is no entry, and the collector reads the file.
func (r *Recorder) LLDPNeighbours(ctx context.Context, netdev string, index uint64) ([]byte, error) {
	frames, err := r.inner.Networkd.LLDPNeighbours(ctx, netdev, index)
	if !host.NoNetworkd(err) {
		r.put(r.canonical(answer.LLDPDir+strconv.FormatUint(index, 10)), capture.Entry{Data: frames}, err)
	}
	return frames, err
}
