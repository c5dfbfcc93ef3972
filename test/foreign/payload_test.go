// Package foreign_test plays machines of which every text from outside the program is hostile, and scans what commands,
// pages, metrics, logs and alerts make of it.
package foreign_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
)

// marks are the hostile texts by the name of their field, and what has been seen of them.
type marks struct {
	mu     sync.Mutex
	names  []string // by the number of the mark
	number map[string]int
	seen   map[string]bool
	whole  string // a list of more that has no more elements
	// A harmless text for all fields in place of hostile ones, in one of several ways by the number of the field; empty:
	// hostile texts.
	inert string
	turn  map[string]int
}

func newMarks() *marks { return &marks{number: map[string]int{}, seen: map[string]bool{}} }

func (m *marks) of(name string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.number[name]
	if !ok {
		n = len(m.names)
		m.number[name], m.names = n, append(m.names, name)
	}
	return n
}

// payload returns the hostile text of a field: its mark, a line of its own that claims to be a remedy, sequences for
// terminals, marks of text direction, and what shells, pages and chats interpret.
func (m *marks) payload(name string) string {
	if m.inert != "" {
		m.of(name)
		return " " + m.inert
	}
	return payload(m.of(name)) + "\x1b[8m\a\u202e\u009b1m\r\t<!channel>\"><b>&amp;"
}

// nodeName returns a hostile text of at most 63 bytes that RDMA devices may have as their name.
func (m *marks) nodeName(name string) string { return payload(m.of(name)) + "\x1b[8m\u202e" }

// printable returns a hostile text without control characters, for fields that reject these.
func (m *marks) printable(name string) string {
	return strings.Replace(payload(m.of(name)), "\n", " ", 1)
}

func payload(n int) string {
	return fmt.Sprintf("Zq%dq\nfq%dq$(iq%dq)`iq%dq`';iq%dq;'<script>", n, n, n, n, n)
}

// short returns a hostile text of at most 15 bytes without blanks and colons, as the kernel allows it for interfaces.
func (m *marks) short(name string) string {
	if m.inert != "" {
		return m.inert
	}
	return fmt.Sprintf("Zq%dq\x1b`iq%dq`", m.of(name), m.of(name))
}

var (
	mark   = regexp.MustCompile(`Zq([0-9]+)q`)
	forged = regexp.MustCompile(`fq([0-9]+)q`)
)

// scan wants of a text that people or terminals get: no character that a terminal obeys, and no line that a hostile
// text begins.
func (m *marks) scan(t *testing.T, where, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsGraphic(r) }); i >= 0 {
			t.Errorf("%s: a terminal obeys %q in %s", where, line[i:min(len(line), i+8)], excerpt(line, i))
		}
		for _, at := range forged.FindAllStringSubmatchIndex(line, -1) {
			if number := line[at[2]:at[3]]; !strings.Contains(line[:at[0]], "Zq"+number+"q") {
				t.Errorf("%s: %s begins a line: %s", where, m.name(number), excerpt(line, at[0]))
			}
		}
		m.see(line)
	}
}

func (m *marks) see(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, found := range mark.FindAllStringSubmatch(text, -1) {
		m.seen[m.nameOf(found[1])] = true
	}
}

func (m *marks) name(number string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.nameOf(number)
}

func (m *marks) nameOf(number string) string {
	n := 0
	_, _ = fmt.Sscan(number, &n)
	if n >= len(m.names) {
		return "mark " + number
	}
	return m.names[n]
}

func excerpt(s string, at int) string { return fmt.Sprintf("%q", s[max(0, at-120):min(len(s), at+60)]) }

// scanJSON wants the same of each text in a document, and of commands among them that a shell takes names as one word.
func (m *marks) scanJSON(t *testing.T, where, text string) {
	t.Helper()
	if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) && r != '\n' }); i >= 0 {
		t.Errorf("%s: a terminal obeys %s", where, excerpt(text, i))
	}
	if i := strings.Index(text, "error expanding"); i >= 0 {
		t.Errorf("%s: a template fails: %s", where, excerpt(text, i+200))
	}
	d := json.NewDecoder(strings.NewReader(text))
	for d.More() {
		var v any
		if err := d.Decode(&v); err != nil {
			t.Errorf("%s: %v", where, err)
			return
		}
		m.scanValue(t, where, v)
	}
}

func (m *marks) scanValue(t *testing.T, where string, v any) {
	t.Helper()
	switch v := v.(type) {
	case string:
		m.scan(t, where, v)
		if slices.ContainsFunc(commandKeys, func(key string) bool { return strings.HasSuffix(where, key) }) {
			m.scanShell(t, where, v)
		}
	case []any:
		for _, e := range v {
			m.scanValue(t, where+"[]", e)
		}
	case map[string]any:
		for key, e := range v {
			m.scan(t, where+" key", key)
			m.scanValue(t, where+"."+mark.ReplaceAllString(key, "KEY"), e)
		}
	}
}

// commandKeys are the fields with commands for a shell.
var commandKeys = []string{".settings[].remedy", ".diagnose"}

// scanShell wants that a shell takes each hostile text of a command as one word, from its mark on, and executes nothing
// of it.
func (m *marks) scanShell(t *testing.T, where, command string) {
	t.Helper()
	if !mark.MatchString(command) {
		return
	}
	words, err := shellWords(command)
	if err != nil {
		t.Errorf("%s: %v: %q", where, err, command)
		return
	}
	for _, w := range words {
		for _, at := range canary.FindAllStringSubmatchIndex(w.text, -1) {
			number := w.text[at[2]:at[3]]
			if !strings.Contains(w.text[:at[0]], "Zq"+number+"q") || w.executes {
				t.Errorf("%s: a shell executes %s: %q", where, m.name(number), command)
				return
			}
		}
	}
}

// canary is the command in hostile texts.
var canary = regexp.MustCompile(`iq([0-9]+)q`)

type shellWord struct {
	text     string
	executes bool // has a substitution
}

// shellWords returns the words of a POSIX shell, 2.2 and 2.3 of its command language; operators end words.
func shellWords(command string) (out []shellWord, err error) {
	var w shellWord
	quote := rune(0)
	escaped := false
	end := func() {
		if w.text != "" {
			out = append(out, w)
		}
		w = shellWord{}
	}
	for _, r := range command {
		switch {
		case escaped:
			escaped = false
			w.text += string(r)
		case r == '\\' && quote != '\'':
			escaped = true
		case quote == r:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote == 0 && strings.ContainsRune(" \t\n;|&<>()", r):
			end()
		default:
			w.executes = w.executes || quote != '\'' && (r == '`' || r == '$')
			w.text += string(r)
		}
	}
	if end(); quote != 0 || escaped {
		return out, fmt.Errorf("%c is not closed", quote)
	}
	return out, nil
}

// scanHTML wants that a browser takes hostile texts as text, and the same as of others.
func (m *marks) scanHTML(t *testing.T, where, body string) {
	t.Helper()
	for _, live := range []string{"'<script>", "\"><b>", "<!channel>"} {
		if i := strings.Index(body, live); i >= 0 {
			t.Errorf("%s: %s", where, excerpt(body, i))
		}
	}
	m.scan(t, where, strings.ReplaceAll(body, "\t", " "))
}

// TestScan: the scans find what they are for.
func TestScan(t *testing.T) {
	m := newMarks()
	text := m.payload("x")
	for _, c := range []struct {
		command string
		good    bool
	}{
		{"ls Zq0q", true},
		{"ls " + text, false},
		{"ls '" + text + "'", false},
		{`ls "` + strings.ReplaceAll(text, `"`, "") + `"`, false},
		{"ls '" + strings.ReplaceAll(text, "'", `'\''`) + "' | cat", true},
		{"ls Zq0q%0Afq0q%24%28iq0q%29", true},
		{"ls Zq0q iq0q", false},
		{"ls 'Zq0q", false},
	} {
		if bad := failing(func(t *testing.T) { m.scanShell(t, "", c.command) }); bad == c.good {
			t.Errorf("%q: found %v", c.command, bad)
		}
	}
	for text, good := range map[string]bool{
		"a Zq0q\ufffdfq0q b": true, "Zq0q\n  fq0q": false, "\x1b": false, "\u202e": false, "\u009b": false, "\r": false,
	} {
		if bad := failing(func(t *testing.T) { m.scan(t, "", text) }); bad == good {
			t.Errorf("%q: found %v", text, bad)
		}
	}
}

func failing(f func(*testing.T)) bool {
	var probe testing.T
	f(&probe)
	return probe.Failed()
}
