// Command gen writes the generated documentation: docs/metrics.md from the Descs of the collectors, docs/alerts.md from
// rule files and runbooks, docs/detection-matrix.md from the goldens of the recorded machines, docs/gpudirect.md from
// the reasons of verdicts, docs/setup.md from the table of settings, rules/thresholds.json from the table of
// thresholds, parts of docs/configuration.md and docs/permissions.md from flags, configuration keys and sources; and
// from flags and commands the man page and the shell completions in packaging.
//
//	go run ./docs/gen
//	go run ./docs/gen -check
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

	"rdma_exporter/internal/rulefiles"
	"rdma_exporter/internal/site"
	"rdma_exporter/rules"
)

func main() {
	dir := flag.String("dir", "docs", "directory of the pages, with runbooks/ below")
	check := flag.Bool("check", false, "write nothing; exit 1 if a page is out of date")
	flag.Parse()
	if err := run(*dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// page is a generated file.
type page struct {
	name string
	text []byte
}

func run(dir string, check bool) error {
	alerts, err := alertsPage()
	if err != nil {
		return err
	}
	matrix, err := matrixPage(os.DirFS(filepath.Join(dir, "..")))
	if err != nil {
		return err
	}
	thresholds, err := json.MarshalIndent(rules.Thresholds(), "", "  ")
	if err != nil {
		return fmt.Errorf("write thresholds: %w", err)
	}
	files, err := rulefiles.Read(nil, "")
	if err != nil {
		return err
	}
	read, err := files.Metrics()
	if err != nil {
		return err
	}
	man, err := manPage()
	if err != nil {
		return err
	}
	pages := []page{
		{"../rules/thresholds.json", append(thresholds, '\n')},
		{"detection-matrix.md", matrix},
		{"metrics.md", metricsPage(read)},
		{"alerts.md", alerts},
		{"gpudirect.md", gpuDirectPage()},
		{"setup.md", setupPage()},
		{"../packaging/man/rdma_exporter.1", man},
	}
	for name, parts := range map[string]map[string]func() (string, error){
		"configuration.md": {"flags": flagTables, "match": keyTable(site.MatchKeys), "pins": keyTable(site.PinKeys), "cabling": keyTable(site.CablingKeys), "setup": keyTable(site.SetupKeys), "switches": keyTable(site.SwitchKeys), "racks": keyTable(site.RackKeys), "peers": keyTable(site.PeerKeys)},
		"permissions.md":   {"guarded": permissionTable},
	} {
		p, err := marked(os.DirFS(dir), name, parts)
		if err != nil {
			return err
		}
		pages = append(pages, p)
	}
	shells, err := completionPages()
	if err != nil {
		return err
	}
	pages = append(pages, shells...)
	if check {
		return compare(dir, pages)
	}
	for _, p := range pages {
		path := filepath.Join(dir, p.name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path+".new", p.text, 0o644)
		}
		if err == nil {
			err = os.Rename(path+".new", path)
		}
		if err != nil {
			return fmt.Errorf("write page: %w", err)
		}
	}
	return nil
}

// compare returns an error for every page that is out of date.
func compare(dir string, pages []page) error {
	var errs []error
	for _, p := range pages {
		path := filepath.Join(dir, p.name)
		b, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			errs = append(errs, fmt.Errorf("%s is missing: go run ./docs/gen", path))
		case err != nil:
			errs = append(errs, fmt.Errorf("compare: %w", err))
		case !bytes.Equal(b, p.text):
			errs = append(errs, fmt.Errorf("%s is out of date: go run ./docs/gen", path))
		}
	}
	return errors.Join(errs...)
}
