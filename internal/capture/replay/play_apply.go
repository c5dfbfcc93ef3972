package replay

import (
	"errors"
	"maps"
	"path"
	"syscall"

	"rdma_exporter/internal/capture"
)

func (p *Player) apply(e capture.Entry) error {
	if e.IsGone() {
		p.forget(e.Path)
		return p.root.RemoveAll(e.Path)
	}
	was, known := p.present[e.Path]
	if p.next > 0 && !known {
		p.live.Forget()
	}
	if above := path.Dir(e.Path); !p.made[above] {
		if err := p.makeAbove(e.Path); err != nil {
			return err
		}
		p.made[above] = true
	}
	if was.kind == capture.Link || e.Kind == capture.Link {
		p.dirs.Clear()
		p.leave()
		if err := p.root.RemoveAll(e.Path); err != nil {
			return err
		}
	}
	p.present[e.Path] = state{e.Kind, e.Target, e.Errno}
	switch e.Kind {
	case capture.Dir:
		return p.root.MkdirAll(e.Path, 0o755)
	case capture.Link:
		return p.root.Symlink(e.Target, e.Path)
	case capture.File:
		p.counters.Count(e)
	}
	err := p.write(e)
	if e.Kind == capture.Error && errors.Is(err, syscall.EISDIR) { // a directory that can no longer be listed
		return nil
	}
	return err
}

// write writes a file into its directory, which exists.
func (p *Player) write(e capture.Entry) error {
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
		if c == '/' && p.present[name[:i]].kind == capture.Error {
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
	maps.DeleteFunc(p.present, func(q string, _ state) bool { return capture.IsBelow(q, name) })
	maps.DeleteFunc(p.made, func(q string, _ bool) bool { return capture.IsBelow(q, name) })
	p.counters.Forget(name)
}
