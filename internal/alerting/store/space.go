package store

import (
	"errors"
	"fmt"
	"os"

	"github.com/prometheus/prometheus/tsdb/fileutil"
)

// hasSpace returns an error if a directory does not have so much space. A store needs spaceNeeded to be opened: while
// the library reads the log of a killed process, it writes the full chunks in it on its own goroutine, where a full
// disk terminates the process.
func hasSpace(dir string, bytes int64) (err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "space-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// The space belongs to the open file and is freed however this process ends.
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	if err := fileutil.Preallocate(f, bytes, true); err != nil {
		return fmt.Errorf("no space for %d MiB: %w", bytes>>20, err)
	}
	piece := make([]byte, 64<<10) // some file systems do not allocate before data is written
	for range bytes / int64(len(piece)) {
		if _, err := f.Write(piece); err != nil {
			return fmt.Errorf("no space for %d MiB: %w", bytes>>20, err)
		}
	}
	return nil
}
