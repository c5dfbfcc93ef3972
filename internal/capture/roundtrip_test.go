package capture_test

import (
	"bytes"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/words"
	"rdma_exporter/test/archives"
)

func TestKindsOfEntries(t *testing.T) {
	for _, c := range []struct {
		text      string // an entry as an editor may write it
		want      capture.Entry
		canonical string // as Format writes it, if different
	}{
		{"-- a/b --\ntext\n", capture.Entry{Path: "a/b", Data: []byte("text\n")}, ""},
		{"-- a --\n", capture.Entry{Path: "a"}, ""},
		{"-- a --\n\n", capture.Entry{Path: "a", Data: []byte("\n")}, ""},
		{"-- a --\ntab\tand é\nlines\n", capture.Entry{Path: "a", Data: []byte("tab\tand é\nlines\n")}, ""},
		{"-- a @nonl --\ntext\n", capture.Entry{Path: "a", Data: []byte("text")}, ""},
		{"-- a @nonl --\nline\ntext\n", capture.Entry{Path: "a", Data: []byte("line\ntext")}, ""},
		{"-- a @base64 --\nAAEC/w==\n", capture.Entry{Path: "a", Data: []byte{0, 1, 2, 255}}, ""},
		{"-- a @base64 --\nAAEC\n  /w==\n", capture.Entry{Path: "a", Data: []byte{0, 1, 2, 255}}, "-- a @base64 --\nAAEC/w==\n"},
		{"-- a @hex --\n00 01\n02ff\n", capture.Entry{Path: "a", Data: []byte{0, 1, 2, 255}}, "-- a @base64 --\nAAEC/w==\n"},
		{"-- a @hex --\n74 0a\n", capture.Entry{Path: "a", Data: []byte("t\n")}, "-- a --\nt\n"},
		{"-- a @base64 --\nLS0gYiAtLQo=\n", capture.Entry{Path: "a", Data: []byte("-- b --\n")}, ""},
		{"-- a @base64 --\neAotLSBiIC0tCg==\n", capture.Entry{Path: "a", Data: []byte("x\n-- b --\n")}, ""},
		{"-- a @base64 --\nDQo=\n", capture.Entry{Path: "a", Data: []byte("\r\n")}, ""},
		// What a terminal interprets, of capture -o -: marks of text direction, CSI of C1.
		{"-- a @base64 --\neOKArnkK\n", capture.Entry{Path: "a", Data: []byte("x\u202ey\n")}, ""},
		{"-- a @base64 --\nwpsybQo=\n", capture.Entry{Path: "a", Data: []byte("\u009b2m\n")}, ""},
		{"-- a --\nx\u202ey\n", capture.Entry{Path: "a", Data: []byte("x\u202ey\n")}, "-- a @base64 --\neOKArnkK\n"},
		{"-- a @unread --\n", capture.Entry{Path: "a", Kind: capture.Unread}, ""},
		{"-- a @dir --\n", capture.Entry{Path: "a", Kind: capture.Dir}, ""},
		{"-- a !EINVAL --\n", capture.Entry{Path: "a", Kind: capture.Error, Errno: syscall.EINVAL}, ""},
		{"-- a !ENOENT --\n", capture.Entry{Path: "a", Kind: capture.Error, Errno: syscall.ENOENT}, ""},
		{"-- a !EOPNOTSUPP --\n", capture.Entry{Path: "a", Kind: capture.Error, Errno: syscall.EOPNOTSUPP}, "-- a !ENOTSUP --\n"},
		{"-- a !EWOULDBLOCK --\n", capture.Entry{Path: "a", Kind: capture.Error, Errno: syscall.EAGAIN}, "-- a !EAGAIN --\n"},
		{"-- a !524 --\n", capture.Entry{Path: "a", Kind: capture.Error, Errno: 524}, ""}, // ENOTSUPP, kernel-internal, returned by some drivers
		{"-- a/b -> ../c --\n", capture.Entry{Path: "a/b", Kind: capture.Link, Target: "../c"}, ""},
		{"-- a b -> c d --\n", capture.Entry{Path: "a b", Kind: capture.Link, Target: "c d"}, ""},
		{"-- hw_counters/RNR sent --\n1\n", capture.Entry{Path: "hw_counters/RNR sent", Data: []byte("1\n")}, ""},
		{"-- SwLinkDown,32 --\n1\n", capture.Entry{Path: "SwLinkDown,32", Data: []byte("1\n")}, ""},
		{"-- 0000:15:01.0 --\n", capture.Entry{Path: "0000:15:01.0"}, ""},
		{"-- a@b!c --\n", capture.Entry{Path: "a@b!c"}, ""},
		{"-- a%20!EINVAL --\n", capture.Entry{Path: "a !EINVAL"}, ""},
		{"-- a%20@dir --\n", capture.Entry{Path: "a @dir"}, ""},
		{"-- a%20-> b --\n", capture.Entry{Path: "a -> b"}, ""},
		{"-- %2B15s/a --\n", capture.Entry{Path: "+15s/a"}, ""},
		{"-- %20a%20 --\n", capture.Entry{Path: " a "}, ""},
		{"-- %25%0A%FF --\n", capture.Entry{Path: "%\n\xff"}, ""},
		{"-- é --\n", capture.Entry{Path: "é"}, "-- %C3%A9 --\n"},
	} {
		a := archives.Parse(t, archives.Header+c.text)
		if len(a.Rounds) != 3 || len(a.Rounds[0].Entries) != 1 {
			t.Errorf("%q: %+v", c.text, a.Rounds)
			continue
		}
		if got := a.Rounds[0].Entries[0]; got.Path != c.want.Path || !got.Equal(c.want) {
			t.Errorf("%q: %+v, want %+v", c.text, got, c.want)
		}
		want := c.canonical
		if want == "" {
			want = c.text
		}
		if got := archives.Format(t, a); got != archives.Header+want {
			t.Errorf("%q is written as %q", c.text, strings.TrimPrefix(got, archives.Header))
		}
	}
}

func TestLongBase64IsFoldedAndRead(t *testing.T) {
	data := make([]byte, entryLimit)
	for i := range data {
		data[i] = byte(i * 7)
	}
	a := &capture.Archive{
		Meta:   capture.Meta{Version: capture.Version},
		Rounds: []capture.Round{{Entries: []capture.Entry{{Path: "a", Data: data}}}},
	}
	text := archives.Format(t, a)
	for line := range strings.Lines(text) {
		if len(line) > 77 {
			t.Fatalf("a line of %d bytes", len(line))
		}
	}
	if got := archives.Parse(t, text).Rounds[0].Entries[0].Data; !bytes.Equal(got, data) {
		t.Errorf("%d bytes came back", len(got))
	}
}

func TestRoundsAndMeta(t *testing.T) {
	a := archives.Parse(t, archives.Header+"-- b --\n-- +15s/a --\n1\n-- +15s/b !ENOENT --\n-- +0.5m/a --\n2\n-- a --\n0\n")
	if a.Meta.Hostname != "gpu-1" || a.Meta.Kernel != "6.12.0" || !a.Meta.Time.Equal(archives.Start) {
		t.Errorf("%+v", a.Meta)
	}
	var got []string
	for _, r := range a.Rounds {
		for _, e := range r.Entries {
			got = append(got, r.At.String()+" "+e.Path)
		}
	}
	if want := []string{"0s a", "0s b", "15s a", "15s b", "30s a"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	want := archives.Header + "-- a --\n0\n-- b --\n-- +15s/a --\n1\n-- +15s/b !ENOENT --\n-- +30s/a --\n2\n"
	archives.Differ(t, archives.Format(t, a), want)
}

func TestFormatLeavesTheArchiveAlone(t *testing.T) {
	rounds := []string{"0s", "1m0s", "kept"}
	a := &capture.Archive{
		Meta:   capture.Meta{Version: 1, Rounds: rounds[:2]},
		Rounds: []capture.Round{{}, {At: time.Second}, {At: time.Minute}},
	}
	archives.Format(t, a)
	if !slices.Equal(rounds, []string{"0s", "1m0s", "kept"}) {
		t.Errorf("%q", rounds)
	}
}

// TestNothingIsObeyedOfArchives: what a host, its files and its answers hold comes back, and a terminal that shows the
// archive obeys nothing of it.
func TestNothingIsObeyedOfArchives(t *testing.T) {
	const evil = "x\x1b[2J\a\r\u202ey\u009b1m\u2028\U000e0001 é"
	a := &capture.Archive{
		Meta: capture.Meta{
			Version: capture.Version, Hostname: evil, Kernel: evil, Time: archives.Start, LeftOut: []string{evil},
		},
		Rounds: []capture.Round{{Entries: []capture.Entry{
			{Path: "a/" + evil, Data: []byte(evil)},
			{Path: "b", Kind: capture.Link, Target: evil},
			{Path: "c/d", Data: []byte("U+202E: \u202e\n")},
			{Path: "c/e", Data: []byte("U+0085: \u0085\n")},
			{Path: "processes/7", Data: answer.Encode(accel.Process{Command: evil, Env: map[string]string{"NCCL_" + evil: evil}})},
		}}},
	}
	text := archives.Format(t, a)
	for _, r := range text {
		if words.IsHidden(r) {
			t.Errorf("%U in %q", r, text)
		}
	}
	b := archives.Parse(t, text)
	if !sameArchive(a, b) || b.Meta.LeftOut[0] != evil {
		t.Errorf("%+v\nbecame\n%+v", a, b)
	}
}

func sameArchive(a, b *capture.Archive) bool {
	return slices.EqualFunc(a.Rounds, b.Rounds, func(x, y capture.Round) bool {
		return x.At == y.At &&
			slices.EqualFunc(x.Entries, y.Entries, func(e, f capture.Entry) bool { return e.Path == f.Path && e.Equal(f) })
	}) && a.Meta.Version == b.Meta.Version && a.Meta.Hostname == b.Meta.Hostname && a.Meta.Time.Equal(b.Meta.Time) &&
		a.Meta.Kernel == b.Meta.Kernel && a.Meta.Anonymised == b.Meta.Anonymised &&
		slices.Equal(a.Meta.Capabilities, b.Meta.Capabilities)
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", archives.Header,
		archives.Header + "-- a/b --\ntext\n-- a/c -> b --\n-- d !EIO --\n-- e @hex --\n00ff\n-- f @nonl --\nx\n-- g @dir --\n-- h @unread --\n",
		archives.Header + "-- a --\n1\n-- +15s/a !ENOENT --\n-- +15s/a/b --\n2\n",
		archives.Header + "-- a%20!EIO --\n\x00\n-- %2B15s/%C3 @base64 --\nAAE=\n",
		archives.Header + "-- a ! --\n-- a !524 --\n-- +0s/a --\n",
		"-- capture.json --\n{\"version\":1,\"rounds\":[\"0s\",\"1ns\",\"1h\"]}\n-- +1h/rdma/mlx5_0/1/stats --\na: 1\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := capture.Parse(data)
		if err != nil {
			if a != nil || err.Error() == "" {
				t.Fatalf("%v, %v", a, err)
			}
			return
		}
		text := archives.Format(t, a)
		b, err := capture.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !sameArchive(a, b) {
			t.Fatalf("%+v\nbecame\n%+v", a, b)
		}
		archives.Differ(t, archives.Format(t, b), text)
	})
}
