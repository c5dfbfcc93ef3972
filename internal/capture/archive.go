// Package capture is the capture format: everything that the collectors read on a machine, as one text file that can be
// read and diffed. A variant is a capture that holds only what differs from another one, its base.
package capture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/tools/txtar"

	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/lazy"
)

// Version is the version written and the newest that can be read. Version 1 has no base, @lines and @files.
const Version = 2

// maxEntry limits the content of one entry.
const maxEntry = 1 << 20

// maxPaths limits the files and directories of a replay (one page of memory each). A machine with 256 ports has 50,000.
const maxPaths = 1 << 18

const metaName = "capture.json"

// Meta describes a capture. It is the first entry, capture.json.
type Meta struct {
	Version      int       `json:"version"`
	Base         string    `json:"base"`         // of a variant: name of the archive it is based on
	Hostname     string    `json:"hostname"`     // a variant without this and the next three fields has those of its base
	Kernel       string    `json:"kernel"`       // proc/sys/kernel/osrelease
	Time         time.Time `json:"time"`         // of the first round
	Capabilities []string  `json:"capabilities"` // effective capabilities of the capturing process
	Anonymised   bool      `json:"anonymised"`
	LeftOut      []string  `json:"left_out"` // files that an anonymised capture lacks; with InPart: fields of them
	Rounds       []string  `json:"rounds"`   // offsets from Time: "0s", "15s", …
}

// Archive is a recording of one machine over one or more rounds.
type Archive struct {
	Meta   Meta
	Rounds []Round
}

// Round is one reading of the machine. The first holds everything, later ones only changes.
type Round struct {
	At      time.Duration
	Entries []Entry // sorted by path
}

// Each calls visit with the entries of all rounds.
func (a *Archive) Each(visit func(e *Entry)) {
	for i := range a.Rounds {
		for j := range a.Rounds[i].Entries {
			visit(&a.Rounds[i].Entries[j])
		}
	}
}

// InPart follows the path of a file that is not left out as a whole.
const InPart = " (in part)"

// LeftOutCount returns the number of files that are missing in an anonymised capture, and of files that it has in part.
func (m Meta) LeftOutCount() (whole, partly int) {
	for _, s := range m.LeftOut {
		if strings.HasSuffix(s, InPart) {
			partly++
		} else {
			whole++
		}
	}
	return whole, partly
}

// ConfigPath is the entry of the exporter's configuration file. It is not a path of the machine.
const ConfigPath = "exporter/config.yml"

// Config returns the configuration file in use on the machine; nil if there was none.
func (a *Archive) Config() []byte {
	for _, e := range a.Rounds[0].Entries {
		if e.Path == ConfigPath && e.Kind == File {
			return e.Data
		}
	}
	return nil
}

// SetConfig adds or replaces the configuration file; nil removes it.
func (a *Archive) SetConfig(b []byte) {
	a.Put(ConfigPath, b)
}

// Put adds or replaces an entry of the exporter's own data in the first round; nil removes it.
func (a *Archive) Put(name string, b []byte) {
	entries := slices.DeleteFunc(a.Rounds[0].Entries, func(e Entry) bool { return e.Path == name })
	if b != nil {
		i, _ := slices.BinarySearchFunc(entries, name, func(e Entry, p string) int { return strings.Compare(e.Path, p) })
		entries = slices.Insert(entries, i, Entry{Path: name, Data: b})
	}
	a.Rounds[0].Entries = entries
}

// Kind is the type of an entry.
type Kind uint8

const (
	File      Kind = iota // Data is the content
	Link                  // Target is the relative target
	Error                 // reading fails with Errno; ENOENT: removed in this round, with everything below
	Unread                // exists, content not read
	Dir                   // an empty directory
	Lines                 // Data are the changed lines of a file; after parsing in variants only
	oneLiners             // Data are the files of one line in a directory, "NAME: LINE"; in the text only
)

// Entry is a path of a machine in a round.
type Entry struct {
	Path   string
	Kind   Kind
	Data   []byte
	Target string
	Errno  syscall.Errno
}

func (e Entry) Equal(o Entry) bool {
	return e.Kind == o.Kind && e.Target == o.Target && e.Errno == o.Errno && bytes.Equal(e.Data, o.Data)
}

func goneEntry(p string) Entry { return Entry{Path: p, Kind: Error, Errno: syscall.ENOENT} }

// IsGone reports whether the entry marks a path as removed, with everything below it.
func (e Entry) IsGone() bool { return e.Kind == Error && e.Errno == syscall.ENOENT }

// Parse parses an archive. An error names the entry and its fault; no archive is returned with it.
func Parse(data []byte) (*Archive, error) {
	t := txtar.Parse(data)
	if len(t.Files) == 0 || t.Files[0].Name != metaName {
		return nil, fmt.Errorf("not a capture: the first entry is not %q", "-- "+metaName+" --")
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
				return nil, fmt.Errorf("entry %q: duplicate path", f.Name)
			}
			seen[place{at, e.Path}] = true
			for p := e.Path; p != "." && !paths[p]; p = path.Dir(p) {
				paths[p] = true
			}
			if len(paths) > maxPaths {
				return nil, fmt.Errorf("entry %q: too many files and directories (limit %d)", f.Name, maxPaths)
			}
		}
		a.Rounds[i].Entries = append(a.Rounds[i].Entries, entries...)
	}
	for _, r := range a.Rounds {
		slices.SortFunc(r.Entries, func(x, y Entry) int { return strings.Compare(x.Path, y.Path) })
	}
	if a.IsVariant() {
		return a, nil // the remaining checks need the base
	}
	if err := lengthen(a.Rounds); err != nil {
		return nil, err
	}
	if err := checkTree(a.Rounds); err != nil {
		return nil, err
	}
	return a, nil
}

// baseName is a valid name of a base, without .txtar and without a path.
var baseName = lazy.Regexp(`^[a-z0-9][a-z0-9.-]*$`)

func (a *Archive) parseMeta(data []byte) error {
	if err := json.Unmarshal(data, &a.Meta); err != nil {
		return err
	}
	if a.Meta.Version < 1 || a.Meta.Version > Version {
		return fmt.Errorf("version %d is not supported, only 1 to %d", a.Meta.Version, Version)
	}
	if a.IsVariant() && (a.Meta.Version < Version || !baseName().MatchString(a.Meta.Base)) {
		return fmt.Errorf("base %q: a variant requires version %d and a base name of lower case letters, digits, '-' and '.'",
			a.Meta.Base, Version)
	}
	if len(a.Meta.Rounds) == 0 {
		return errors.New("rounds: at least one is required")
	}
	for i, s := range a.Meta.Rounds {
		at, err := time.ParseDuration(s)
		if err != nil {
			return fmt.Errorf("rounds: %w", err)
		}
		if i == 0 && at != 0 || i > 0 && at <= a.Rounds[i-1].At {
			return fmt.Errorf("rounds: %s: offsets have to start at 0s and increase", s)
		}
		a.Rounds = append(a.Rounds, Round{At: at})
	}
	return nil
}

// LeadsOutside reports whether a replay cannot follow a link at p.
func LeadsOutside(p, target string) bool {
	to := path.Join(path.Dir(p), target)
	return path.IsAbs(target) || to == ".." || strings.HasPrefix(to, "../")
}

func parseEntry(name string, data []byte) (at time.Duration, e Entry, err error) {
	if rest, ok := strings.CutPrefix(name, "+"); ok {
		offset, p, ok := strings.Cut(rest, "/")
		if !ok {
			return 0, e, errors.New("the entry of a round has to be +DURATION/PATH")
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
	if e.Path, err = answer.Unescape(e.Path); err != nil {
		return 0, e, err
	}
	if e.Target, err = answer.Unescape(e.Target); err != nil {
		return 0, e, err
	}
	if !access.Clean(e.Path) {
		return 0, e, errors.New("the path must be relative, without empty, \".\" and \"..\" elements")
	}
	if len(e.Path) > unix.PathMax {
		return 0, e, fmt.Errorf("the path exceeds PATH_MAX (%d bytes)", unix.PathMax)
	}
	if e.Kind == Link {
		if LeadsOutside(e.Path, e.Target) {
			return 0, e, errors.New("the link target is outside the captured tree")
		}
	} else if err := e.setMode(mode, data); err != nil {
		return 0, e, err
	}
	if e.Kind != File && e.Kind != Lines && e.Kind != oneLiners && len(bytes.TrimSpace(data)) > 0 {
		return 0, e, errors.New("this kind of entry has no content")
	}
	if len(e.Data) > maxEntry {
		return 0, e, fmt.Errorf("%d bytes exceed the limit of %d", len(e.Data), maxEntry)
	}
	return at, e, nil
}

func (e *Entry) setMode(mode string, data []byte) (err error) {
	if name, ok := strings.CutPrefix(mode, "!"); ok {
		e.Kind = Error
		if e.Errno = errnoByName(name); e.Errno == 0 {
			return fmt.Errorf("%q is not an errno", name)
		}
		return nil
	}
	for kind, word := range modes {
		if mode == word {
			e.Kind = kind
		}
	}
	switch {
	case e.Kind == Lines, e.Kind == oneLiners, mode == "":
		e.Data = data
	case e.Kind != File:
	case mode == "@nonl":
		e.Data = bytes.TrimSuffix(data, []byte("\n"))
	case mode == "@base64":
		e.Data, err = decodeBase64(data)
	case mode == "@hex":
		e.Data, err = decodeHex(data)
	default:
		return fmt.Errorf("unknown mode %q: use @base64, @hex, @nonl, @unread, @dir, @lines or @files", mode)
	}
	return err
}

// checkTree rejects entries below a link or a file of the same or an earlier round. Entries are sorted, so a removed
// path precedes its replacement. An unreadable path may be a directory.
func checkTree(rounds []Round) error {
	// Round in which a path last became a non-directory, and in which it was last removed.
	set, gone := map[string]int{}, map[string]int{}
	now := 0
	for _, r := range rounds {
		for _, e := range r.Entries {
			now++
			switch {
			case e.IsGone():
				gone[e.Path] = now
				continue
			case e.Kind == Dir, e.Kind == Error:
				delete(set, e.Path)
			default:
				set[e.Path] = now
			}
		}
		for _, e := range r.Entries {
			if p := notDirectory(e.Path, set, gone); p != "" && !e.IsGone() {
				return fmt.Errorf("entry %q: %q is not a directory", e.Path, p)
			}
		}
	}
	return nil
}

// notDirectory returns the first path above p that is not a directory.
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

// errnoName returns the name of an errno, or its number if Linux has no name for it: drivers return kernel-internal
// ones.
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
	if n, err := strconv.ParseUint(name, 10, 12); err == nil { // errno values are below 4096
		return syscall.Errno(n)
	}
	for n := syscall.Errno(1); n < 134; n++ {
		if name != "" && unix.ErrnoName(n) == name {
			return n
		}
	}
	return 0
}
