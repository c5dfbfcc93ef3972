package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// build selects the binary; modules differ.
type build struct {
	arch string
	cgo  bool
}

// module has a package in the binary.
type module struct {
	path, version string
	files         []file
}

// file is a licence, or a notice that must be distributed with it.
type file struct {
	name string // below the module
	text string
	ids  []string // SPDX, sorted; empty for a notice
}

// licences returns the licences of all files of the module.
func (m module) licences() (ids []string) {
	for _, f := range m.files {
		ids = append(ids, f.ids...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// listed is the output of go list for a package.
type listed struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// modules returns the modules of the packages in the binary, by path, the standard library first.
func (b build) modules(ctx context.Context) ([]module, error) {
	packages, err := b.packages(ctx)
	if err != nil {
		return nil, err
	}
	// The licence of the toolchain covers the standard library.
	root, err := output(exec.CommandContext(ctx, "go", "env", "GOROOT"))
	if err != nil {
		return nil, err
	}
	std := module{path: "std (the Go standard library and runtime)", version: runtime.Version()}
	if std.files, err = filesOf(strings.TrimSpace(string(root))); err != nil {
		return nil, err
	}
	by := map[string]*module{}
	for _, p := range packages {
		if p.Standard || p.Module == nil || p.Module.Main {
			continue
		}
		m := by[p.Module.Path]
		if m == nil {
			m = &module{path: p.Module.Path, version: p.Module.Version}
			by[m.path] = m
		}
		if err := m.add(p.Dir, p.Module.Dir); err != nil {
			return nil, err
		}
	}
	out := []module{std}
	for _, m := range by {
		slices.SortFunc(m.files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
		out = append(out, *m)
	}
	slices.SortFunc(out[1:], func(a, b module) int { return cmp.Compare(a.path, b.path) })
	return out, nil
}

func (b build) packages(ctx context.Context) (out []listed, _ error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=Dir,Standard,Module", "rdma_exporter/cmd/rdma_exporter")
	cgo := "0"
	if b.cgo {
		cgo = "1"
	}
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+b.arch, "CGO_ENABLED="+cgo)
	text, err := output(cmd)
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p listed
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("go list: %w", err)
		}
		out = append(out, p)
	}
}

func output(cmd *exec.Cmd) ([]byte, error) {
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, errs.String())
	}
	return out, nil
}

// add collects the licences from a package up to the module root: folders may contain third-party code.
func (m *module) add(dir, root string) error {
	for ; ; dir = filepath.Dir(dir) {
		files, err := filesOf(dir)
		if err != nil {
			return err
		}
		if own, ok := headers[m.path]; ok {
			f, err := header(filepath.Join(dir, own))
			if err != nil {
				return err
			}
			files = append(files, f...)
		}
		below, err := filepath.Rel(root, dir)
		if err != nil {
			return err
		}
		for _, f := range files {
			f.name = filepath.Join(below, f.name)
			if !slices.ContainsFunc(m.files, func(o file) bool { return o.name == f.name }) {
				m.files = append(m.files, f)
			}
		}
		if dir == root {
			return nil
		}
	}
}

var (
	licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying)([-.](md|txt|[a-z]+))?$`)
	noticeName  = regexp.MustCompile(`(?i)^(notice|copyright|patents|authors)(\.(md|txt))?$`)
	source      = regexp.MustCompile(`\.(go|c|h|s)$`)
)

func filesOf(dir string) (out []file, _ error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		isLicence := licenceName.MatchString(e.Name())
		if !e.Type().IsRegular() || source.MatchString(e.Name()) || !isLicence && !noticeName.MatchString(e.Name()) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		f := file{name: e.Name(), text: tidy(string(b))}
		if isLicence {
			f.ids = recognise(f.text)
			if len(f.ids) == 0 {
				f.ids = []string{unknown}
			}
		}
		out = append(out, f)
	}
	return out, nil
}

// headers are files whose first comment is a separate licence.
var headers = map[string]string{"github.com/NVIDIA/go-nvml": "nvml.h"}

// header returns the first comment of a file, which must have a copyright notice; none if the file does not exist.
func header(name string) ([]file, error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	_, text, _ := strings.Cut(string(b), "/*\n")
	text, _, ok := strings.Cut(text, "*/")
	if !ok || !strings.Contains(text, "Copyright") {
		return nil, fmt.Errorf("%s: first comment is not a licence", name)
	}
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "*"), " "))
	}
	text = tidy(strings.Join(lines, "\n"))
	return []file{{name: filepath.Base(name), text: text, ids: recognise(text)}}, nil
}

// tidy converts line ends to LF and trims space.
func tidy(s string) string {
	var out []string
	for line := range strings.Lines(s) {
		out = append(out, strings.TrimRight(line, " \t\r\n"))
	}
	return strings.Trim(strings.Join(out, "\n"), "\n")
}
