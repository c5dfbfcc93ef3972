// Command gen writes what several alerts have in common (rules/identity) into the rule files, between marker lines of
// an annotation: what identifies the object of the alert, and the names of both ends of a link. The files remain plain
// Prometheus rules.
//
//	go run ./rules/gen
//	go run ./rules/gen -check
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"rdma_exporter/rules/identity"
)

func main() {
	dir := flag.String("dir", "rules", "directory of the rule files")
	check := flag.Bool("check", false, "write nothing; exit 1 if a file is stale")
	flag.Parse()
	if err := run(*dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dir string, check bool) error {
	names, err := filepath.Glob(filepath.Join(dir, "*", "*.rules.yml"))
	if err != nil || len(names) == 0 {
		return fmt.Errorf("no rule files below %s: %w", dir, err)
	}
	var errs []error
	for _, name := range names {
		old, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read rules: %w", err)
		}
		text, err := filled(string(old))
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		case bytes.Equal(old, []byte(text)):
		case check:
			errs = append(errs, fmt.Errorf("%s is stale: go run ./rules/gen", name))
		default:
			if err := replace(name, text); err != nil {
				return err
			}
		}
	}
	return errors.Join(errs...)
}

func replace(name, text string) error {
	if err := os.WriteFile(name+".new", []byte(text), 0o644); err != nil {
		return fmt.Errorf("write rules: %w", err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return fmt.Errorf("write rules: %w", err)
	}
	return nil
}

// block is generated text of an annotation, between two marker lines.
type block struct {
	name  string
	begin *regexp.Regexp // indentation, object
	end   string
	lines func(object, alert string) ([]string, error)
}

var (
	alertLine = regexp.MustCompile(`^ *- alert: (\S+)$`)
	blocks    = []block{
		{
			"identity", regexp.MustCompile(`^( *)\{\{- /\* identity of (\w+) \*/ -\}\}$`), "{{- /* end of identity */}}",
			func(object, alert string) ([]string, error) {
				o := slices.IndexFunc(identity.Objects, func(o identity.Object) bool { return o.Name == object })
				if o < 0 {
					return nil, fmt.Errorf("unknown object %s", object)
				}
				return identity.Objects[o].Lines(alert), nil
			},
		},
		{
			"ends", regexp.MustCompile(`^( *)\{\{- /\* ends of (link) \*/ -\}\}$`), "{{- /* end of ends */ -}}",
			func(string, string) ([]string, error) { return identity.LinkEnds, nil },
		},
	}
)

// filled returns a rule file with its marked blocks generated.
func filled(text string) (string, error) {
	var out []string
	var open *block
	alert, opened := "", 0 // opened: line of the marker of open
	for i, line := range strings.Split(text, "\n") {
		if m := alertLine.FindStringSubmatch(line); m != nil {
			alert = m[1]
		}
		b, m := begins(line)
		switch {
		case b != nil && open != nil:
			return "", fmt.Errorf("line %d: block %q of line %d has no end: %s", i+1, open.name, opened, open.end)
		case b != nil:
			lines, err := b.lines(m[2], alert)
			if err != nil {
				return "", fmt.Errorf("line %d: %w", i+1, err)
			}
			open, opened, out = b, i+1, append(out, line)
			for _, l := range append(slices.Clone(lines), b.end) {
				out = append(out, m[1]+l)
			}
		case open != nil && strings.TrimSpace(line) == open.end:
			open = nil
		case open == nil:
			out = append(out, line)
		}
	}
	if open != nil {
		return "", fmt.Errorf("line %d: block %q has no end: %s", opened, open.name, open.end)
	}
	return strings.Join(out, "\n"), nil
}

// begins returns the block that a line begins, with the indentation and the object.
func begins(line string) (*block, []string) {
	for i := range blocks {
		if m := blocks[i].begin.FindStringSubmatch(line); m != nil {
			return &blocks[i], m
		}
	}
	return nil, nil
}
