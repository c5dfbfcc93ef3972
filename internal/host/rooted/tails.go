package rooted

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host/access"
)

// Limits of Tails: the files grow without limit.
const (
	tailSize    = 256 << 10 // of a file
	tailFiles   = 64
	tailEntries = 65536 // of the directory
)

// Tails reads the ends of the wanted regular files in a directory that a flag names, each from its first whole line on;
// at most 64 files, 256 KiB of each. It returns when ctx ends, also if a file server does not answer. Errors: the
// directory or one of the files cannot be read.
func Tails(ctx context.Context, dir string, want func(name string) bool) (map[string][]byte, error) {
	type result struct {
		files map[string][]byte
		err   error
	}
	read := make(chan result, 1)
	go func() {
		files, err := tails(ctx, dir, want)
		read <- result{files, err}
	}()
	select {
	case r := <-read:
		return r.files, r.err
	case <-ctx.Done():
		return nil, tooLate(dir)
	}
}

func tooLate(dir string) error { return fmt.Errorf("%s: %w in time", dir, access.ErrLate) }

func tails(ctx context.Context, dir string, want func(string) bool) (map[string][]byte, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	names, err := d.Readdirnames(tailEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.Sort(names)
	out := map[string][]byte{}
	for _, name := range names {
		if ctx.Err() != nil {
			return nil, tooLate(dir)
		}
		if len(out) == tailFiles {
			break
		}
		if want(name) {
			if out[name], err = tail(filepath.Join(dir, name)); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// tail opens neither links nor anything that may block: others write the directory.
func tail(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("not a regular file")}
	}
	from := max(0, info.Size()-tailSize)
	b, err := io.ReadAll(io.NewSectionReader(f, from, tailSize))
	if err != nil {
		return nil, err
	}
	if from > 0 {
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
	return b, nil
}
