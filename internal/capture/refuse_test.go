package capture

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// files are so many empty ones.
func files(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "-- %d --\n", i)
	}
	return b.String()
}

func TestBadArchivesAreRefused(t *testing.T) {
	const (
		outside = "the path has to be relative and stay inside"
		leads   = "the link leads outside"
		below   = "which is no directory"
	)
	large := strings.Repeat("x", maxEntry)
	variant := func(base string) string {
		return fmt.Sprintf("capture.json: base %q: a variant has version 2, and its base is named by small letters, digits, '-' and '.'", base)
	}
	meta := func(json string) string { return "-- capture.json --\n" + json + "\n" }
	for _, c := range []struct{ text, want string }{
		{"", `not a capture: the first entry has to be "-- capture.json --"`},
		{"some text\n", `not a capture: the first entry has to be "-- capture.json --"`},
		{"-- a --\n" + header, `not a capture: the first entry has to be "-- capture.json --"`},
		{meta(`{`), "capture.json: unexpected end of JSON input"},
		{meta(`{"rounds":["0s"]}`), "capture.json: version 0: this program reads 1 to 2"},
		{meta(`{"version":3,"rounds":["0s"]}`), "capture.json: version 3: this program reads 1 to 2"},
		{meta(`{"version":1}`), "capture.json: rounds: at least one is needed"},
		{meta(`{"version":1,"rounds":["1s"]}`), "capture.json: rounds: 1s: they start at 0s and rise"},
		{meta(`{"version":1,"rounds":["0s","15s","15s"]}`), "capture.json: rounds: 15s: they start at 0s and rise"},
		{meta(`{"version":1,"rounds":["0s","-1s"]}`), "capture.json: rounds: -1s: they start at 0s and rise"},
		{meta(`{"version":1,"rounds":["0s","soon"]}`), `capture.json: rounds: time: invalid duration "soon"`},

		{header + "-- ../x --\n", `entry "../x": ` + outside},
		{header + "-- a/../../x --\n", `entry "a/../../x": ` + outside},
		{header + "-- /etc/passwd --\n", `entry "/etc/passwd": ` + outside},
		{header + "-- .. --\n", `entry "..": ` + outside},
		{header + "-- . --\n", `entry ".": ` + outside},
		{header + "-- a//b --\n", `entry "a//b": ` + outside},
		{header + "-- a/ --\n", `entry "a/": ` + outside},
		{header + "-- %2e%2e/x --\n", `entry "%2e%2e/x": ` + outside},
		{header + "-- a%00b --\n", `entry "a%00b": ` + outside},
		{header + "-- +15s/../x --\n", `entry "+15s/../x": ` + outside},
		{header + "-- +15s//x --\n", `entry "+15s//x": ` + outside},
		{header + "-- ../x !EIO --\n", `entry "../x !EIO": ` + outside},
		{header + "-- ../x -> y --\n", `entry "../x -> y": ` + outside},

		{header + "-- a -> /etc --\n", `entry "a -> /etc": ` + leads},
		{header + "-- a -> .. --\n", `entry "a -> ..": ` + leads},
		{header + "-- a -> ../b --\n", `entry "a -> ../b": ` + leads},
		{header + "-- a/b -> ../../c --\n", `entry "a/b -> ../../c": ` + leads},
		{header + "-- a/b -> c/../../../d --\n", `entry "a/b -> c/../../../d": ` + leads},
		{header + "-- a -> %2e%2e/b --\n", `entry "a -> %2e%2e/b": ` + leads},

		{header + "-- a -> b --\n-- a/c --\n", `entry "a/c": lies below "a", ` + below},
		{header + "-- a/c --\n-- a -> b --\n", `entry "a/c": lies below "a", ` + below},
		{header + "-- a --\n-- a/b/c -> d --\n", `entry "a/b/c": lies below "a", ` + below},
		{header + "-- a @unread --\n-- a/b @dir --\n", `entry "a/b": lies below "a", ` + below},
		{header + "-- a -> b --\n-- +15s/a/c --\n", `entry "a/c": lies below "a", ` + below},
		{header + "-- a --\n-- +30s/a/c --\n", `entry "a/c": lies below "a", ` + below},
		{header + "-- a --\n-- +15s/a !ENOENT --\n-- +15s/a/b --\n-- +30s/a/b/c --\n", `entry "a/b/c": lies below "a/b", ` + below},

		{header + files(maxPaths) + "-- b --\n", `entry "b": more than 262144 files and directories: no machine has so many`},
		{header + "-- " + strings.Repeat("x", 5000) + " --\n", `entry "` + strings.Repeat("x", 5000) + `": the path is longer than 4096 bytes, which no kernel takes`},
		{header + "-- a --\n-- a --\n", `entry "a": its path is there twice`},
		{header + "-- a --\n-- a !EIO --\n", `entry "a !EIO": its path is there twice`},
		{header + "-- a -> b --\n-- a -> c --\n", `entry "a -> c": its path is there twice`},
		{header + "-- a --\n-- %61 --\n", `entry "%61": its path is there twice`},
		{header + "-- a --\n-- +0s/a --\n", `entry "+0s/a": its path is there twice`},
		{header + "-- +30s/a --\n-- +0.5m/a --\n", `entry "+0.5m/a": its path is there twice`},

		{header + "-- a --\n" + large + "\n", `entry "a": 1048577 bytes are more than 1048576`},
		{header + "-- a @base64 --\n" + base64.StdEncoding.EncodeToString([]byte(large+"x")) + "\n", `entry "a @base64": 1048577 bytes are more than 1048576`},
		{header + "-- a @hex --\n" + strings.Repeat("00", maxEntry+1) + "\n", `entry "a @hex": 1048577 bytes are more than 1048576`},

		{header + "-- a @zip --\n", `entry "a @zip": "@zip" is no mode; there are @base64, @hex, @nonl, @unread, @dir, @lines and @files`},
		{header + "-- a @Hex --\n", `entry "a @Hex": "@Hex" is no mode; there are @base64, @hex, @nonl, @unread, @dir, @lines and @files`},
		{header + "-- a @ --\n", `entry "a @": "@" is no mode; there are @base64, @hex, @nonl, @unread, @dir, @lines and @files`},
		{header + "-- a !EFOO --\n", `entry "a !EFOO": "EFOO" is no errno`},
		{header + "-- a ! --\n", `entry "a !": "" is no errno`},
		{header + "-- a !0 --\n", `entry "a !0": "0" is no errno`},
		{header + "-- a !4096 --\n", `entry "a !4096": "4096" is no errno`},
		{header + "-- a !einval --\n", `entry "a !einval": "einval" is no errno`},
		{header + "-- a @base64 --\n!\n", `entry "a @base64": illegal base64 data at input byte 0`},
		{header + "-- a @hex --\n0\n", `entry "a @hex": encoding/hex: odd length hex string`},
		{header + "-- a @hex --\nzz\n", `entry "a @hex": encoding/hex: invalid byte: U+007A 'z'`},
		{header + "-- a% --\n", `entry "a%": "a%": a % is followed by two hexadecimal digits`},
		{header + "-- a%2 --\n", `entry "a%2": "a%2": a % is followed by two hexadecimal digits`},
		{header + "-- a%zz --\n", `entry "a%zz": "a%zz": a % is followed by two hexadecimal digits`},
		{header + "-- a%+1 --\n", `entry "a%+1": "a%+1": a % is followed by two hexadecimal digits`},
		{header + "-- a -> %zz --\n", `entry "a -> %zz": "%zz": a % is followed by two hexadecimal digits`},

		{header + "-- a -> b --\ntext\n", `entry "a -> b": such an entry has no content`},
		{header + "-- a !EIO --\ntext\n", `entry "a !EIO": such an entry has no content`},
		{header + "-- a @dir --\ntext\n", `entry "a @dir": such an entry has no content`},
		{header + "-- a @unread --\ntext\n", `entry "a @unread": such an entry has no content`},

		{header + "-- a @files --\nb 1\n", `entry "a @files": "b 1\n": a file is NAME: LINE`},
		{header + "-- a @files --\n../b: 1\n", `entry "a @files": "../b: 1\n": a file is NAME: LINE`},
		{header + "-- a @files --\n..: 1\n", `entry "a @files": "..: 1\n": a file is NAME: LINE`},
		{header + "-- a @files --\nb: 1\n-- a/b --\n", `entry "a/b": its path is there twice`},
		{header + "-- a @files --\nb: 1\nb: 2\n", `entry "a @files": its path is there twice`},
		{header + "-- ../a @files --\nb: 1\n", `entry "../a @files": ` + outside},
		{header + "-- a --\n-- a @files --\nb: 1\n", `entry "a/b": lies below "a", ` + below},
		{header + "-- a @lines --\nb: 1\n", `entry "a": @lines changes a file, and there is none in the round before`},
		{header + "-- a -> b --\n-- +15s/a @lines --\nb: 1\n", `entry "a": @lines changes a file, and there is none in the round before`},
		{header + "-- a --\nb: 1\n-- +15s/a !ENOENT --\n-- +30s/a @lines --\nb: 1\n", `entry "a": @lines changes a file, and there is none in the round before`},

		{meta(`{"version":1,"base":"b","rounds":["0s"]}`), variant("b")},
		{meta(`{"version":2,"base":"../b","rounds":["0s"]}`), variant("../b")},
		{meta(`{"version":2,"base":".","rounds":["0s"]}`), variant(".")},

		{header + "-- +15s --\n", `entry "+15s": a round's entry is +DURATION/PATH`},
		{header + "-- +15x/a --\n", `entry "+15x/a": time: unknown unit "x" in duration "15x"`},
		{header + "-- +/a --\n", `entry "+/a": time: invalid duration ""`},
		{header + "-- +45s/a --\n", `entry "+45s/a": 45s is not one of the rounds in capture.json`},
		{header + "-- +-15s/a --\n", `entry "+-15s/a": -15s is not one of the rounds in capture.json`},
	} {
		a, err := Parse([]byte(c.text))
		name := strings.TrimPrefix(c.text, header)
		name = name[:min(len(name), 80)]
		switch {
		case err == nil:
			t.Errorf("%q was taken", name)
		case err.Error() != c.want:
			t.Errorf("%q:\n%s\nwant\n%s", name, err, c.want)
		case a != nil:
			t.Errorf("%q: an archive came with the error", name)
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
		"-- a --\n" + strings.Repeat("x", maxEntry-1) + "\n",
	} {
		if _, err := Parse([]byte(header + text)); err != nil {
			t.Error(err)
		}
	}
}
