package capture

import (
	"errors"
	"fmt"
	"os"
	"path"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
)

// Player is a machine that plays an archive. It unpacks into a temporary folder, so that the file code of a live host
// runs on it, and answers with the recorded errors. Time is the evaluator's: Seek moves the machine to a moment, and
// after the last round each counter goes on by its last step.
type Player struct {
	archive *Archive
	base    time.Time // when the first round is played
	folder  string
	root    *os.Root
	live    *host.Live

	mu       sync.RWMutex // Seek writes, reads of the machine read
	now      time.Time
	next     int                      // the round that Seek has not applied yet
	errors   map[string]syscall.Errno // injected, by canonical path
	unread   map[string]bool
	links    map[string]string // targets, by canonical path
	counters counters          // by canonical path

	present map[string]bool // paths that have been written, and are there
	made    map[string]bool // directories that files have been written to

	dirs sync.Map // canonical directories, by logical path, while no link changes

	dir     *os.Root // the directory that was written to last: entries are sorted, and its path need not be walked again
	dirName string
}

// Play unpacks an archive that begins at base. Close removes what was unpacked.
func Play(a *Archive, base time.Time) (*Player, error) {
	if a.IsVariant() {
		return nil, fmt.Errorf("replay: a variant of %q without its base", a.Meta.Base)
	}
	folder, err := os.MkdirTemp(Scratch(), "rdma_exporter-replay-")
	if err != nil {
		return nil, fmt.Errorf("replay: %w: set TMPDIR to a folder with free space", err)
	}
	p := &Player{
		archive: a, base: base, folder: folder,
		errors: map[string]syscall.Errno{}, unread: map[string]bool{}, links: map[string]string{}, present: map[string]bool{}, made: map[string]bool{},
		counters: newCounters(),
	}
	if err := p.unpack(); err != nil {
		return nil, errors.Join(fmt.Errorf("replay: %w", err), p.Close())
	}
	return p, nil
}

// Scratch is where short-lived files go: TMPDIR if it is set, else memory where the system has a place for that, because
// thousands of small files are slow on a disk.
func Scratch() string {
	const memory = "/dev/shm"
	if os.Getenv("TMPDIR") == "" && unix.Access(memory, unix.W_OK) == nil {
		return memory
	}
	return os.TempDir()
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
	if p.live, err = host.OpenLive(host.Paths{RootFS: p.folder}); err != nil {
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

// Last is when the last recorded round is played.
func (p *Player) Last() time.Time { return p.base.Add(p.archive.Rounds[len(p.archive.Rounds)-1].At) }

// Times are the moments at which the recorded rounds are played.
func (p *Player) Times() []time.Time {
	var t []time.Time
	for _, r := range p.archive.Rounds {
		t = append(t, p.base.Add(r.At))
	}
	return t
}

// Host is the played machine.
func (p *Player) Host() *host.Host {
	return &host.Host{
		Files: p, RDMA: p, Ethtool: p, Devlink: p, DCB: p, GPUs: p, Processes: p, Subnet: p, Now: p.Now,
		Lanes: host.NewLanes(), RTNL: host.NewRTNL(), Meter: &host.Meter{}, Budget: host.NewBudget(p.Now),
	}
}

// Now is the moment that the machine is at.
func (p *Player) Now() time.Time {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.now
}

// Seek moves the machine forward to a moment. An earlier one leaves it where it is.
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
		p.counters.nextRound()
		for _, e := range r.Entries {
			if err := p.apply(e); err != nil {
				return fmt.Errorf("entry %q: %w", e.Path, err)
			}
		}
	}
	return nil
}
