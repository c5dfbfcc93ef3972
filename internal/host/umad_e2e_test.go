//go:build e2e

package host

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/mad"
)

// TestUMADInGuest holds the requests on /dev/infiniband/umadN to the kernel that knows them, at a port that has only one of the two queue
// pairs and no LIDs: soft-RoCE. test/kernel runs it in the virtual machine.
func TestUMADInGuest(t *testing.T) {
	if _, _, err := OpenMAD(Paths{}, "rxe0", 1); err == nil || !strings.Contains(err.Error(), `is device "rxe0", port 1`) {
		t.Errorf("a port that is not InfiniBand: %v", err)
	}
	const name = "/dev/infiniband/umad0"
	if b, err := os.ReadFile("/sys/class/infiniband_mad/umad0/ibdev"); err != nil || strings.TrimSpace(string(b)) != "rxe0" {
		t.Fatalf("umad0 is of %q: %v", b, err)
	}
	open := func() *umad {
		fd, err := unix.Open(name, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return newUMAD(fd, name)
	}
	u := open()
	if err := u.register(mad.ClassSubnetDirected); !errors.Is(err, syscall.EPROTONOSUPPORT) && !errors.Is(err, syscall.EINVAL) {
		t.Errorf("queue pair 0, which soft-RoCE has not: %v", err)
	}
	if err := u.Close(); err != nil {
		t.Error(err)
	}
	u = open()
	if err := u.register(mad.ClassPerformance); err != nil {
		t.Fatal(err)
	}
	received := make(chan error, 1)
	go func() {
		var d mad.Datagram
		received <- u.Receive(&d)
	}()
	var d mad.Datagram
	d.LID, d.QP = 1, 1
	d.MAD[0], d.MAD[1], d.MAD[2], d.MAD[3], d.MAD[17] = 1, mad.ClassPerformance, 1, 1, 0x12
	if err := u.Send(&d, time.Second); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a LID, where there are none: %v", err)
	}
	select {
	case err := <-received:
		t.Errorf("received something: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if err := u.Close(); err != nil {
		t.Error(err)
	}
	if err := <-received; !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
