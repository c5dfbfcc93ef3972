// Package machine unpacks a recorded machine into a tree of regular files, like a copied one.
package machine

import (
	"fmt"
	"os"
	"path/filepath"

	"rdma_exporter/fixtures"
	"rdma_exporter/internal/capture"
)

// Load reads a capture; variants are returned whole.
func Load(file string) (*capture.Archive, error) {
	a, err := capture.Load(file, fixtures.Builtin)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return a, nil
}

// Write writes a capture.
func Write(a *capture.Archive, file string) error {
	b, err := capture.Format(a)
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}

// Unpack writes the files and links of the first round of a capture below dir; sys, proc and dev are created. Files
// that were unreadable are left out.
func Unpack(file, dir string) error {
	a, err := Load(file)
	if err != nil {
		return err
	}
	for _, d := range []string{"sys", "proc", "dev"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	for _, e := range a.Rounds[0].Entries {
		if err := write(e, filepath.Join(dir, e.Path)); err != nil {
			return err
		}
	}
	return nil
}

func write(e capture.Entry, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	switch e.Kind {
	case capture.Link:
		return os.Symlink(e.Target, path)
	case capture.Dir:
		return os.MkdirAll(path, 0o755)
	case capture.File, capture.Unread:
		return os.WriteFile(path, e.Data, 0o644)
	case capture.Error: // not possible in a tree
	}
	return nil
}
