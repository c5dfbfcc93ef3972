package capture_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"rdma_exporter/internal/capture"
	"rdma_exporter/test/archives"
)

// files is n empty files.
// Limits of Parse.
const entryLimit, pathLimit = 1 << 20, 1 << 18

func files(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "-- %d --\n", i)
	}
	return b.String()
}

func TestBadArchivesAreRejected(t *testing.T) {
	const (
		outside = `the path must be relative, without empty, "." and ".." elements`
		leads   = "the link target is outside the captured tree"
		below   = "is not a directory"
	)
	large := strings.Repeat("x", entryLimit)
	variant := func(base string) string {
		return fmt.Sprintf("capture.json: base %q: a variant requires version 2 and a base name of lower case letters, digits, '-' and '.'", base)
	}
	meta := func(text string) string { return "-- capture.json --\n" + text + "\n" }
	for _, c := range []struct{ text, want string }{
		{"", `not a capture: the first entry is not "-- capture.json --"`},
		{"some text\n", `not a capture: the first entry is not "-- capture.json --"`},
		{"-- a --\n" + archives.Header, `not a capture: the first entry is not "-- capture.json --"`},
		{meta(`{`), "capture.json: unexpected end of JSON input"},
		{meta(`{"rounds":["0s"]}`), "capture.json: version 0 is not supported, only 1 to 2"},
		{meta(`{"version":3,"rounds":["0s"]}`), "capture.json: version 3 is not supported, only 1 to 2"},
		{meta(`{"version":1}`), "capture.json: rounds: at least one is required"},
		{meta(`{"version":1,"rounds":["1s"]}`), "capture.json: rounds: 1s: offsets have to start at 0s and increase"},
		{meta(`{"version":1,"rounds":["0s","15s","15s"]}`), "capture.json: rounds: 15s: offsets have to start at 0s and increase"},
		{meta(`{"version":1,"rounds":["0s","-1s"]}`), "capture.json: rounds: -1s: offsets have to start at 0s and increase"},
		{meta(`{"version":1,"rounds":["0s","soon"]}`), `capture.json: rounds: time: invalid duration "soon"`},

		{archives.Header + "-- ../x --\n", `entry "../x": ` + outside},
		{archives.Header + "-- a/../../x --\n", `entry "a/../../x": ` + outside},
		{archives.Header + "-- /etc/passwd --\n", `entry "/etc/passwd": ` + outside},
		{archives.Header + "-- .. --\n", `entry "..": ` + outside},
		{archives.Header + "-- . --\n", `entry ".": ` + outside},
		{archives.Header + "-- a//b --\n", `entry "a//b": ` + outside},
		{archives.Header + "-- a/ --\n", `entry "a/": ` + outside},
		{archives.Header + "-- %2e%2e/x --\n", `entry "%2e%2e/x": ` + outside},
		{archives.Header + "-- a%00b --\n", `entry "a%00b": ` + outside},
		{archives.Header + "-- +15s/../x --\n", `entry "+15s/../x": ` + outside},
		{archives.Header + "-- +15s//x --\n", `entry "+15s//x": ` + outside},
		{archives.Header + "-- ../x !EIO --\n", `entry "../x !EIO": ` + outside},
		{archives.Header + "-- ../x -> y --\n", `entry "../x -> y": ` + outside},

		{archives.Header + "-- a -> /etc --\n", `entry "a -> /etc": ` + leads},
		{archives.Header + "-- a -> .. --\n", `entry "a -> ..": ` + leads},
		{archives.Header + "-- a -> ../b --\n", `entry "a -> ../b": ` + leads},
		{archives.Header + "-- a/b -> ../../c --\n", `entry "a/b -> ../../c": ` + leads},
		{archives.Header + "-- a/b -> c/../../../d --\n", `entry "a/b -> c/../../../d": ` + leads},
		{archives.Header + "-- a -> %2e%2e/b --\n", `entry "a -> %2e%2e/b": ` + leads},

		{archives.Header + "-- a -> b --\n-- a/c --\n", `entry "a/c": "a" ` + below},
		{archives.Header + "-- a/c --\n-- a -> b --\n", `entry "a/c": "a" ` + below},
		{archives.Header + "-- a --\n-- a/b/c -> d --\n", `entry "a/b/c": "a" ` + below},
		{archives.Header + "-- a @unread --\n-- a/b @dir --\n", `entry "a/b": "a" ` + below},
		{archives.Header + "-- a -> b --\n-- +15s/a/c --\n", `entry "a/c": "a" ` + below},
		{archives.Header + "-- a --\n-- +30s/a/c --\n", `entry "a/c": "a" ` + below},
		{archives.Header + "-- a --\n-- +15s/a !ENOENT --\n-- +15s/a/b --\n-- +30s/a/b/c --\n", `entry "a/b/c": "a/b" ` + below},

		{archives.Header + files(pathLimit) + "-- b --\n", `entry "b": too many files and directories (limit 262144)`},
		{archives.Header + "-- " + strings.Repeat("x", 5000) + " --\n", `entry "` + strings.Repeat("x", 5000) + `": the path exceeds PATH_MAX (4096 bytes)`},
		{archives.Header + "-- a --\n-- a --\n", `entry "a": duplicate path`},
		{archives.Header + "-- a --\n-- a !EIO --\n", `entry "a !EIO": duplicate path`},
		{archives.Header + "-- a -> b --\n-- a -> c --\n", `entry "a -> c": duplicate path`},
		{archives.Header + "-- a --\n-- %61 --\n", `entry "%61": duplicate path`},
		{archives.Header + "-- a --\n-- +0s/a --\n", `entry "+0s/a": duplicate path`},
		{archives.Header + "-- +30s/a --\n-- +0.5m/a --\n", `entry "+0.5m/a": duplicate path`},

		{archives.Header + "-- a --\n" + large + "\n", `entry "a": 1048577 bytes exceed the limit of 1048576`},
		{archives.Header + "-- a @base64 --\n" + base64.StdEncoding.EncodeToString([]byte(large+"x")) + "\n", `entry "a @base64": 1048577 bytes exceed the limit of 1048576`},
		{archives.Header + "-- a @hex --\n" + strings.Repeat("00", entryLimit+1) + "\n", `entry "a @hex": 1048577 bytes exceed the limit of 1048576`},

		{archives.Header + "-- a @zip --\n", `entry "a @zip": unknown mode "@zip": use @base64, @hex, @nonl, @unread, @dir, @lines or @files`},
		{archives.Header + "-- a @Hex --\n", `entry "a @Hex": unknown mode "@Hex": use @base64, @hex, @nonl, @unread, @dir, @lines or @files`},
		{archives.Header + "-- a @ --\n", `entry "a @": unknown mode "@": use @base64, @hex, @nonl, @unread, @dir, @lines or @files`},
		{archives.Header + "-- a !EFOO --\n", `entry "a !EFOO": "EFOO" is not an errno`},
		{archives.Header + "-- a ! --\n", `entry "a !": "" is not an errno`},
		{archives.Header + "-- a !0 --\n", `entry "a !0": "0" is not an errno`},
		{archives.Header + "-- a !4096 --\n", `entry "a !4096": "4096" is not an errno`},
		{archives.Header + "-- a !einval --\n", `entry "a !einval": "einval" is not an errno`},
		{archives.Header + "-- a @base64 --\n!\n", `entry "a @base64": illegal base64 data at input byte 0`},
		{archives.Header + "-- a @hex --\n0\n", `entry "a @hex": encoding/hex: odd length hex string`},
		{archives.Header + "-- a @hex --\nzz\n", `entry "a @hex": encoding/hex: invalid byte: U+007A 'z'`},
		{archives.Header + "-- a% --\n", `entry "a%": "a%": a % has to be followed by two hexadecimal digits`},
		{archives.Header + "-- a%2 --\n", `entry "a%2": "a%2": a % has to be followed by two hexadecimal digits`},
		{archives.Header + "-- a%zz --\n", `entry "a%zz": "a%zz": a % has to be followed by two hexadecimal digits`},
		{archives.Header + "-- a%+1 --\n", `entry "a%+1": "a%+1": a % has to be followed by two hexadecimal digits`},
		{archives.Header + "-- a -> %zz --\n", `entry "a -> %zz": "%zz": a % has to be followed by two hexadecimal digits`},

		{archives.Header + "-- a -> b --\ntext\n", `entry "a -> b": this kind of entry has no content`},
		{archives.Header + "-- a !EIO --\ntext\n", `entry "a !EIO": this kind of entry has no content`},
		{archives.Header + "-- a @dir --\ntext\n", `entry "a @dir": this kind of entry has no content`},
		{archives.Header + "-- a @unread --\ntext\n", `entry "a @unread": this kind of entry has no content`},

		{archives.Header + "-- a @files --\nb 1\n", `entry "a @files": "b 1\n": files are written as NAME: LINE`},
		{archives.Header + "-- a @files --\n../b: 1\n", `entry "a @files": "../b: 1\n": files are written as NAME: LINE`},
		{archives.Header + "-- a @files --\n..: 1\n", `entry "a @files": "..: 1\n": files are written as NAME: LINE`},
		{archives.Header + "-- a @files --\nb: 1\n-- a/b --\n", `entry "a/b": duplicate path`},
		{archives.Header + "-- a @files --\nb: 1\nb: 2\n", `entry "a @files": duplicate path`},
		{archives.Header + "-- ../a @files --\nb: 1\n", `entry "../a @files": ` + outside},
		{archives.Header + "-- a --\n-- a @files --\nb: 1\n", `entry "a/b": "a" ` + below},
		{archives.Header + "-- a @lines --\nb: 1\n", `entry "a": @lines requires a file in the previous round`},
		{archives.Header + "-- a -> b --\n-- +15s/a @lines --\nb: 1\n", `entry "a": @lines requires a file in the previous round`},
		{archives.Header + "-- a --\nb: 1\n-- +15s/a !ENOENT --\n-- +30s/a @lines --\nb: 1\n", `entry "a": @lines requires a file in the previous round`},

		{meta(`{"version":1,"base":"b","rounds":["0s"]}`), variant("b")},
		{meta(`{"version":2,"base":"../b","rounds":["0s"]}`), variant("../b")},
		{meta(`{"version":2,"base":".","rounds":["0s"]}`), variant(".")},

		{archives.Header + "-- +15s --\n", `entry "+15s": the entry of a round has to be +DURATION/PATH`},
		{archives.Header + "-- +15x/a --\n", `entry "+15x/a": time: unknown unit "x" in duration "15x"`},
		{archives.Header + "-- +/a --\n", `entry "+/a": time: invalid duration ""`},
		{archives.Header + "-- +45s/a --\n", `entry "+45s/a": 45s is not one of the rounds in capture.json`},
		{archives.Header + "-- +-15s/a --\n", `entry "+-15s/a": -15s is not one of the rounds in capture.json`},
	} {
		a, err := capture.Parse([]byte(c.text))
		name := strings.TrimPrefix(c.text, archives.Header)
		name = name[:min(len(name), 80)]
		switch {
		case err == nil:
			t.Errorf("%q was accepted", name)
		case err.Error() != c.want:
			t.Errorf("%q:\n%s\nwant\n%s", name, err, c.want)
		case a != nil:
			t.Errorf("%q: an archive was returned with the error", name)
		}
	}
}

func TestWhatTakesAnothersPlaceIsNoFault(t *testing.T) {
	for _, text := range []string{
		"-- a --\n-- +15s/a !ENOENT --\n-- +15s/a/b --\n",
		"-- a/b --\n-- +15s/a !ENOENT --\n-- +30s/a --\n",
		"-- a -> b --\n-- +15s/a !ENOENT --\n-- +30s/a/b --\n",
		"-- a/b --\n-- +15s/a !ENOENT --\n-- +15s/a/b/c --\n",
		"-- a @dir --\n-- +15s/a/b --\n",
		"-- a !EISDIR --\n-- a/b --\n",
		"-- a/b --\n-- +15s/a !EIO --\n-- +30s/a/b --\n",
		"-- a --\n" + strings.Repeat("x", entryLimit-1) + "\n",
	} {
		if _, err := capture.Parse([]byte(archives.Header + text)); err != nil {
			t.Error(err)
		}
	}
}
