package state

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"
)

// File is one JSON value of type T in a directory that this process locks: Open loads it, and Save saves it. It logs
// the beginning and the end of a persistent failure.
type File[T any] struct {
	Dir  string
	Log  *slog.Logger
	Lost string // logged when a save fails: what a restart loses
	Well string // logged when a save succeeds again
	// Unread is logged when the value cannot be read, which Save then replaces. Empty: Open fails, and the value stays.
	Unread string

	mu     sync.Mutex
	store  *Store // nil: not open
	at     time.Time
	failed bool
}

// Open locks the directory and loads the value, the zero value if there is none.
func (k *File[T]) Open() (value T, err error) {
	store, err := Open(k.Dir)
	if err == nil {
		err = k.load(store, &value)
	}
	if k.note(err); err != nil {
		return *new(T), err
	}
	if aside := store.SetAside(); aside != "" {
		k.Log.Warn("state file damaged, using the earlier one", "moved to", aside)
	}
	k.swap(store)
	return value, nil
}

// load closes the store if the value cannot be read and must stay.
func (k *File[T]) load(store *Store, value *T) error {
	err := store.Read(value)
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return nil
	case k.Unread == "":
		return errors.Join(err, store.Close())
	}
	k.Log.Warn(k.Unread, "err", err)
	return nil
}

func (k *File[T]) swap(store *Store) (before *Store) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before, k.store = k.store, store
	return before
}

func (k *File[T]) get() *Store {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.store
}

// IsOpen reports whether values are saved.
func (k *File[T]) IsOpen() bool { return k.get() != nil }

// Write replaces the value.
func (k *File[T]) Write(value T) error {
	if store := k.get(); store != nil {
		return store.Write(value)
	}
	return fmt.Errorf("state directory %s: %w", k.Dir, fs.ErrClosed)
}

// Save is Write, and logs the beginning and the end of a persistent failure.
func (k *File[T]) Save(value T) error {
	err := k.Write(value)
	switch failed := k.note(err); {
	case err != nil && !failed:
		k.Log.Warn(k.Lost, "err", err)
	case err == nil && failed:
		k.Log.Info(k.Well)
	}
	return err
}

// note records a result, and reports whether the previous one was a failure.
func (k *File[T]) note(err error) (failed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	failed, k.failed = k.failed, err != nil
	if err == nil {
		k.at = time.Now()
	}
	return failed
}

// Last is the time of the last success of Open or Save, and whether the last call failed.
func (k *File[T]) Last() (at time.Time, failed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.at, k.failed
}

// Close unlocks the directory. The value stays.
func (k *File[T]) Close() error {
	if store := k.swap(nil); store != nil {
		return store.Close()
	}
	return nil
}
