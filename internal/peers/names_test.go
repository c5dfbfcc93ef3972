package peers

import (
	"maps"
	"strings"
	"testing"
)

func TestParseHosts(t *testing.T) {
	const text = "# of the site\n127.0.0.1\tlocalhost\n10.0.0.17  gpu-17 gpu-17.example # rail 3\n\n10.0.0.17 other\n" +
		"10.0.0.18\n10.0.0.300 none\ngpu-19 10.0.0.19\n10.0.0.20 gpu\x1b[8m\n10.0.0.20 gpu-20\n10.0.0.21 g\u202epu\n" +
		"10.0.0.22 \"};x{\n\xff\xfe gpu\n10.0.0.23#gpu-23\nFE80::17 v6\nfe80::18%ib0 zone\n::ffff:10.0.0.24 mapped\r\n10.0.0.25 last"
	want := map[string]string{
		"127.0.0.1": "localhost", "10.0.0.17": "gpu-17", "10.0.0.20": "gpu-20", "fe80::17": "v6", "10.0.0.24": "mapped",
		"10.0.0.25": "last",
	}
	if got := ParseHosts([]byte(text)); !maps.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if got := ParseHosts([]byte("10.0.0.1 " + strings.Repeat("x", maxName+1))); len(got) != 0 {
		t.Errorf("%q", got)
	}
}
