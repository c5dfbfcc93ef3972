package cli

import (
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/test/alone"
	"rdma_exporter/test/machines"
)

// noFiles makes each write to a file of this process fail, as on a disk that is full (EFBIG in the place of ENOSPC):
// for tests that run alone.
func noFiles(t *testing.T) (mend func()) {
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 0, Max: limit.Max}))
	return func() { must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)) }
}

// TestServeOnAFullDisk: the program that can write nothing any more, anywhere, serves and says so.
func TestServeOnAFullDisk(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	s := startProgram(
		t,
		"--path.rootfs="+machines.Tree(t, "dgx-h100-ib"),
		"--collect.min-interval=0s",
		"--alerting.interval=1s",
	)
	s.await(t, "/api/v1/alerts", "RDMAWatchdog")
	s.await(t, "/metrics", "\nrdma_state_last_write_successful 1")
	whole := strings.Count(s.await(t, "/metrics", "\nrdma_alerting_store_degraded 0"), "\nrdma_port_")
	mend := noFiles(t)
	body := s.await(t, "/metrics", "\nrdma_alerting_store_degraded 1")
	if n := strings.Count(body, "\nrdma_port_"); n < whole {
		t.Errorf("%d series of ports, %d before", n, whole)
	}
	s.await(t, "/api/v1/alerts", "RDMAWatchdog")
	mend()
	if !strings.Contains(s.log.String(), "starts empty") {
		t.Errorf("log:\n%s", s.log)
	}
}
