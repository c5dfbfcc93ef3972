package netlink

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"testing"

	"rdma_exporter/internal/host/hosttest"
	"rdma_exporter/internal/host/rooted"
)

// TestListenerUIDs uses the running kernel and listeners of this process.
func TestListenerUIDs(t *testing.T) {
	tree, err := rooted.Open(rooted.Paths{RootFS: "/"})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	for _, protocol := range []string{"tcp4", "tcp6"} {
		t.Run(protocol, func(t *testing.T) {
			l, err := net.Listen(protocol, "localhost:0")
			if err != nil {
				t.Log(err) // a host may have no IPv6
				return
			}
			defer l.Close()
			port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
			if uids := ListenerUIDs(tree, port); !slices.Equal(uids, []int{os.Geteuid()}) {
				t.Errorf("%d", uids)
			}
		})
	}
}

// TestListenersOfOnePort: listeners at another address of the port are included.
func TestListenersOfOnePort(t *testing.T) {
	const line = "   %d: %s:2A7F 00000000:0000 %s 00000000:00000000 00:00000000 00000000 %5d        0 1 1 0 100 0 0 10 0\n"
	dir := t.TempDir()
	hosttest.Put(t, dir, "proc/net/tcp", "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"+
		fmt.Sprintf(line, 0, "0100000A", "0A", 0)+fmt.Sprintf(line, 1, "0100007F", "0A", 1001)+fmt.Sprintf(line, 2,
		"0100007F", "01", 1002))
	hosttest.Put(t, dir, "proc/net/tcp6", "")
	hosttest.Put(t, dir, "sys/x", "")
	l := hosttest.Open(t, dir)
	defer l.Close()
	if uids := ListenerUIDs(l, "10879"); !slices.Equal(uids, []int{0, 1001}) {
		t.Errorf("%d", uids)
	}
	if uids := ListenerUIDs(l, "10880"); len(uids) > 0 {
		t.Errorf("nothing listens, got %d", uids)
	}
}
