// Package capture is the archive format of a machine: everything that the collectors read on it as one text file that a
// person can read and diff. It writes archives, plays them as if they were the machine, and replaces names and addresses.
package capture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/tools/txtar"

	"rdma_exporter/internal/host"
)

// Version is the format that this program writes and the newest that it reads. Version 1 has no base, @lines and @files.
const Version = 2

// maxEntry bounds one entry's content.
const maxEntry = 1 << 20

// maxPaths bounds the files and directories that a replay makes, a page of memory each; a machine with 256 ports has 50,000.
const maxPaths = 1 << 18

const metaName = "capture.json"

// Meta describes a capture: its first entry, capture.json.
type Meta struct {
	Version      int       `json:"version"`
	Base         string    `json:"base"`         // of a variant: the name of the archive that it differs from
	Hostname     string    `json:"hostname"`     // where a variant has none of this and the following three, they are its base's
	Kernel       string    `json:"kernel"`       // proc/sys/kernel/osrelease
	Time         time.Time `json:"time"`         // of the first round
	Capabilities []string  `json:"capabilities"` // effective ones of the capturing process
	Anonymised   bool      `json:"anonymised"`
	Rounds       []string  `json:"rounds"` // offsets from Time: "0s", "15s", …
}

// Archive is one machine over one or more rounds.
type Archive struct {
	Meta   Meta
	Rounds []Round
}

// Round is a reading of the machine. The first holds all, each later one what changed.
type Round struct {
	At      time.Duration
	Entries []Entry // sorted by path
}

// configPath is the entry of the exporter's configuration file. It is no path of the machine.
const configPath = "exporter/config.yml"

// Config is the configuration file that was in force on the machine, nil if there was none.
func (a *Archive) Config() []byte {
	for _, e := range a.Rounds[0].Entries {
		if e.Path == configPath && e.Kind == File {
			return e.Data
		}
	}
	return nil
}

// SetConfig puts a configuration file into the archive; nil takes it out.
func (a *Archive) SetConfig(b []byte) {
	a.Put(configPath, b)
}

// Put puts something of the exporter's own into the first round, in the place of what is there; nil takes it out.
func (a *Archive) Put(name string, b []byte) {
	entries := slices.DeleteFunc(a.Rounds[0].Entries, func(e Entry) bool { return e.Path == name })
	if b != nil {
		i, _ := slices.BinarySearchFunc(entries, name, func(e Entry, p string) int { return strings.Compare(e.Path, p) })
		entries = slices.Insert(entries, i, Entry{Path: name, Data: b})
	}
	a.Rounds[0].Entries = entries
}

// Kind says what an entry stands for.
type Kind uint8

// The kinds of entries.
const (
	File      Kind = iota // Data is its content
	Link                  // Target is its relative target
	Error                 // reading it fails with Errno; ENOENT: gone in this round, with all below it
	Unread                // exists, its content was not read
	Dir                   // an empty directory
	Lines                 // Data are the lines of a file that differ from those before; in an archive that was parsed, of variants only
	oneLiners             // Data are the files of a directory that are one line each, "NAME: LINE"; in the text only
)

// Entry is a path of a machine in a round.
type Entry struct {
	Path   string
	Kind   Kind
	Data   []byte
	Target string
	Errno  syscall.Errno
}

func (e Entry) equal(o Entry) bool {
	return e.Kind == o.Kind && e.Target == o.Target && e.Errno == o.Errno && bytes.Equal(e.Data, o.Data)
}

func goneEntry(p string) Entry { return Entry{Path: p, Kind: Error, Errno: syscall.ENOENT} }

// isGone says whether the entry stands for a path that went, with all below it.
func (e Entry) isGone() bool { return e.Kind == Error && e.Errno == syscall.ENOENT }

// Parse reads an archive. The error names the entry, what is wrong with it, and is the only result of a bad archive.
func Parse(data []byte) (*Archive, error) {
	t := txtar.Parse(data)
	if len(t.Files) == 0 || t.Files[0].Name != metaName {
		return nil, fmt.Errorf("not a capture: the first entry has to be %q", "-- "+metaName+" --")
	}
	a := &Archive{}
	if err := a.parseMeta(t.Files[0].Data); err != nil {
		return nil, fmt.Errorf("%s: %w", metaName, err)
	}
	type place struct {
		at   time.Duration
		path string
	}
	seen, paths, rounds := map[place]bool{}, map[string]bool{}, map[time.Duration]int{}
	for i, r := range a.Rounds {
		rounds[r.At] = i
	}
	for _, f := range t.Files[1:] {
		at, e, err := parseEntry(f.Name, f.Data)
		var entries []Entry
		if err == nil {
			entries, err = unfolded(e)
		}
		if err != nil {
			return nil, fmt.Errorf("entry %q: %w", f.Name, err)
		}
		i, ok := rounds[at]
		if !ok {
			return nil, fmt.Errorf("entry %q: %s is not one of the rounds in %s", f.Name, at, metaName)
		}
		for _, e := range entries {
			if seen[place{at, e.Path}] {
				return nil, fmt.Errorf("entry %q: its path is there twice", f.Name)
			}
			seen[place{at, e.Path}] = true
			for p := e.Path; p != "." && !paths[p]; p = path.Dir(p) {
				paths[p] = true
			}
			if len(paths) > maxPaths {
				return nil, fmt.Errorf("entry %q: more than %d files and directories: no machine has so many", f.Name, maxPaths)
			}
		}
		a.Rounds[i].Entries = append(a.Rounds[i].Entries, entries...)
	}
	for _, r := range a.Rounds {
		slices.SortFunc(r.Entries, func(x, y Entry) int { return strings.Compare(x.Path, y.Path) })
	}
	if a.IsVariant() {
		return a, nil // the rest is checked when it is on its base
	}
	if err := lengthen(a.Rounds); err != nil {
		return nil, err
	}
	if err := checkTree(a.Rounds); err != nil {
		return nil, err
	}
	return a, nil
}

// baseName is what the file of a base may be called, without .txtar: a name without a path.
var baseName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*$`)

func (a *Archive) parseMeta(data []byte) error {
	if err := json.Unmarshal(data, &a.Meta); err != nil {
		return err
	}
	if a.Meta.Version < 1 || a.Meta.Version > Version {
		return fmt.Errorf("version %d: this program reads 1 to %d", a.Meta.Version, Version)
	}
	if a.IsVariant() && (a.Meta.Version < Version || !baseName.MatchString(a.Meta.Base)) {
		return fmt.Errorf("base %q: a variant has version %d, and its base is named by small letters, digits, '-' and '.'", a.Meta.Base, Version)
	}
	if len(a.Meta.Rounds) == 0 {
		return errors.New("rounds: at least one is needed")
	}
	for i, s := range a.Meta.Rounds {
		at, err := time.ParseDuration(s)
		if err != nil {
			return fmt.Errorf("rounds: %w", err)
		}
		if i == 0 && at != 0 || i > 0 && at <= a.Rounds[i-1].At {
			return fmt.Errorf("rounds: %s: they start at 0s and rise", s)
		}
		a.Rounds = append(a.Rounds, Round{At: at})
	}
	return nil
}

// leadsOutside says whether a link at p is none that a replay could follow.
func leadsOutside(p, target string) bool {
	to := path.Join(path.Dir(p), target)
	return path.IsAbs(target) || to == ".." || strings.HasPrefix(to, "../")
}

func parseEntry(name string, data []byte) (at time.Duration, e Entry, err error) {
	if rest, ok := strings.CutPrefix(name, "+"); ok {
		offset, p, ok := strings.Cut(rest, "/")
		if !ok {
			return 0, e, errors.New("a round's entry is +DURATION/PATH")
		}
		if at, err = time.ParseDuration(offset); err != nil {
			return 0, e, err
		}
		name = p
	}
	var mode string
	if p, target, ok := strings.Cut(name, " -> "); ok {
		e = Entry{Path: p, Kind: Link, Target: target}
	} else if i := strings.LastIndexAny(name, "!@"); i > 0 && name[i-1] == ' ' {
		e.Path, mode = name[:i-1], name[i:]
	} else {
		e.Path = name
	}
	if e.Path, err = unescape(e.Path); err != nil {
		return 0, e, err
	}
	if e.Target, err = unescape(e.Target); err != nil {
		return 0, e, err
	}
	if !host.Clean(e.Path) {
		return 0, e, errors.New("the path has to be relative and stay inside")
	}
	if len(e.Path) > unix.PathMax {
		return 0, e, fmt.Errorf("the path is longer than %d bytes, which no kernel takes", unix.PathMax)
	}
	if e.Kind == Link {
		if leadsOutside(e.Path, e.Target) {
			return 0, e, errors.New("the link leads outside")
		}
	} else if err := e.setMode(mode, data); err != nil {
		return 0, e, err
	}
	if e.Kind != File && e.Kind != Lines && e.Kind != oneLiners && len(bytes.TrimSpace(data)) > 0 {
		return 0, e, errors.New("such an entry has no content")
	}
	if len(e.Data) > maxEntry {
		return 0, e, fmt.Errorf("%d bytes are more than %d", len(e.Data), maxEntry)
	}
	return at, e, nil
}

func (e *Entry) setMode(mode string, data []byte) (err error) {
	if name, ok := strings.CutPrefix(mode, "!"); ok {
		e.Kind = Error
		if e.Errno = errnoByName(name); e.Errno == 0 {
			return fmt.Errorf("%q is no errno", name)
		}
		return nil
	}
	switch mode {
	case "@unread":
		e.Kind = Unread
	case "@dir":
		e.Kind = Dir
	case "":
		e.Data = data
	case "@lines":
		e.Kind, e.Data = Lines, data
	case "@files":
		e.Kind, e.Data = oneLiners, data
	case "@nonl":
		e.Data = bytes.TrimSuffix(data, []byte("\n"))
	case "@base64":
		e.Data, err = decodeBase64(data)
	case "@hex":
		e.Data, err = decodeHex(data)
	default:
		return fmt.Errorf("%q is no mode; there are @base64, @hex, @nonl, @unread, @dir, @lines and @files", mode)
	}
	return err
}

// checkTree refuses what would be written through a link, or below a file, of its own round or an earlier one. Entries are
// sorted, so that what goes in a round comes before what takes its place. What cannot be read may be a directory.
func checkTree(rounds []Round) error {
	set, gone := map[string]int{}, map[string]int{} // when a path last became no directory, and when it last went
	now := 0
	for _, r := range rounds {
		for _, e := range r.Entries {
			now++
			switch {
			case e.isGone():
				gone[e.Path] = now
				continue
			case e.Kind == Dir, e.Kind == Error:
				delete(set, e.Path)
			default:
				set[e.Path] = now
			}
		}
		for _, e := range r.Entries {
			if p := notDirectory(e.Path, set, gone); p != "" && !e.isGone() {
				return fmt.Errorf("entry %q: lies below %q, which is no directory", e.Path, p)
			}
		}
	}
	return nil
}

// notDirectory is the first path above p that is no directory.
func notDirectory(p string, set, gone map[string]int) string {
	latest := 0
	for i := range len(p) {
		if p[i] != '/' {
			continue
		}
		latest = max(latest, gone[p[:i]])
		if set[p[:i]] > latest {
			return p[:i]
		}
	}
	return ""
}

// errnoName is the name of an errno, or its number where Linux has no name: drivers let some of the kernel's own out.
func errnoName(e syscall.Errno) string {
	if name := unix.ErrnoName(e); name != "" {
		return name
	}
	return strconv.Itoa(int(e))
}

func errnoByName(name string) syscall.Errno {
	switch name {
	case "EOPNOTSUPP":
		return syscall.EOPNOTSUPP
	case "EWOULDBLOCK":
		return syscall.EWOULDBLOCK
	}
	if n, err := strconv.ParseUint(name, 10, 12); err == nil { // the kernel's errnos are below 4096
		return syscall.Errno(n)
	}
	for n := syscall.Errno(1); n < 134; n++ {
		if name != "" && unix.ErrnoName(n) == name {
			return n
		}
	}
	return 0
}
