// Package state saves one JSON value in a directory across restarts. Reads return a value that was written completely,
// even after a crash of the program or the machine.
//
// The file name has the version of the format: a downgraded program finds its own file unchanged. A release with
// another format increments version, and starts from the file of the previous version.
package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	version = 1

	currentName = "state.v1.json"
	oldName     = currentName + ".old"    // the previous generation
	brokenName  = currentName + ".broken" // the last unreadable one, for inspection
	tempName    = currentName + ".tmp"
	lockName    = "state.lock"

	dirMode  = 0o750 // addresses of the fabric are readable for the service and its group
	fileMode = 0o640
)

// ErrLocked is in the error of Open while another process has the directory open.
var ErrLocked = errors.New("in use by another rdma_exporter")

// Read reads the newest complete generation without a lock, for read-only commands. The error is fs.ErrNotExist if
// there is none, and ErrLate if the directory does not answer before ctx ends.
func Read(ctx context.Context, dir string, v any) error { return read(ctx, dir, v, readNewest) }

func read(ctx context.Context, dir string, v any, newest func(dir string) ([]byte, error)) error {
	var late Late[[]byte]
	value, err := late.Open(ctx, 0, func() ([]byte, error) { return newest(dir) }, func([]byte, error) {})
	if err != nil {
		return fmt.Errorf("state directory %s: %w", dir, err)
	}
	if err := json.Unmarshal(value, v); err != nil {
		return fmt.Errorf("state directory %s: %s is not in the format of this release: %w: move it away to start without it",
			dir, currentName, err)
	}
	return nil
}

// Store is a directory that only this process writes to.
type Store struct {
	dir      string
	setAside string
	step     func(string) // for tests, before each step of Write

	mu   sync.Mutex
	lock *os.File // nil once closed
}

// Open creates the directory if it is missing, and locks it until Close. It removes incomplete files of a process that
// was killed.
func Open(dir string) (*Store, error) {
	s := &Store{dir: dir, step: func(string) {}}
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("cannot create the state directory: %w: create it for the user of the program", err)
	}
	if err := s.acquire(); err != nil {
		return nil, fmt.Errorf("state directory %s: %w", dir, err)
	}
	if err := s.tidy(); err != nil {
		return nil, errors.Join(fmt.Errorf("state directory %s: %w", dir, err), s.Close())
	}
	return s, nil
}

// makeDir creates the directory and its parents.
func makeDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func (s *Store) acquire() error {
	f, err := os.OpenFile(s.path(lockName), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, fileMode)
	if err != nil {
		return fmt.Errorf("cannot lock it: %w: it must be writable for the user of the program", errors.Unwrap(err))
	}
	switch err := flock(f); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return errors.Join(fmt.Errorf("%w: stop that one, or set another --state.dir", ErrLocked), f.Close())
	case err != nil:
		return errors.Join(fmt.Errorf("cannot lock it: %w: put it on a local file system", err), f.Close())
	}
	s.lock = f
	return nil
}

// flock locks without waiting. The kernel releases the lock when the process ends.
func flock(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != syscall.EINTR {
			return err
		}
	}
}

// tidy removes temporary files, and renames a broken file so that Write does not make it the older generation.
func (s *Store) tidy() error {
	if err := remove(s.path(tempName)); err != nil {
		return err
	}
	_, err := load(s.path(currentName))
	if !isBroken(err) {
		return nil // complete, missing, or an error that Read returns
	}
	if err := os.Rename(s.path(currentName), s.path(brokenName)); err != nil {
		return fmt.Errorf("cannot rename a broken file: %w: remove it", err)
	}
	s.setAside = fmt.Sprintf("%s: %s", s.path(brokenName), err)
	return nil
}

// SetAside returns the broken file that Open renamed, with the error; empty if there was none.
func (s *Store) SetAside() string { return s.setAside }

// Read is Read of the directory.
func (s *Store) Read(v any) error { return Read(context.Background(), s.dir, v) }

// Write replaces the value, which becomes the older generation. It returns when the value is on disk. If it fails, the
// previous value stays.
func (s *Store) Write(v any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return fmt.Errorf("state directory %s: %w", s.dir, fs.ErrClosed)
	}
	b, err := encode(v, time.Now())
	if err == nil {
		err = s.replace(b)
	}
	if err != nil {
		return fmt.Errorf("state directory %s: write failed, keeping the previous value: %w", s.dir, err)
	}
	return nil
}

func (s *Store) replace(b []byte) (err error) {
	s.step("create")
	if err := remove(s.path(tempName)); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, remove(s.path(tempName)))
		}
	}()
	if err := s.writeTemp(b); err != nil {
		return err
	}
	if err := s.keepOld(); err != nil {
		return err
	}
	s.step("rename")
	if err := os.Rename(s.path(tempName), s.path(currentName)); err != nil {
		return err
	}
	s.step("sync directory")
	return syncDir(s.dir)
}

// writeTemp writes and syncs the new file.
func (s *Store) writeTemp(b []byte) error {
	f, err := os.OpenFile(s.path(tempName), os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, fileMode)
	if err != nil {
		return err
	}
	s.step("write")
	_, err = f.Write(b)
	s.step("sync")
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// keepOld links the current file as the older generation. File systems without hard links have no older generation.
func (s *Store) keepOld() error {
	if _, err := os.Lstat(s.path(currentName)); err != nil {
		return nil // no current file: the older one stays
	}
	s.step("remove old")
	if err := remove(s.path(oldName)); err != nil {
		return err
	}
	s.step("link")
	err := os.Link(s.path(currentName), s.path(oldName))
	if errors.Is(err, syscall.EPERM) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// Close unlocks the directory. The value stays.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return nil
	}
	f := s.lock
	s.lock = nil
	return f.Close()
}

func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

// remove removes a file that may be missing.
func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncDir syncs the directory entries, which the sync of a file does not include.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) { // not supported by the file system
		err = nil
	}
	return errors.Join(err, f.Close())
}
