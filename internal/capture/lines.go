package capture

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"rdma_exporter/internal/capture/answer"
)

// The text is kept short. Files of one line are combined by directory, and of a file with named lines only changed
// lines are repeated.

// unfolded returns the files of an @files entry, or the entry itself.
func unfolded(e Entry) ([]Entry, error) {
	if e.Kind != oneLiners {
		return []Entry{e}, nil
	}
	var out []Entry
	for line := range bytes.Lines(e.Data) {
		name, value, ok := bytes.Cut(line, []byte(": "))
		if !ok || !oneFile(string(name)) {
			return nil, fmt.Errorf("%q: files are written as NAME: LINE", line)
		}
		out = append(out, Entry{Path: e.Path + "/" + string(name), Data: value})
	}
	return out, nil
}

// folded combines files of one line in directories with two or more of them. Input and output are sorted.
func folded(entries []Entry) []Entry {
	count := map[string]int{}
	for _, e := range entries {
		if foldable(e) {
			count[path.Dir(e.Path)]++
		}
	}
	at := map[string]int{}
	var out []Entry
	for _, e := range entries {
		dir := path.Dir(e.Path)
		if !foldable(e) || count[dir] < 2 {
			out = append(out, e)
			continue
		}
		i, ok := at[dir]
		if !ok {
			i = len(out)
			at[dir] = i
			out = append(out, Entry{Path: dir, Kind: oneLiners})
		}
		out[i].Data = fmt.Appendf(out[i].Data, "%s: %s", path.Base(e.Path), e.Data)
	}
	return out
}

// foldable reports whether an entry is a file of one line that can be combined. Lines with blanks at an end are not:
// editors strip them.
func foldable(e Entry) bool {
	line, ok := bytes.CutSuffix(e.Data, []byte("\n"))
	return e.Kind == File && ok && len(line) > 0 && !bytes.Contains(line, []byte("\n")) &&
		len(bytes.TrimSpace(line)) == len(line) &&
		isText(e.Data) && path.Dir(e.Path) != "." && oneFile(path.Base(e.Path))
}

// oneFile reports whether a name can precede the colon unescaped: printable ASCII without blanks.
func oneFile(name string) bool {
	return name != "" && name != "." && name != ".." &&
		!strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' || r == '%' })
}

// shortened reduces the entries of a round to changed lines where possible. before is the machine in the previous round
// and is advanced to this one.
func shortened(before map[string]Entry, entries []Entry) []Entry {
	out := make([]Entry, len(entries))
	for i, e := range entries {
		out[i] = Shortest(before[e.Path], e)
	}
	for _, e := range entries {
		Advance(before, e)
	}
	return out
}

// lengthen expands entries with changed lines to whole files.
func lengthen(rounds []Round) error {
	before := map[string]Entry{}
	for _, r := range rounds {
		for i := range r.Entries {
			e := &r.Entries[i]
			if e.Kind == Lines {
				old, ok := before[e.Path]
				if !ok || old.Kind != File {
					return fmt.Errorf("entry %q: %w", e.Path, errNoFile)
				}
				e.Kind, e.Data = File, patched(old, e.Data)
			}
		}
		for _, e := range r.Entries {
			Advance(before, e)
		}
	}
	return nil
}

var errNoFile = errors.New("@lines requires a file in the previous round")

// Advance applies an entry to a machine.
func Advance(machine map[string]Entry, e Entry) {
	if !e.IsGone() {
		machine[e.Path] = e
		return
	}
	maps.DeleteFunc(machine, func(p string, _ Entry) bool { return IsBelow(p, e.Path) })
}

// lineGone ends a line of a Lines entry if the variant lacks a line of its base.
const lineGone = " !ENOENT"

// Shortest returns the entry, or only its changed lines if that is shorter and restores the same content.
func Shortest(have, e Entry) Entry {
	if e.Kind != File || have.Kind != File || !isText(e.Data) {
		return e
	}
	lines := changedLines(have.Data, e.Data)
	if len(lines) == 0 || len(lines)*2 > len(e.Data) || !isText(lines) || !bytes.Equal(patched(have, lines), e.Data) {
		return e
	}
	return Entry{Path: e.Path, Kind: Lines, Data: lines}
}

// changedLines returns the lines of now that differ from before, and the names of removed ones.
func changedLines(before, now []byte) []byte {
	old := map[string]string{}
	for line := range strings.Lines(string(before)) {
		old[lineName(line)] = line
	}
	var out []byte
	for line := range strings.Lines(string(now)) {
		name := lineName(line)
		if old[name] != line {
			out = append(out, line...)
		}
		delete(old, name)
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		out = append(out, name+lineGone+"\n"...)
	}
	return out
}

// lineName returns the part before ": ".
func lineName(line string) string {
	line = strings.TrimSuffix(line, "\n")
	if name, ok := strings.CutSuffix(line, lineGone); ok {
		return name
	}
	name, _, _ := answer.SplitLine(line)
	return name
}

// patched returns the content of an entry with lines replaced, removed or appended.
func patched(e Entry, lines []byte) []byte {
	change := map[string]string{}
	var names []string
	for line := range strings.Lines(string(lines)) {
		name := lineName(line)
		if _, twice := change[name]; !twice {
			names = append(names, name)
		}
		change[name] = line
	}
	var out []byte
	put := func(line string) {
		if e.Kind == Lines || !strings.HasSuffix(line, lineGone+"\n") {
			out = append(out, line...)
		}
	}
	for line := range strings.Lines(string(e.Data)) {
		name := lineName(line)
		now, ok := change[name]
		if !ok {
			now = line
		}
		put(now)
		delete(change, name)
	}
	for _, name := range names {
		if line, ok := change[name]; ok {
			put(line)
		}
	}
	return out
}
