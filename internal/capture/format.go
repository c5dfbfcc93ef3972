package capture

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/tools/txtar"

	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/words"
)

// Format writes an archive. Parse restores it unchanged.
func Format(a *Archive) ([]byte, error) {
	meta := a.Meta
	meta.Rounds = nil
	for _, r := range a.Rounds {
		meta.Rounds = append(meta.Rounds, r.At.String())
	}
	header, err := formatMeta(meta)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", metaName, err)
	}
	t := &txtar.Archive{Files: []txtar.File{{Name: metaName, Data: header}}}
	before := map[string]Entry{}
	for _, r := range a.Rounds {
		prefix := ""
		if r.At > 0 {
			prefix = "+" + r.At.String() + "/"
		}
		entries := r.Entries
		if !a.IsVariant() { // a variant is short already
			entries = shortened(before, entries)
		}
		for _, e := range folded(entries) {
			name, data := formatEntry(e)
			t.Files = append(t.Files, txtar.File{Name: prefix + name, Data: data})
		}
	}
	return txtar.Format(t), nil
}

// formatMeta writes one field per line, so that a hundred rounds are one line.
func formatMeta(m Meta) ([]byte, error) {
	b := []byte("{")
	for _, f := range []struct {
		name  string
		value any
		omit  bool
	}{
		{"version", m.Version, false},
		{"base", m.Base, m.Base == ""},
		{"hostname", m.Hostname, m.Hostname == "" && m.Base != ""},
		{"kernel", m.Kernel, m.Kernel == "" && m.Base != ""},
		{"time", m.Time, m.Time.IsZero() && m.Base != ""},
		{"capabilities", m.Capabilities, len(m.Capabilities) == 0},
		{"anonymised", m.Anonymised, !m.Anonymised},
		{"left_out", m.LeftOut, len(m.LeftOut) == 0},
		{"rounds", m.Rounds, false},
	} {
		if f.omit {
			continue
		}
		value, err := json.Marshal(f.value)
		if err != nil {
			return nil, err
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "\n  %q: %s", f.name, visible(value))
	}
	return append(b, "\n}\n"...), nil
}

// visible returns JSON with characters that a terminal would interpret escaped as \u. Marshal escapes only those below
// 0x20.
func visible(text []byte) string {
	var b strings.Builder
	for _, r := range string(text) {
		if !words.IsHidden(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// modes are the words after the path of entries that are no plain files.
var modes = map[Kind]string{Unread: "@unread", Dir: "@dir", Lines: "@lines", oneLiners: "@files"}

func formatEntry(e Entry) (name string, data []byte) {
	name = answer.Escape(e.Path)
	switch e.Kind {
	case Link:
		return name + " -> " + answer.Escape(e.Target), nil
	case Error:
		return name + " !" + errnoName(e.Errno), nil
	}
	switch mode, ok := modes[e.Kind]; {
	case ok:
		return name + " " + mode, e.Data
	case !isText(e.Data):
		return name + " @base64", encodeBase64(e.Data)
	case len(e.Data) > 0 && e.Data[len(e.Data)-1] != '\n':
		return name + " @nonl", append(bytes.Clone(e.Data), '\n')
	}
	return name, e.Data
}

// isText reports whether content needs no encoding: UTF-8 that a terminal shows as it is, and no line that looks like
// an entry.
func isText(b []byte) bool {
	if !utf8.Valid(b) || bytes.ContainsFunc(b, words.IsHidden) {
		return false
	}
	return !bytes.HasPrefix(b, []byte("-- ")) && !bytes.Contains(b, []byte("\n-- "))
}

func encodeBase64(b []byte) []byte {
	s := base64.StdEncoding.EncodeToString(b)
	var out []byte
	for len(s) > 76 {
		out = append(append(out, s[:76]...), '\n')
		s = s[76:]
	}
	return append(append(out, s...), '\n')
}

func decodeBase64(b []byte) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(b)), ""))
}

func decodeHex(b []byte) ([]byte, error) {
	return hex.DecodeString(strings.Join(strings.Fields(string(b)), ""))
}
