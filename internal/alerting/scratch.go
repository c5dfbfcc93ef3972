package alerting

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/prometheus/tsdb/fileutil"
)

const (
	scratchPrefix = "rdma_exporter-alerting-"
	// scratchAge is the age from which a directory without a lock belongs to a dead process: the database locks its own sooner.
	scratchAge = time.Minute
)

// locks are the lock files that mark a directory as in use, by prefix: that of the database. In earlier versions of `check` the database
// was one level below. An unpacked replay has no lock and is never removed.
var locks = map[string]string{scratchPrefix: "lock", "rdma_exporter-check-": "store/lock"}

// makeScratch creates a directory for the store of this run. It removes those of killed processes, since they may occupy memory.
func makeScratch(parent string) (string, error) {
	for prefix, lock := range locks {
		if err := removeKilled(parent, prefix, lock); err != nil {
			return "", err
		}
	}
	dir, err := os.MkdirTemp(parent, scratchPrefix)
	if err != nil {
		return "", fmt.Errorf("create temporary directory for samples: %w: set TMPDIR to a directory with free space", err)
	}
	return dir, nil
}

func removeKilled(parent, prefix, lockName string) error {
	old, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
	if err != nil {
		return fmt.Errorf("find stores of earlier runs: %w", err)
	}
	for _, dir := range old {
		if st, err := os.Lstat(dir); err != nil || !private(st) || time.Since(st.ModTime()) < scratchAge {
			continue
		}
		lock, _, err := fileutil.Flock(filepath.Join(dir, lockName))
		if err != nil {
			continue // in use
		}
		_ = os.RemoveAll(dir) // retried at the next start
		_ = lock.Release()
	}
	return nil
}

// private reports whether no other user can have created files in a directory. All users can write to its parent and may have created a
// directory with our prefix that contains links.
func private(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && st.IsDir() && int64(sys.Uid) == int64(os.Geteuid()) && st.Mode().Perm()&0o022 == 0
}
