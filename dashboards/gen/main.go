// Command gen writes the Grafana dashboards: one file each, with the panels in the order in which they stand. It is a
// module of its own, so that Grafana's library is no dependency of the program.
//
//	cd dashboards/gen && go run .
//	cd dashboards/gen && go run . -check
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

func main() {
	dir := flag.String("dir", "..", "where the dashboards lie")
	check := flag.Bool("check", false, "write nothing; exit 1 if a dashboard is stale, missing or extra")
	flag.Parse()
	files, err := build()
	if err == nil {
		if *check {
			err = compare(*dir, files)
		} else {
			err = write(*dir, files)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func boards() []board {
	return []board{fabricBoard(), nodeBoard(), jobBoard(), roce(), optics(), gpudirect(), subnet()}
}

// build makes every dashboard, by file name.
func build() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, b := range boards() {
		text, err := b.File()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.Name, err)
		}
		files[b.Name+".json"] = text
	}
	return files, nil
}

func write(dir string, files map[string][]byte) error {
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compare names every dashboard that differs from what would be written.
func compare(dir string, files map[string][]byte) error {
	var wrong []error
	for name, want := range files {
		have, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			wrong = append(wrong, fmt.Errorf("%s: missing: make update", name))
		case err != nil:
			wrong = append(wrong, err)
		case !bytes.Equal(have, want):
			wrong = append(wrong, fmt.Errorf("%s: stale: make update", name))
		}
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		wrong = append(wrong, err)
	}
	for _, path := range names {
		if _, ours := files[filepath.Base(path)]; !ours {
			wrong = append(wrong, fmt.Errorf("%s: extra", filepath.Base(path)))
		}
	}
	return errors.Join(wrong...)
}
