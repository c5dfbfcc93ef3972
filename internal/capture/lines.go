package capture

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// What a person reads is short: files of one line stand together by directory, and of a file whose lines have names only those
// that changed are written again.

// unfolded are the files of a directory that stand in one entry, or the entry itself.
func unfolded(e Entry) ([]Entry, error) {
	if e.Kind != oneLiners {
		return []Entry{e}, nil
	}
	var out []Entry
	for line := range bytes.Lines(e.Data) {
		name, value, ok := bytes.Cut(line, []byte(": "))
		if !ok || !oneFile(string(name)) {
			return nil, fmt.Errorf("%q: a file is NAME: LINE", line)
		}
		out = append(out, Entry{Path: e.Path + "/" + string(name), Data: value})
	}
	return out, nil
}

// folded puts files of one line together where a directory has two or more. The entries are sorted, and so are those returned.
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

// foldable reports whether an entry is a file of one line that can stand beside others. A line with blanks at its ends is left alone:
// editors take them away.
func foldable(e Entry) bool {
	line, ok := bytes.CutSuffix(e.Data, []byte("\n"))
	return e.Kind == File && ok && len(line) > 0 && !bytes.Contains(line, []byte("\n")) && len(bytes.TrimSpace(line)) == len(line) &&
		isText(e.Data) && path.Dir(e.Path) != "." && oneFile(path.Base(e.Path))
}

// oneFile reports whether a name can stand before the colon as it is: printable ASCII without blanks.
func oneFile(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' || r == '%' })
}

// shortened are the entries of a round with only those lines of a file that changed; before is the machine in the round before, and
// becomes that of this one.
func shortened(before map[string]Entry, entries []Entry) []Entry {
	out := make([]Entry, len(entries))
	for i, e := range entries {
		out[i] = shortest(before[e.Path], e)
	}
	for _, e := range entries {
		advance(before, e)
	}
	return out
}

// lengthen makes whole files of entries that hold the lines that changed.
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
			advance(before, e)
		}
	}
	return nil
}

var errNoFile = errors.New("@lines changes a file, and there is none in the round before")

// advance applies an entry to a machine.
func advance(machine map[string]Entry, e Entry) {
	if !e.isGone() {
		machine[e.Path] = e
		return
	}
	maps.DeleteFunc(machine, func(p string, _ Entry) bool { return isBelow(p, e.Path) })
}

// lineGone ends a line of a Lines entry whose name the base has and the variant has not.
const lineGone = " !ENOENT"

// shortest is the entry, or only its lines that differ from have where they are less and give the same content.
func shortest(have, e Entry) Entry {
	if e.Kind != File || have.Kind != File || !isText(e.Data) {
		return e
	}
	lines := changedLines(have.Data, e.Data)
	if len(lines) == 0 || len(lines)*2 > len(e.Data) || !isText(lines) || !bytes.Equal(patched(have, lines), e.Data) {
		return e
	}
	return Entry{Path: e.Path, Kind: Lines, Data: lines}
}

// changedLines are the lines of now that before has not, and the names that went.
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

// lineName is what stands before ": ", as in all answers that are lines.
func lineName(line string) string {
	line = strings.TrimSuffix(line, "\n")
	if name, ok := strings.CutSuffix(line, lineGone); ok {
		return name
	}
	name, _, _ := splitLine(line)
	return name
}

// patched is the content of an entry with some of its lines replaced, gone, or added at its end.
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
