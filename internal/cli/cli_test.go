package cli

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/locked"
)

// runProgram runs the program to its end.
func runProgram(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs locked.Buffer // a collection may outlive a program that cannot serve
	code = Run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// waitUntil waits until something holds. Asking the program is work for it: a test that asks all the time takes the CPU
// from what it waits for.
func waitUntil(holds func() bool) {
	for !holds() {
		time.Sleep(50 * time.Millisecond)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mkfifo(t *testing.T, path string) {
	t.Helper()
	must(t, syscall.Mkfifo(path, 0o644))
}

const port0 = "sys/class/infiniband/mlx5_0/ports/1/"

// release lets a blocked reader of a FIFO go, and puts a counter in its place.
func release(t *testing.T, fifo string) {
	t.Helper()
	w, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	must(t, err)
	must(t, os.Remove(fifo))
	must(t, os.WriteFile(fifo, []byte("0\n"), 0o644))
	must(t, w.Close())
}
