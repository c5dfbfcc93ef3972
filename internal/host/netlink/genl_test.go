package netlink

import (
	"bytes"
	"testing"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// TestGenlHeader: the reserved bytes are 0 in the request as the kernel gets it.
func TestGenlHeader(t *testing.T) {
	req := nl.NewNetlinkRequest(unix.GENL_ID_CTRL, 0)
	req.AddData(genlHeader{7, 1})
	if got, want := req.Serialize()[unix.SizeofNlMsghdr:], []byte{7, 1, 0, 0}; !bytes.Equal(got, want) {
		t.Errorf("% x, want % x", got, want)
	}
}
