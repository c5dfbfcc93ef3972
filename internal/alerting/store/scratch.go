package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/prometheus/prometheus/tsdb/fileutil"
)

const (
	scratchPrefix = "rdma_exporter-alerting-"
	scratchLock   = "lock"
	scratchStore  = "store"
	// scratchTries limits the attempts to make a directory that another process does not remove before it is locked.
	scratchTries = 10
)

// scratch is a temporary directory of a run, locked while the process lives. Its parent is shared with other users.
type scratch struct {
	dir  string
	lock fileutil.Releaser
}

func makeScratch(parent string) (*scratch, error) {
	for range scratchTries {
		dir, err := os.MkdirTemp(parent, scratchPrefix)
		if err != nil {
			return nil, fmt.Errorf("create temporary directory for samples: %w: set TMPDIR to a directory with free space", err)
		}
		name := filepath.Join(dir, scratchLock)
		lock, _, err := fileutil.Flock(name)
		if err != nil {
			continue
		}
		if _, err := os.Lstat(name); err == nil {
			return &scratch{dir, lock}, nil
		}
		_ = lock.Release() // of a file that another process has removed
	}
	return nil, fmt.Errorf("create temporary directory for samples in %s: another process removes it each time", parent)
}

// store returns the directory of the database. It is created by the database.
func (s *scratch) store() string { return filepath.Join(s.dir, scratchStore) }

// remove removes the directory before it releases the lock.
func (s *scratch) remove() error {
	return errors.Join(os.RemoveAll(s.dir), s.lock.Release())
}

// removeKilled removes the directories of killed processes, since they may occupy memory. What fails is tried again at
// the next start. An unpacked replay has no lock and is never removed.
func removeKilled(parent string) {
	entries, _ := os.ReadDir(parent) // makeScratch returns the error
	for _, e := range entries {
		dir := filepath.Join(parent, e.Name())
		if st, err := e.Info(); err != nil || !strings.HasPrefix(e.Name(), scratchPrefix) || !private(st) {
			continue
		}
		lock, _, err := fileutil.Flock(filepath.Join(dir, scratchLock))
		if err != nil {
			continue // in use
		}
		_ = errors.Join(os.RemoveAll(dir), lock.Release())
	}
}

// private reports whether no other user can have created files in a directory. All users can write to its parent and
// may have created a directory with our prefix that contains links.
func private(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && st.IsDir() && int64(sys.Uid) == int64(os.Geteuid()) && st.Mode().Perm()&0o022 == 0
}
