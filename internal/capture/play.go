package capture

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
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

	mu      sync.RWMutex // Seek writes, reads of the machine read
	now     time.Time
	next    int                      // the round that Seek has not applied yet
	errors  map[string]syscall.Errno // injected, by canonical path
	unread  map[string]bool
	links   map[string]bool
	numbers map[string]uint64 // counters by canonical path: their last value
	steps   map[string]uint64 // what they rose by in the last round

	present map[string]bool // paths that have been written, and are there
	made    map[string]bool // directories that files have been written to

	targets sync.Map // what links lead to, by path, while no link changes; "" of what is no link
	dirs    sync.Map // canonical directories, by logical path, while no link changes
}

// Play unpacks an archive that begins at base. Close removes what was unpacked.
func Play(a *Archive, base time.Time) (*Player, error) {
	folder, err := os.MkdirTemp(Scratch(), "rdma_exporter-replay-")
	if err != nil {
		return nil, fmt.Errorf("replay: %w: set TMPDIR to a folder with free space", err)
	}
	p := &Player{
		archive: a, base: base, folder: folder,
		errors: map[string]syscall.Errno{}, unread: map[string]bool{}, links: map[string]bool{}, present: map[string]bool{}, made: map[string]bool{},
		numbers: map[string]uint64{}, steps: map[string]uint64{},
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
		Files: p, RDMA: p, Ethtool: p, Devlink: p, DCB: p, GPUs: p, Processes: p, Now: p.Now,
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
		clear(p.steps)
		for _, e := range r.Entries {
			if err := p.apply(e); err != nil {
				return fmt.Errorf("entry %q: %w", e.Path, err)
			}
		}
	}
	return nil
}

func (p *Player) apply(e Entry) error {
	if e.isGone() {
		p.forget(e.Path)
		return p.root.RemoveAll(e.Path)
	}
	if p.next > 0 && !p.present[e.Path] {
		p.live.Forget()
	}
	p.present[e.Path] = true
	if above := path.Dir(e.Path); !p.made[above] {
		if err := p.makeAbove(e.Path); err != nil {
			return err
		}
		p.made[above] = true
	}
	if p.links[e.Path] || e.Kind == Link {
		p.dirs.Clear()
		p.targets.Clear()
		if err := p.root.RemoveAll(e.Path); err != nil {
			return err
		}
	}
	delete(p.errors, e.Path)
	delete(p.unread, e.Path)
	delete(p.links, e.Path)
	switch e.Kind {
	case Dir:
		return p.root.MkdirAll(e.Path, 0o755)
	case Link:
		p.links[e.Path] = true
		return p.root.Symlink(e.Target, e.Path)
	case Error:
		p.errors[e.Path] = e.Errno
	case Unread:
		p.unread[e.Path] = true
	case File:
		p.count(e)
	}
	err := p.root.WriteFile(e.Path, e.Data, 0o644)
	if e.Kind == Error && errors.Is(err, syscall.EISDIR) { // a directory that cannot be listed any more
		return nil
	}
	return err
}

// makeAbove makes the directories above a path. One that itself cannot be listed may stand there as a file.
func (p *Player) makeAbove(name string) error {
	for i, c := range name {
		if _, bad := p.errors[name[:i]]; c == '/' && bad {
			if st, err := p.root.Lstat(name[:i]); err == nil && !st.IsDir() {
				if err := p.root.Remove(name[:i]); err != nil {
					return err
				}
			}
		}
	}
	return p.root.MkdirAll(path.Dir(name), 0o755)
}

// forget drops what is known of a path and of all below it.
func (p *Player) forget(name string) {
	p.dirs.Clear()
	p.targets.Clear()
	p.live.Forget()
	below := func(q string) bool { return q == name || strings.HasPrefix(q, name+"/") }
	maps.DeleteFunc(p.errors, func(q string, _ syscall.Errno) bool { return below(q) })
	maps.DeleteFunc(p.unread, func(q string, _ bool) bool { return below(q) })
	maps.DeleteFunc(p.present, func(q string, _ bool) bool { return below(q) })
	maps.DeleteFunc(p.made, func(q string, _ bool) bool { return below(q) })
	maps.DeleteFunc(p.links, func(q string, _ bool) bool { return below(q) })
	maps.DeleteFunc(p.numbers, func(q string, _ uint64) bool { return below(q) })
}

// counterPath tells files whose numbers only rise from those that are readings.
var counterPath = regexp.MustCompile(`/(counters|hw_counters|statistics)/[^/]+$`)

// notCounter tells what lies among the counters and does not rise by itself: the life of the kernel's cache, the shares of time that
// mlx5 was held up by PCIe, and the settings beside the statistics of pause and FEC.
func notCounter(p string) bool {
	switch path.Base(p) {
	case "lifespan", "outbound_pci_stalled_rd", "outbound_pci_stalled_wr", "autoneg", "rx", "tx", "active":
		return true
	}
	return false
}

// countedAnswer are the answers whose lines are counters.
var countedAnswer = regexp.MustCompile(`^(rdma|ethtool)/.*/(stats|pause|fec)$`)

func (p *Player) count(e Entry) {
	if isGPU(e.Path) {
		p.countGPU(e)
		return
	}
	if !counterPath.MatchString(e.Path) || notCounter(e.Path) {
		if countedAnswer.MatchString(e.Path) {
			p.countStats(e)
		}
		return
	}
	if n, err := strconv.ParseUint(strings.TrimSpace(string(e.Data)), 10, 64); err == nil {
		p.step(e.Path, n)
	}
}

func (p *Player) countStats(e Entry) {
	stats, err := decodeStats(e.Path, e.Data, nil)
	if err != nil {
		return
	}
	for _, s := range stats {
		if !notCounter(s.Name) {
			p.step(e.Path+"/"+s.Name, s.Value)
		}
	}
}

func (p *Player) step(key string, n uint64) {
	if old, ok := p.numbers[key]; ok && n > old {
		p.steps[key] = n - old
	}
	p.numbers[key] = n
}

// onward is what a counter has risen by since the last round; p.mu is held.
func (p *Player) onward(key string) uint64 {
	n := len(p.archive.Rounds)
	step := p.steps[key]
	if step == 0 || n < 2 || p.next < n {
		return 0
	}
	interval := p.archive.Rounds[n-1].At - p.archive.Rounds[n-2].At
	return step * uint64(max(0, p.now.Sub(p.Last()))/interval)
}

// canonical is the path that entries have.
func (p *Player) canonical(name string) string {
	dir, base := path.Split(name)
	dir = path.Clean(dir)
	if real, ok := p.dirs.Load(dir); ok {
		return path.Join(real.(string), base)
	}
	real, err := host.ResolveBy(p.target, dir)
	if err != nil {
		return name
	}
	p.dirs.Store(dir, real)
	return path.Join(real, base)
}

// real is the canonical path of what a path leads to.
func (p *Player) real(name string) string {
	c := p.canonical(name)
	if p.links[c] {
		if real, err := host.ResolveBy(p.target, c); err == nil {
			return real
		}
	}
	return c
}

// injected is the recorded error of a canonical path.
func (p *Player) injected(op, name, real string) error {
	if e, ok := p.errors[real]; ok {
		return &host.Error{Op: op, Path: name, Err: e}
	}
	return nil
}

// Read gives the content as of Now, or the recorded error.
func (p *Player) Read(name string, buf []byte) ([]byte, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	real := p.real(name)
	if err := p.injected("read", name, real); err != nil {
		return nil, err
	}
	if p.unread[real] {
		return nil, &host.Error{Op: "read", Path: name, Err: syscall.ENOENT}
	}
	b, err := p.live.Files.Read(name, buf)
	if n := p.onward(real); err == nil && n > 0 {
		return fmt.Appendf(b[:0], "%d\n", p.numbers[real]+n), nil
	}
	return b, err
}

// ReadEach is ReadIn of each name.
func (p *Player) ReadEach(dir string, names []string, buf []byte, each func(string, []byte, error)) []byte {
	for _, name := range names {
		b, err := p.ReadIn(dir, name, buf)
		if err == nil {
			buf = b
		}
		each(name, b, err)
	}
	return buf
}

// ReadIn is Read of dir/name.
func (p *Player) ReadIn(dir, name string, buf []byte) ([]byte, error) {
	return p.Read(dir+"/"+name, buf)
}

// Lines gives the lines that were recorded.
func (p *Player) Lines(name string, words []string) ([]byte, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if err := p.injected("read", name, p.real(name)); err != nil {
		return nil, err
	}
	return p.live.Files.Lines(name, words)
}

// Head gives the beginning of what was recorded.
func (p *Player) Head(name string, size int) (content []byte, whole bool, err error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if err := p.injected("read", name, p.real(name)); err != nil {
		return nil, false, err
	}
	return p.live.Files.Head(name, size)
}

// List gives the names as of Now.
func (p *Player) List(name string) ([]string, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if err := p.injected("list", name, p.real(name)); err != nil {
		return nil, err
	}
	return p.live.Files.List(name)
}

// Attributes is List.
func (p *Player) Attributes(name string) ([]string, error) { return p.List(name) }

// Identity is that of the unpacked directory.
func (p *Player) Identity(name string) (uint64, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.live.Files.Identity(name)
}

// Link gives the target as of Now.
func (p *Player) Link(name string) (string, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if err := p.injected("follow", name, p.canonical(name)); err != nil {
		return "", err
	}
	return p.target(name)
}

// target is Link of the unpacked tree, remembered.
func (p *Player) target(name string) (string, error) {
	if t, ok := p.targets.Load(name); ok {
		if t == "" {
			return "", &host.Error{Op: "follow", Path: name, Err: syscall.EINVAL}
		}
		return t.(string), nil
	}
	t, err := p.live.Files.Link(name)
	if err == nil || errors.Is(err, syscall.EINVAL) {
		p.targets.Store(name, t)
	}
	return t, err
}

// Resolve follows links as of Now.
func (p *Player) Resolve(name string) (string, error) { return host.ResolveBy(p.Link, name) }

// Readable gives the recorded permission.
func (p *Player) Readable(name string) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if err := p.injected("look at", name, p.real(name)); err != nil {
		return err
	}
	return p.live.Files.Readable(name)
}

// Port gives the recorded answer.
func (p *Player) Port(_ context.Context, device string, port int) (host.RDMAPort, error) {
	name := portPath(device, port)
	b, err := p.Read(name, nil)
	if err != nil {
		return host.RDMAPort{}, err
	}
	return decodePort(name, b)
}

// System gives the recorded answer.
func (p *Player) System(context.Context) (host.RDMASystem, error) {
	b, err := p.Read(systemPath, nil)
	if err != nil {
		return host.RDMASystem{}, err
	}
	return decodeSystem(systemPath, b)
}

// Stats gives the recorded answer; its counters go on like those of files.
func (p *Player) Stats(_ context.Context, device string, port int, buf []host.Stat) ([]host.Stat, error) {
	return p.stats(statsPath(device, port), buf)
}

// NetdevStats gives the recorded answer; its counters go on.
func (p *Player) NetdevStats(_ context.Context, netdev string) ([]host.Stat, error) {
	return p.stats(netdevStatsPath(netdev), nil)
}

// StandardStats gives the recorded answer; its counters go on.
func (p *Player) StandardStats(_ context.Context, netdev string) ([]host.Stat, error) {
	return p.stats(standardStatsPath(netdev), nil)
}

func (p *Player) stats(name string, buf []host.Stat) ([]host.Stat, error) {
	b, err := p.Read(name, nil)
	if err != nil {
		return nil, err
	}
	stats, err := decodeStats(name, b, buf[:0])
	p.mu.RLock()
	defer p.mu.RUnlock()
	for i := range stats {
		stats[i].Value += p.onward(name + "/" + stats[i].Name)
	}
	return stats, err
}

// Pause gives the recorded answer; its counters go on.
func (p *Player) Pause(_ context.Context, netdev string) (host.Pause, error) {
	name := pausePath(netdev)
	b, err := p.Read(name, nil)
	if err != nil {
		return host.Pause{}, err
	}
	a, err := decodePause(name, b)
	p.goOn(name, pauseFields(&a))
	return a, err
}

// FEC gives the recorded answer; its counters go on.
func (p *Player) FEC(_ context.Context, netdev string) (host.FEC, error) {
	name := fecPath(netdev)
	b, err := p.Read(name, nil)
	if err != nil {
		return host.FEC{}, err
	}
	a, err := decodeFEC(name, b)
	p.goOn(name, fecFields(&a))
	return a, err
}

// goOn adds to each field what it has risen by since the last round.
func (p *Player) goOn(name string, fields []field) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, f := range fields {
		if *f.value != nil {
			**f.value += p.onward(name + "/" + f.name)
		}
	}
}

// LinkModes gives the recorded answer.
func (p *Player) LinkModes(_ context.Context, netdev string) (host.LinkModes, error) {
	name := linkModesPath(netdev)
	b, err := p.Read(name, nil)
	if err != nil {
		return host.LinkModes{}, err
	}
	return decodeLinkModes(name, b)
}

// Health gives the recorded answer.
func (p *Player) Health(context.Context) ([]host.HealthReporter, error) {
	b, err := p.Read(healthPath, nil)
	if err != nil {
		return nil, err
	}
	return decodeHealth(healthPath, b)
}

// LinkState gives the recorded answer.
func (p *Player) LinkState(_ context.Context, netdev string) (host.LinkState, error) {
	name := linkStatePath(netdev)
	b, err := p.Read(name, nil)
	if err != nil {
		return host.LinkState{}, err
	}
	return decodeLinkState(name, b)
}

// IEEE gives the recorded answer.
func (p *Player) IEEE(_ context.Context, netdev string) (host.DCBConfig, error) {
	name := dcbPath(netdev)
	b, err := p.Read(name, nil)
	if err != nil {
		return host.DCBConfig{}, err
	}
	return decodeDCB(name, b)
}
