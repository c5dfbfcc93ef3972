// Package state keeps one JSON value in a directory across restarts of the program. What is read is a value that was once
// written, whole, however the writer or the machine ended.
//
// The name of the file holds the version of the format, so that a program that is set back to an earlier release finds its own
// file as it left it. A release with another format raises version, and starts from the file of the version before.
package state

import (
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
	oldName     = currentName + ".old"    // the generation before
	brokenName  = currentName + ".broken" // the last one that could not be read, for a person to look at
	tempName    = currentName + ".tmp"
	lockName    = "state.lock"

	dirMode  = 0o750 // addresses of the fabric are for the service and its group
	fileMode = 0o640
)

// ErrLocked is in the error of Open while another process has the directory open.
var ErrLocked = errors.New("another rdma_exporter runs with it")

// Read reads the newest generation that is whole, without a lock: for commands that only look. The error is fs.ErrNotExist
// where there is none.
func Read(dir string, v any) error {
	value, err := newest(dir)
	if err != nil {
		return fmt.Errorf("state directory %s: %w", dir, err)
	}
	if err := json.Unmarshal(value, v); err != nil {
		return fmt.Errorf("state directory %s: %s is whole and not what this release writes: %w: move it away to start anew", dir, currentName, err)
	}
	return nil
}

// Store is a directory that this process alone writes to.
type Store struct {
	dir      string
	setAside string
	step     func(string) // a test's, before each step of Write

	mu   sync.Mutex
	lock *os.File // nil once closed
}

// Open makes the directory if it is not there and locks it against other processes until Close. What a process that was killed
// has left half done is put away.
func Open(dir string) (*Store, error) {
	s := &Store{dir: dir, step: func(string) {}}
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("cannot make the state directory: %w: make it, or let the user of the program write above it", err)
	}
	if err := s.acquire(); err != nil {
		return nil, fmt.Errorf("state directory %s: %w", dir, err)
	}
	if err := s.tidy(); err != nil {
		return nil, errors.Join(fmt.Errorf("state directory %s: %w", dir, err), s.Close())
	}
	return s, nil
}

// makeDir makes the directory, and those above it as any program would.
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
		return fmt.Errorf("cannot lock it: %w: it has to be writable for the user of the program", errors.Unwrap(err))
	}
	switch err := flock(f); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return errors.Join(fmt.Errorf("%w: end that one, or give each its own directory", ErrLocked), f.Close())
	case err != nil:
		return errors.Join(fmt.Errorf("cannot lock it: %w: put it on a local file system", err), f.Close())
	}
	s.lock = f
	return nil
}

// flock locks without waiting. The lock goes with the process, however that ends.
func flock(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != syscall.EINTR {
			return err
		}
	}
}

// tidy removes what a killed process left, and sets a broken file aside: Write never makes one the older generation.
func (s *Store) tidy() error {
	if err := remove(s.path(tempName)); err != nil {
		return err
	}
	_, err := load(s.path(currentName))
	if !isBroken(err) {
		return nil // whole, not there, or for Read to tell
	}
	if err := os.Rename(s.path(currentName), s.path(brokenName)); err != nil {
		return fmt.Errorf("cannot set a broken file aside: %w: remove it", err)
	}
	s.setAside = fmt.Sprintf("%s: %s", s.path(brokenName), err)
	return nil
}

// SetAside names the file that Open could not read and has set aside, and what is wrong with it; empty if there was none.
func (s *Store) SetAside() string { return s.setAside }

// Read is Read of the store's directory.
func (s *Store) Read(v any) error { return Read(s.dir, v) }

// Write puts a value in the place of the one before, which becomes the older generation. It returns when the value is on the
// disk. A write that fails leaves what was there.
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
		return fmt.Errorf("state directory %s: not written, the value before stays: %w", s.dir, err)
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

// writeTemp writes the file that is to take the place of the current one, down to the disk.
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

// keepOld makes the current file the older generation, under both names for a moment. On a file system without hard links there
// is no older one.
func (s *Store) keepOld() error {
	if _, err := os.Lstat(s.path(currentName)); err != nil {
		return nil // no current one: the older stays
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

// Close lets others write. The value stays.
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

// remove removes a file that may not be there.
func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncDir makes names last: a file's own sync says nothing of its directory.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) { // a file system that has nothing to sync
		err = nil
	}
	return errors.Join(err, f.Close())
}
