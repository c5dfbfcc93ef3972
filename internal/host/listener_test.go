package host

import (
	"net"
	"os"
	"strconv"
	"testing"
)

// TestListenerUID asks this kernel about listeners of this process.
func TestListenerUID(t *testing.T) {
	live, err := OpenLive(Paths{RootFS: "/"})
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	for _, network := range []string{"tcp4", "tcp6"} {
		l, err := net.Listen(network, "localhost:0")
		if err != nil {
			t.Logf("%s: %v", network, err) // a host may have no IPv6
			continue
		}
		port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
		if uid, ok := ListenerUID(live.Files, port); !ok || uid != os.Geteuid() {
			t.Errorf("%s: %d, %v", network, uid, ok)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if uid, ok := ListenerUID(live.Files, port); ok {
			t.Errorf("%s: nothing listens, and user %d is told", network, uid)
		}
	}
}
