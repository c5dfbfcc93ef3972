package capture

import (
	"errors"
	"maps"
	"path"
	"syscall"
)

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
	if _, was := p.links[e.Path]; was || e.Kind == Link {
		p.dirs.Clear()
		p.leave()
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
		p.links[e.Path] = e.Target
		return p.root.Symlink(e.Target, e.Path)
	case Error:
		p.errors[e.Path] = e.Errno
	case Unread:
		p.unread[e.Path] = true
	case File:
		p.counters.count(e)
	}
	err := p.write(e)
	if e.Kind == Error && errors.Is(err, syscall.EISDIR) { // a directory that can no longer be listed
		return nil
	}
	return err
}

// write writes a file into its directory, which exists.
func (p *Player) write(e Entry) error {
	dir, name := path.Split(e.Path)
	if dir == "" {
		return p.root.WriteFile(name, e.Data, 0o644)
	}
	if p.dir == nil || dir != p.dirName {
		d, err := p.root.OpenRoot(dir)
		if err != nil {
			return err
		}
		p.leave()
		p.dir, p.dirName = d, dir
	}
	return p.dir.WriteFile(name, e.Data, 0o644)
}

// leave closes the directory that was written to last.
func (p *Player) leave() {
	if p.dir != nil {
		_ = p.dir.Close() // closing a directory writes nothing
		p.dir = nil
	}
}

// makeAbove creates the directories above a path. An unlistable directory may exist as a file.
func (p *Player) makeAbove(name string) error {
	for i, c := range name {
		if _, bad := p.errors[name[:i]]; c == '/' && bad {
			if st, err := p.root.Lstat(name[:i]); err == nil && !st.IsDir() {
				p.leave()
				if err := p.root.Remove(name[:i]); err != nil {
					return err
				}
			}
		}
	}
	return p.root.MkdirAll(path.Dir(name), 0o755)
}

// forget discards a path and everything below it.
func (p *Player) forget(name string) {
	p.dirs.Clear()
	p.leave()
	p.live.Forget()
	below := func(q string) bool { return isBelow(q, name) }
	maps.DeleteFunc(p.errors, func(q string, _ syscall.Errno) bool { return below(q) })
	maps.DeleteFunc(p.unread, func(q string, _ bool) bool { return below(q) })
	maps.DeleteFunc(p.present, func(q string, _ bool) bool { return below(q) })
	maps.DeleteFunc(p.made, func(q string, _ bool) bool { return below(q) })
	maps.DeleteFunc(p.links, func(q, _ string) bool { return below(q) })
	p.counters.forget(name)
}
