package replay

import (
	"cmp"
	"errors"
	"path"
	"strconv"
	"strings"
	"syscall"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
)

// canonical returns the path of the entry for a path.
func (p *Player) canonical(name string) string {
	dir, base := path.Split(name)
	dir = path.Clean(dir)
	if real, ok := p.dirs.Load(dir); ok {
		return path.Join(real.(string), base)
	}
	real, err := rooted.ResolveBy(p.target, dir)
	if err != nil {
		return name
	}
	p.dirs.Store(dir, real)
	return path.Join(real, base)
}

// real returns the canonical path with links followed.
func (p *Player) real(name string) string {
	c := p.canonical(name)
	if p.present[c].kind == capture.Link {
		if real, err := rooted.ResolveBy(p.target, c); err == nil {
			return real
		}
	}
	return c
}

// injected is the recorded error of a canonical path.
func (p *Player) injected(op, name, real string) error {
	if s := p.present[real]; s.kind == capture.Error {
		return &access.Error{Op: op, Path: name, Err: s.errno}
	}
	return nil
}

// Read returns the content as of Now, or the recorded error. After the last round counters continue.
func (p *Player) Read(name string, buf []byte) ([]byte, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	real := p.real(name)
	if err := p.injected("read", name, real); err != nil {
		return nil, err
	}
	if p.present[real].kind == capture.Unread {
		return nil, &access.Error{Op: "read", Path: name, Err: syscall.ENOENT}
	}
	b, err := p.live.Files.Read(name, buf)
	if err != nil || p.next < len(p.archive.Rounds) {
		return b, err
	}
	return p.counters.After(capture.Intervals(p.archive.Rounds, p.now.Sub(p.base)), real, b), nil
}

// otherReads are the methods of host.Files that differ from Read, List and Identity only in their cost.
type otherReads struct {
	read     func(path string, buf []byte) ([]byte, error)
	list     func(path string) ([]string, error)
	identity func(path string) (uint64, error)
}

// ReadEach is ReadIn for each name.
func (v otherReads) ReadEach(dir string, names []string, buf []byte, each func(string, []byte, error)) []byte {
	for _, name := range names {
		b, err := v.ReadIn(dir, name, buf)
		if err == nil {
			buf = b
		}
		each(name, b, err)
	}
	return buf
}

// ReadIn is Read of dir/name.
func (v otherReads) ReadIn(dir, name string, buf []byte) ([]byte, error) {
	return v.read(dir+"/"+name, buf)
}

// Same is not known.
func (otherReads) Same(string) bool { return false }

// Attributes is List.
func (v otherReads) Attributes(name string) ([]string, error) { return v.list(name) }

// Identities is List, and Identity of each entry.
func (v otherReads) Identities(name string) (names []string, ids []uint64, err error) {
	names, err = v.list(name)
	for _, entry := range names {
		id, _ := v.identity(name + "/" + entry) // 0: unknown
		ids = append(ids, id)
	}
	return names, ids, err
}

// Lines returns the recorded lines.
func (p *Player) Lines(name string, words []string) ([]byte, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if err := p.injected("read", name, p.real(name)); err != nil {
		return nil, err
	}
	return p.live.Files.Lines(name, words)
}

// Head returns the beginning of the recorded content.
func (p *Player) Head(name string, size int) (content []byte, whole bool, err error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if err := p.injected("read", name, p.real(name)); err != nil {
		return nil, false, err
	}
	return p.live.Files.Head(name, size)
}

// List returns the names as of Now.
func (p *Player) List(name string) ([]string, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if err := p.injected("list", name, p.real(name)); err != nil {
		return nil, err
	}
	return p.live.Files.List(name)
}

// Opened counts paths of the unpacked directory.
func (p *Player) Opened() uint64 { return p.live.Files.Opened() }

// Identity returns the identity of the unpacked directory.
func (p *Player) Identity(name string) (uint64, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.live.Files.Identity(name)
}

// Link returns the target as of Now.
func (p *Player) Link(name string) (string, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	target, err := p.follow(name)
	if errors.Is(err, syscall.EINVAL) { // not a link; a missing path has another error
		return "", cmp.Or(p.there(name), err)
	}
	return target, err
}

// target returns the target of a link at a canonical path. All links are in the archive.
func (p *Player) target(name string) (string, error) {
	if s := p.present[name]; s.kind == capture.Link {
		return s.target, nil
	}
	return "", &access.Error{Op: "readlink", Path: name, Err: syscall.EINVAL}
}

// follow is target of any path, or the recorded error.
func (p *Player) follow(name string) (string, error) {
	c := p.canonical(name)
	if err := p.injected("readlink", name, c); err != nil {
		return "", err
	}
	return p.target(c)
}

// there is nil if the path, with links followed, exists.
func (p *Player) there(name string) error {
	_, err := p.live.Files.Identity(p.canonical(name))
	return err
}

// Resolve follows links as of Now.
func (p *Player) Resolve(name string) (string, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	real, err := rooted.ResolveBy(p.follow, name)
	if err == nil {
		err = p.there(real)
	}
	if err != nil {
		return "", err
	}
	return real, nil
}

// Mode returns the recorded permission bits and group. Captures of earlier versions lack the group, or both.
func (p *Player) Mode(name string) (mode uint32, group *uint32, err error) {
	recorded := path.Join(answer.ModesDir, name)
	b, err := p.Read(recorded, nil)
	if err != nil {
		return 0, nil, err
	}
	bits, owner, owned := strings.Cut(strings.TrimSpace(string(b)), " ")
	n, err := strconv.ParseUint(bits, 8, 32)
	if err != nil {
		return 0, nil, access.ErrGarbled(recorded, b)
	}
	if owned {
		id, err := strconv.ParseUint(owner, 10, 32)
		if err != nil {
			return 0, nil, access.ErrGarbled(recorded, b)
		}
		group = new(uint32(id))
	}
	return uint32(n), group, nil
}

// Readable returns the recorded permission.
func (p *Player) Readable(name string) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if err := p.injected("access", name, p.real(name)); err != nil {
		return err
	}
	return p.live.Files.Readable(name)
}
