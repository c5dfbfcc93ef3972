package replay

import (
	"errors"
	"fmt"
	"os"
	"path"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/host/source"
)

// Player replays an archive as a machine. It unpacks into a temporary directory and reads that with the file code of a
// live host, and injects the recorded errors. The caller controls time: Seek moves the machine to a moment. After the
// last round each counter continues by its last step.
type Player struct {
	answers
	otherReads
	archive *capture.Archive
	base    time.Time // time of the first round
	folder  string
	root    *os.Root
	live    *live.Live

	mu       sync.RWMutex // Seek writes, reads of the machine read
	now      time.Time
	next     int              // first round that Seek has not applied
	present  map[string]state // what has been written and exists, by canonical path
	counters capture.Counters // by canonical path
	made     map[string]bool  // created directories

	dirs sync.Map // canonical directories, by logical path, while no link changes

	dir     *os.Root // the last directory written to (entries are sorted, so its path is rarely walked again)
	dirName string
}

// state is an entry without its content.
type state struct {
	kind   capture.Kind
	target string        // of a link
	errno  syscall.Errno // injected
}

// Play unpacks an archive that begins at base. Close removes the directory.
func Play(a *capture.Archive, base time.Time) (*Player, error) {
	if a.IsVariant() {
		return nil, fmt.Errorf("replay: base %q of the variant is missing", a.Meta.Base)
	}
	folder, err := os.MkdirTemp(Scratch(), "rdma_exporter-replay-")
	if err != nil {
		return nil, fmt.Errorf("replay: %w: set TMPDIR to a directory with free space", err)
	}
	p := &Player{
		archive: a, base: base, folder: folder,
		present: map[string]state{}, made: map[string]bool{}, counters: capture.NewCounters(),
	}
	p.answers, p.otherReads = answers{player: p}, otherReads{p.Read, p.List, p.Identity}
	if err := p.unpack(); err != nil {
		return nil, errors.Join(fmt.Errorf("replay: %w", err), p.Close())
	}
	return p, nil
}

func (p *Player) unpack() (err error) {
	for _, d := range []string{"sys", "proc", "dev"} {
		if err := os.Mkdir(path.Join(p.folder, d), 0o755); err != nil {
			return err
		}
	}
	if p.root, err = os.OpenRoot(p.folder); err != nil {
		return err
	}
	if p.live, err = live.Open(rooted.Paths{RootFS: p.folder}); err != nil {
		return err
	}
	return p.Seek(p.base)
}

// Close removes the unpacked machine.
func (p *Player) Close() error {
	var errs []error
	if p.live != nil {
		errs = append(errs, p.live.Close())
	}
	p.leave()
	if p.root != nil {
		errs = append(errs, p.root.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(p.folder))...)
}

// Last returns the time of the last recorded round.
func (p *Player) Last() time.Time { return p.base.Add(p.archive.Rounds[len(p.archive.Rounds)-1].At) }

// Times returns the times of the recorded rounds.
func (p *Player) Times() []time.Time {
	var t []time.Time
	for _, r := range p.archive.Rounds {
		t = append(t, p.base.Add(r.At))
	}
	return t
}

// Host returns the replayed machine.
func (p *Player) Host() *host.Host {
	h := &host.Host{
		Files: p, RDMA: p, Ethtool: p, Devlink: p, DCB: p, GPUs: p, Processes: p, Launchers: p, Subnet: p, Tracer: p,
		KernelLog: p, Now: p.Now,
		// The time of a read is that of this machine.
		Turns: access.NewTurns(), RTNL: access.NewRTNL(), Meter: &source.Meter{}, Budget: access.Unlimited(),
	}
	if hasPods(p.archive) { // else the exporter did not ask
		h.Pods = p
	}
	return h
}

// Now returns the current time of the machine.
func (p *Player) Now() time.Time {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.now
}

// Seek advances the machine to a time. It ignores earlier times.
func (p *Player) Seek(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.Before(p.now) {
		return nil
	}
	p.now = t
	for ; p.next < len(p.archive.Rounds); p.next++ {
		r := p.archive.Rounds[p.next]
		if p.base.Add(r.At).After(t) {
			return nil
		}
		p.counters.NextRound()
		for _, e := range r.Entries {
			if err := p.apply(e); err != nil {
				return fmt.Errorf("entry %q: %w", e.Path, err)
			}
		}
	}
	return nil
}

// hasPods reports whether the kubelet was queried.
func hasPods(a *capture.Archive) (has bool) {
	a.Each(func(e *capture.Entry) { has = has || e.Path == answer.PodsPath })
	return has
}

// Scratch returns the directory for temporary files: TMPDIR if set, otherwise a tmpfs if there is one, since thousands
// of small files are slow on a disk.
func Scratch() string {
	const memory = "/dev/shm"
	if os.Getenv("TMPDIR") == "" && unix.Access(memory, unix.W_OK) == nil {
		return memory
	}
	return os.TempDir()
}
