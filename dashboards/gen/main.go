// Command gen writes the Grafana dashboards: one file each, with the panels in the order in which they stand. It is a
// module of its own, so that Grafana's library is no dependency of the program.
//
//	cd dashboards/gen && go run .
//	cd dashboards/gen && go run . -check
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
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
		d, err := b.build()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.name, err)
		}
		var out bytes.Buffer
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		if err := e.Encode(d); err != nil {
			return nil, fmt.Errorf("%s: %w", b.name, err)
		}
		text := out.Bytes()
		for title, id := range numbers(d.Panels) {
			text = bytes.ReplaceAll(text, []byte("viewPanel="+title+`"`), fmt.Appendf(nil, `viewPanel=%d"`, id))
		}
		files[b.name+".json"] = unfolded(text)
	}
	return files, nil
}

// numbers returns the numbers of panels by their titles.
func numbers(panels []dashboard.PanelOrRowPanel) map[string]uint32 {
	out := map[string]uint32{}
	for _, p := range panels {
		if p.Panel != nil {
			out[*p.Panel.Title] = *p.Panel.Id
		} else {
			for _, inside := range p.RowPanel.Panels {
				out[*inside.Title] = *inside.Id
			}
		}
	}
	return out
}

// unfolded has a line for each field of a dashboard and for each element of such a field, a panel for example. Fully
// indented, the files would be twice as large, and Helm keeps them in a Secret of at most 1 MiB.
func unfolded(compact []byte) []byte {
	const deepest = 2
	var out []byte
	depth, quoted := 0, false
	line := func() {
		if depth <= deepest {
			out = append(append(out, '\n'), bytes.Repeat([]byte(" "), depth)...)
		}
	}
	for i, c := range compact {
		switch {
		case quoted:
			quoted = c != '"' || escaped(compact[:i])
		case c == '"':
			quoted = true
		case c == '}' || c == ']':
			depth--
			if compact[i-1] != '{' && compact[i-1] != '[' && depth < deepest {
				line()
			}
		}
		out = append(out, c)
		switch {
		case quoted:
		case c == '{' || c == '[':
			depth++
			if next := compact[i+1]; next != '}' && next != ']' {
				line()
			}
		case c == ',':
			line()
		}
	}
	return out
}

// escaped reports whether the byte after b is escaped: an odd number of backslashes ends b.
func escaped(b []byte) bool { return (len(b)-len(bytes.TrimRight(b, `\`)))%2 == 1 }

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
