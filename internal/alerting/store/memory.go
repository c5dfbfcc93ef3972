package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// SetDir sets the directory of a store in memory. LeaveMemory uses it in the next round.
func (s *Store) SetDir(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.Dir, s.tried = dir, time.Time{}
}

// LeaveMemory moves a store in memory to its directory, if there is space for it again. It tries once a minute, and
// reports whether it has opened a database.
func (s *Store) LeaveMemory(ts time.Time) bool {
	if s.place != inMemory || s.opts.Dir == "" {
		return false
	}
	if d := ts.Sub(s.tried); d >= 0 && d < returnInterval {
		return false
	}
	s.tried = ts
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.late.Pending() || onlyFiles(s.opts.Dir) != nil {
		return false
	}
	used, err := s.used()
	if err != nil || hasSpace(filepath.Dir(s.opts.Dir), used+spaceNeeded) != nil {
		return false
	}
	err = s.returnTo(s.opts.Dir)
	if err == nil {
		s.opts.Logger.Info("alerting store is in the state directory again", "dir", s.opts.Dir)
	} else {
		s.opts.Logger.Warn("moving the alerting store to the state directory failed, trying again every minute",
			"dir", s.opts.Dir, "err", err)
	}
	return true
}

// used returns the size of the files of the database in memory.
func (s *Store) used() (bytes int64, err error) {
	if s.db == nil {
		return 0, nil
	}
	err = filepath.WalkDir(s.dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		st, err := e.Info()
		if err == nil {
			bytes += st.Size()
		}
		return err
	})
	return bytes, err
}

// returnTo closes the database in memory and opens a copy of it. If that fails it opens the database in memory again.
func (s *Store) returnTo(dir string) error {
	if s.db == nil { // not even memory could be written: what was there before remains
		return s.open(asFound, nil)
	}
	from := s.dir
	err := closeDB(s.db)
	s.db = nil
	if err = errors.Join(err, replaceStore(dir, from, s.blocked)); err == nil {
		s.place, s.dir, s.blocked = asFound, dir, false
		if err = s.reopen(); err == nil {
			from := s.scratch
			s.scratch = nil
			return from.remove()
		}
	}
	s.place, s.dir = inMemory, from
	if again := s.reopen(); again != nil {
		return errors.Join(err, s.removeScratch(), s.open(inMemory, again))
	}
	return err
}

// reopen opens a database with data.
func (s *Store) reopen() error {
	if err := hasSpace(s.dir, spaceNeeded); err != nil {
		return err
	}
	return s.openDir()
}

// replaceStore replaces a closed store by a copy of another one. What that one has no copy of is set aside.
func replaceStore(dir, by string, aside bool) error {
	if err := copyStore(dir+copySuffix, by); err != nil {
		return errors.Join(err, os.RemoveAll(dir+copySuffix))
	}
	if aside {
		if err := setAside(dir); err != nil {
			return errors.Join(err, os.RemoveAll(dir+copySuffix))
		}
	} else if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove store %s: %w", dir, err)
	}
	return os.Rename(dir+copySuffix, dir)
}

// copyStore copies the files of a closed store to a directory, which is replaced.
func copyStore(to, from string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return fmt.Errorf("copy store %s: %w", from, err)
	}
	return nil
}
