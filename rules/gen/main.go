// Command gen writes what identifies the object of each alert (rules/identity) into the rule files, between {{- /* identity of OBJECT */
// -}} and {{- /* end of identity */}} in an annotation. The files remain plain Prometheus rules.
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

const end = "{{- /* end of identity */}}"

var (
	alertLine = regexp.MustCompile(`^ *- alert: (\S+)$`)
	beginLine = regexp.MustCompile(`^( *)\{\{- /\* identity of (\w+) \*/ -\}\}$`)
)

// filled returns a rule file with its marked blocks generated.
func filled(text string) (string, error) {
	var out []string
	alert, open := "", 0 // open: line of a marker without end so far
	for i, line := range strings.Split(text, "\n") {
		if m := alertLine.FindStringSubmatch(line); m != nil {
			alert = m[1]
		}
		m := beginLine.FindStringSubmatch(line)
		switch {
		case m != nil && open > 0:
			return "", fmt.Errorf("line %d: the identity of line %d has no end: %s", i+1, open, end)
		case m != nil:
			o := slices.IndexFunc(identity.Objects, func(o identity.Object) bool { return o.Name == m[2] })
			if o < 0 {
				return "", fmt.Errorf("line %d: unknown object %s", i+1, m[2])
			}
			open, out = i+1, append(out, line)
			for _, l := range identity.Objects[o].Lines(alert) {
				out = append(out, m[1]+l)
			}
			out = append(out, m[1]+end)
		case open > 0 && strings.TrimSpace(line) == end:
			open = 0
		case open == 0:
			out = append(out, line)
		}
	}
	if open > 0 {
		return "", fmt.Errorf("line %d: the identity has no end: %s", open, end)
	}
	return strings.Join(out, "\n"), nil
}
