package alone_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"rdma_exporter/test/alone"
)

// TestLimitIsOfThisTest: the log of the testing package is not affected.
func TestLimitIsOfThisTest(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 0, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if _, err := os.Stat(filepath.Join("testdata", t.Name())); err == nil {
			t.Fatal("it is there")
		}
	}
	if err := os.WriteFile(filepath.Join(t.TempDir(), "x"), []byte("x"), 0o600); err == nil {
		t.Error("a file is written")
	}
}
