//go:build e2e

package umad

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/mad"
)

// umadOf returns the umad file of a device with one port.
func umadOf(t *testing.T, device string) string {
	t.Helper()
	names, err := filepath.Glob("/sys/class/infiniband_mad/umad*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if b, err := os.ReadFile(name + "/ibdev"); err == nil && strings.TrimSpace(string(b)) == device {
			return "/dev/infiniband/" + filepath.Base(name)
		}
	}
	t.Fatalf("%s has none of %q", device, names)
	return ""
}

// TestUMADAnswersInGuest queries the test driver's InfiniBand port through the kernel's MAD code: the port itself
// answers, nothing behind it does. test/kernel runs it in the virtual machine.
func TestUMADAnswersInGuest(t *testing.T) {
	transport, port, err := OpenMAD(rooted.Paths{}, "", 0)
	if err != nil || port.Device != "mlx5_0" || port.Port != 1 {
		t.Fatalf("%+v %v", port, err)
	}
	c := mad.NewClient(transport, mad.Options{Timeout: 200 * time.Millisecond})
	defer c.Close()
	for range 100 { // as many as transactions in a sweep of a small subnet
		info, err := c.NodeInfo(t.Context(), mad.Local())
		if want := (mad.NodeInfo{Type: mad.ChannelAdapter, Ports: 1, GUID: 0xb83fd20300a1b200, LocalPort: 1}); err != nil ||
			info != want {
			t.Fatalf("%+v %v, want %+v", info, err, want)
		}
	}
	if name, err := c.NodeDescription(t.Context(), mad.Local()); err != nil || name != "fake mlx5_0" {
		t.Errorf("%q %v", name, err)
	}
	p, err := c.PortInfo(t.Context(), mad.Local(), 1)
	if err != nil || p.LID != 17 || p.SMLID != 1 || !p.Up() || p.Active.Speeds.Name() != "NDR" ||
		p.Active.Rate() != 400e9/8 {
		t.Errorf("%+v %v", p, err)
	}
	var status mad.StatusError
	if _, err := c.SwitchInfo(t.Context(), mad.Local()); !errors.As(err, &status) {
		t.Errorf("SwitchInfo of an adapter: %v", err)
	}
	beyond, _ := mad.Local().Hop(1)
	for range 3 {
		if _, err := c.NodeInfo(t.Context(), beyond); !errors.Is(err, mad.ErrTimeout) {
			t.Errorf("behind the port: %v", err)
		}
	}
	if _, err := c.PerformanceInfo(t.Context(), mad.ToLID(99)); !errors.Is(err, mad.ErrTimeout) {
		t.Errorf("an unassigned LID: %v", err)
	}
	if _, err := c.NodeInfo(t.Context(), mad.Local()); err != nil { // after requests that the kernel has returned
		t.Error(err)
	}
}

// TestUMADInGuest tests the requests on /dev/infiniband/umadN against a real kernel, at a soft-RoCE port: it has only
// one of the two queue pairs, and no LIDs. test/kernel runs it in the virtual machine.
func TestUMADInGuest(t *testing.T) {
	if _, _, err := OpenMAD(rooted.Paths{}, "rxe0", 1); err == nil ||
		!strings.Contains(err.Error(), `matches device "rxe0", port 1`) {
		t.Errorf("a port that is not InfiniBand: %v", err)
	}
	name := umadOf(t, "rxe0")
	open := func() *umad {
		fd, err := unix.Open(name, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return newUMAD(fd, name)
	}
	u := open()
	if err := u.register(mad.ClassSubnetDirected); !errors.Is(err, syscall.EPROTONOSUPPORT) &&
		!errors.Is(err, syscall.EINVAL) {
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
