// Package disk makes writes to files fail, for tests.
package disk

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Faults are functions that make writes below a directory fail, until what they return is called.
var Faults = map[string]func(t *testing.T, dir string) (mend func()){
	"full": func(t *testing.T, _ string) func() { return Full(t) },
	"directory gone": func(t *testing.T, dir string) func() {
		must(t, os.Rename(dir, dir+".aside"))
		return func() { must(t, os.Rename(dir+".aside", dir)) }
	},
	"something in the way": func(t *testing.T, dir string) func() {
		way := filepath.Join(dir, "state.v1.json.tmp/x")
		must(t, os.MkdirAll(way, 0o700))
		return func() { must(t, os.RemoveAll(filepath.Dir(way))) }
	},
}

// Full makes each write to a file of this process fail, as on a disk that is full (EFBIG in the place of ENOSPC):
// for tests that run alone.
func Full(t *testing.T) (mend func()) {
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 0, Max: limit.Max}))
	return func() { must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)) }
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
