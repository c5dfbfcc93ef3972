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
	// scratchAge is from when on a folder without a lock is a dead process's: the database locks its own within it.
	scratchAge = time.Minute
)

// locks are what says that somebody uses a folder, by its prefix: the database's own. Earlier versions of `check` had the database below
// theirs. An unpacked replay has none, so that one which was left stays.
var locks = map[string]string{scratchPrefix: "lock", "rdma_exporter-check-": "store/lock"}

// makeScratch makes a folder for a store of this run. Those of processes that were killed go: they may lie in memory.
func makeScratch(parent string) (string, error) {
	for prefix, lock := range locks {
		if err := removeKilled(parent, prefix, lock); err != nil {
			return "", err
		}
	}
	dir, err := os.MkdirTemp(parent, scratchPrefix)
	if err != nil {
		return "", fmt.Errorf("make a folder for samples: %w: set TMPDIR to a folder with free space", err)
	}
	return dir, nil
}

func removeKilled(parent, prefix, lockName string) error {
	old, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
	if err != nil {
		return fmt.Errorf("look for stores of earlier runs: %w", err)
	}
	for _, dir := range old {
		if st, err := os.Lstat(dir); err != nil || !private(st) || time.Since(st.ModTime()) < scratchAge {
			continue
		}
		lock, _, err := fileutil.Flock(filepath.Join(dir, lockName))
		if err != nil {
			continue // somebody's
		}
		_ = os.RemoveAll(dir) // the next run tries again
		_ = lock.Release()
	}
	return nil
}

// private says that nobody else can have put anything into a folder. Its parent is open to all users, each of whom may name a folder
// as this program does and have links in it.
func private(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && st.IsDir() && int64(sys.Uid) == int64(os.Geteuid()) && st.Mode().Perm()&0o022 == 0
}
