package state

import (
	"context"
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
	// Context ends the waiting for the directory, as Limit does (0: OpenLimit); nil: only that.
	Context context.Context
	Limit   time.Duration

	open func(dir string) (*Store, error) // nil: Open; another one in tests
	late Late[openedFile[T]]

	mu     sync.Mutex
	store  *Store // nil: not open
	at     time.Time
	failed bool
}

// openedFile is an open directory with its value.
type openedFile[T any] struct {
	store *Store
	value T
}

// Open locks the directory and loads the value, the zero value if there is none. It must not be called concurrently.
func (k *File[T]) Open() (value T, err error) {
	o, err := k.late.Open(k.Context, k.Limit, k.load, func(o openedFile[T], err error) {
		if err == nil {
			_ = o.store.Close() // nothing was written to it
		}
	})
	if errors.Is(err, ErrLate) {
		err = fmt.Errorf("state directory %s: %w", k.Dir, err)
	}
	if k.note(err); err != nil {
		return *new(T), err
	}
	if aside := o.store.SetAside(); aside != "" {
		k.Log.Warn("state file damaged, using the earlier one", "moved to", aside)
	}
	k.swap(o.store)
	return o.value, nil
}

// load opens the directory. It closes it if the value cannot be read and must stay.
func (k *File[T]) load() (o openedFile[T], err error) {
	open := k.open
	if open == nil {
		open = Open
	}
	if o.store, err = open(k.Dir); err != nil {
		return o, err
	}
	err = o.store.Read(&o.value)
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return o, nil
	case k.Unread == "":
		return o, errors.Join(err, o.store.Close())
	}
	k.Log.Warn(k.Unread, "err", err)
	return o, nil
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

// Last returns the time of the last success of Open or Save, and whether the last call failed.
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
