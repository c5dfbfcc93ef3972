package alerting

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/prometheus/tsdb/fileutil"
)

const (
	scratchPrefix = "rdma_exporter-alerting-"
	// scratchAge is from when on a folder without a lock is a dead process's: the database locks its own within it.
	scratchAge = time.Minute
)

// makeScratch makes a folder for a store of this run. Those of processes that were killed go: they may lie in memory.
func makeScratch(parent string) (string, error) {
	old, err := filepath.Glob(filepath.Join(parent, scratchPrefix+"*"))
	if err != nil {
		return "", fmt.Errorf("look for stores of earlier runs: %w", err)
	}
	for _, dir := range old {
		if st, err := os.Lstat(dir); err != nil || !st.IsDir() || time.Since(st.ModTime()) < scratchAge {
			continue
		}
		lock, _, err := fileutil.Flock(filepath.Join(dir, "lock")) // the database's own
		if err != nil {
			continue // somebody's
		}
		_ = os.RemoveAll(dir) // the next run tries again
		_ = lock.Release()
	}
	dir, err := os.MkdirTemp(parent, scratchPrefix)
	if err != nil {
		return "", fmt.Errorf("make a folder for samples: %w: set TMPDIR to a folder with free space", err)
	}
	return dir, nil
}
