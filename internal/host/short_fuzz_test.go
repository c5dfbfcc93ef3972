package host

import (
	"bytes"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/mad"
)

// FuzzShortReplies parses arbitrary bytes as short kernel replies: a link state, trust, a dump of health reporters, a
// datagram.
func FuzzShortReplies(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(attr(unix.ETHTOOL_A_LINKSTATE_LINK, u8(1)))
	f.Add(attr(dcbApp, u8(5)))
	f.Add(attr(dcbAppDCB, u8(255)))
	f.Add(reporter(reporterName("fw")))
	f.Add(make([]byte, umadHeader+mad.Size))
	f.Fuzz(func(t *testing.T, b []byte) {
		parseLinkState(b)
		if n := len(parseTrust(b)); n > len(b)/unix.NLA_HDRLEN {
			t.Errorf("%d selectors in %d bytes", n, len(b))
		}
		half := len(b) / 2
		if out, err := parseHealth([][]byte{b[:half], b[half:]}); len(out) > 2 ||
			err != nil && !errors.Is(err, ErrMalformed) {
			t.Errorf("%+v, %v", out, err)
		}
		var d mad.Datagram
		switch ok := decodeUMAD(b, &d); {
		case !ok && d != mad.Datagram{}:
			t.Errorf("no answer, and %+v", d)
		case ok && !bytes.Equal(d.MAD[:], b[umadHeader:umadHeader+mad.Size]):
			t.Errorf("%+v", d)
		}
	})
}
