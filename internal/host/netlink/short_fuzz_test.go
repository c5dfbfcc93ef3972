package netlink

import (
	"bytes"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/umad"
	"rdma_exporter/internal/mad"
)

// FuzzShortReplies parses arbitrary bytes as short kernel replies: a link state, trust, a dump of health reporters, a
// datagram.
func FuzzShortReplies(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(Attr(unix.ETHTOOL_A_LINKSTATE_LINK, U8(1)))
	f.Add(Attr(DCBApp, U8(5)))
	f.Add(Attr(DCBAppDCB, U8(255)))
	f.Add(Reporter(ReporterName("fw")))
	f.Add(make([]byte, umad.HeaderSize+mad.Size))
	f.Fuzz(func(t *testing.T, b []byte) {
		ParseLinkState(b)
		if n := len(ParseTrust(b)); n > len(b)/unix.NLA_HDRLEN {
			t.Errorf("%d selectors in %d bytes", n, len(b))
		}
		half := len(b) / 2
		if out, err := ParseHealth([][]byte{b[:half], b[half:]}); len(out) > 2 ||
			err != nil && !errors.Is(err, access.ErrMalformed) {
			t.Errorf("%+v, %v", out, err)
		}
		var d mad.Datagram
		switch ok := umad.DecodeUMAD(b, &d); {
		case !ok && d != mad.Datagram{}:
			t.Errorf("no answer, and %+v", d)
		case ok && !bytes.Equal(d.MAD[:], b[umad.HeaderSize:umad.HeaderSize+mad.Size]):
			t.Errorf("%+v", d)
		}
	})
}
