package state

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// maxSize limits a file.
const maxSize = 16 << 20

// envelope is the content of a file: the value with a checksum.
type envelope struct {
	Version int             `json:"version"`
	Written string          `json:"written"` // RFC 3339
	Sum     string          `json:"sum"`     // SHA-256 of the value's bytes, in hex
	Value   json.RawMessage `json:"value"`
}

func encode(v any, now time.Time) ([]byte, error) {
	value, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	b := fmt.Appendf(nil, `{"version":%d,"written":%q,"sum":%q,"value":%s}`+"\n", version,
		now.UTC().Format(time.RFC3339), sum(value), value)
	if len(b) > maxSize {
		return nil, fmt.Errorf("%d bytes exceed the limit of %d MiB", len(b), maxSize>>20)
	}
	return b, nil
}

func sum(value []byte) string {
	s := sha256.Sum256(value)
	return hex.EncodeToString(s[:])
}

// brokenError is the error of a file that exists without a complete value.
type brokenError struct{ reason error }

func (e *brokenError) Error() string { return "incomplete or damaged: " + e.reason.Error() }

func (e *brokenError) Unwrap() error { return e.reason }

func isBroken(err error) bool {
	var b *brokenError
	return errors.As(err, &b)
}

func broken(format string, args ...any) error { return &brokenError{fmt.Errorf(format, args...)} }

// decode returns the value of a file.
func decode(b []byte) ([]byte, error) {
	if len(b) > maxSize {
		return nil, broken("larger than %d MiB", maxSize>>20)
	}
	var e envelope
	if err := json.Unmarshal(b, &e); err != nil {
		return nil, broken("%w", err)
	}
	if e.Version != version {
		return nil, broken("content has version %d, name has version %d", e.Version, version)
	}
	if len(e.Value) == 0 || sum(e.Value) != e.Sum {
		return nil, broken("checksum mismatch")
	}
	return e.Value, nil
}

// readNewest returns the value of the newest complete generation.
func readNewest(dir string) ([]byte, error) {
	value, err := load(filepath.Join(dir, currentName))
	if err == nil || !isBroken(err) && !errors.Is(err, fs.ErrNotExist) {
		return value, err
	}
	older, olderErr := load(filepath.Join(dir, oldName))
	if olderErr == nil {
		return older, nil
	}
	if errors.Is(olderErr, fs.ErrNotExist) {
		return nil, err
	}
	return nil, errors.Join(err, olderErr)
}

// load returns the value of a file. It rejects links and pipes.
func load(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, broken("%s: is a symbolic link", filepath.Base(name))
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, broken("%s: not a regular file", filepath.Base(name))
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, broken("%w", err)
	}
	value, err := decode(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	return value, nil
}
