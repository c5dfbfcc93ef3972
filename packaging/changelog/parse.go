package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// changelog is the sections, newest first.
type changelog []section

// section is the changes of a version.
type section struct {
	version string // unreleased, or a semantic version
	date    string // 2026-11-22; of a version only
	entries []entry
}

// entry is a line for users.
type entry struct{ kind, text string }

const unreleased = "Unreleased"

// kinds are the headings of Keep a Changelog, in order.
var kinds = []string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}

var (
	versionHead = regexp.MustCompile(`^## \[((?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-[0-9A-Za-z.-]+)?)\] - (\S+)$`)
	kindHead    = regexp.MustCompile(`^### (\w+)$`)
)

// parse reads a changelog and returns an error for each malformed line.
func parse(text string) (changelog, error) {
	var log changelog
	var errs []error
	kind, n := "", 0
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("line %d: "+format, append([]any{n}, args...)...))
	}
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\n")
		switch version, head := versionHead.FindStringSubmatch(line), kindHead.FindStringSubmatch(line); {
		case line == "## ["+unreleased+"]":
			if len(log) > 0 {
				wrong("[%s] has to be the first section", unreleased)
			}
			log, kind = append(log, section{version: unreleased}), ""
		case version != nil:
			if _, err := time.Parse(time.DateOnly, version[2]); err != nil {
				wrong("%s: a date is written 2006-01-02", version[2])
			}
			if slices.ContainsFunc(log, func(s section) bool { return s.version == version[1] }) {
				wrong("%s is there twice", version[1])
			}
			if last := len(log) - 1; last >= 0 && log[last].date != "" && log[last].date < version[2] {
				wrong("%s of %s stands below a version that is older", version[1], version[2])
			}
			log, kind = append(log, section{version: version[1], date: version[2]}), ""
		case strings.HasPrefix(line, "## "):
			wrong("a section is ## [%s] or ## [1.2.3] - 2006-01-02", unreleased)
		case len(log) == 0: // introduction
		case head != nil:
			if kind = head[1]; !slices.Contains(kinds, kind) {
				wrong("%s: there are %s", kind, strings.Join(kinds, ", "))
			}
		case strings.HasPrefix(line, "- "):
			s := &log[len(log)-1]
			if kind == "" {
				wrong("an entry stands below ### %s", strings.Join(kinds, ", ### "))
			}
			s.entries = append(s.entries, entry{kind, strings.TrimPrefix(line, "- ")})
		case strings.HasPrefix(line, "  ") && kind != "": // continuation of an entry
			s := &log[len(log)-1]
			if len(s.entries) == 0 {
				wrong("no entry goes on here")
				continue
			}
			s.entries[len(s.entries)-1].text += "\n" + line
		case line != "" && kind != "": // free text before the first kind
			wrong("an entry begins with \"- \"")
		}
	}
	if len(log) == 0 || log[0].version != unreleased {
		errs = append(errs, fmt.Errorf("the section ## [%s] is missing", unreleased))
	}
	for _, s := range log {
		if s.version != unreleased && len(s.entries) == 0 {
			errs = append(errs, fmt.Errorf("the section of %s has no entry", s.version))
		}
	}
	return log, errors.Join(errs...)
}

// release returns the section of a version that may be released.
func (log changelog) release(version string) (section, error) {
	for _, s := range log {
		if s.version == version && version != unreleased {
			return s, nil
		}
	}
	return section{}, fmt.Errorf("version %s has no section: name [%s] ## [%s] - %s, and put an empty [%s] above it",
		version, unreleased, version, time.DateOnly, unreleased)
}

// markdown returns the section without its heading.
func (s section) markdown() string {
	var b strings.Builder
	for _, k := range kinds {
		first := true
		for _, e := range s.entries {
			if e.kind != k {
				continue
			}
			if first {
				fmt.Fprintf(&b, "### %s\n\n", k)
				first = false
			}
			fmt.Fprintf(&b, "- %s\n", e.text)
		}
		if !first {
			b.WriteByte('\n')
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
