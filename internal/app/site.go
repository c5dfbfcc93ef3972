package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/site"
)

// siteFile is what the operator says of the site: where it is read from, and what is in force.
type siteFile struct {
	name  string // --config.file; empty: none, or that of a replay
	store site.Store

	mu   sync.Mutex
	text []byte // of what is in force
}

// open reads the file for the first time; without one, a replay has that of its capture.
func (f *siteFile) open(c *config, m *machine) error {
	if f.name != "" || m.player == nil || m.config == nil {
		return f.read()
	}
	parsed, err := site.Parse(m.config)
	if err != nil {
		return named(c.replay+": exporter/config.yml", err)
	}
	f.text = m.config
	f.store.Replace(parsed)
	return nil
}

// read reads the file and puts it in force.
func (f *siteFile) read() error {
	apply, err := f.prepare()
	if err == nil {
		apply()
	}
	return err
}

// prepare reads the file. apply puts it in force; what is refused changes nothing.
func (f *siteFile) prepare() (apply func(), err error) {
	if f.name == "" {
		return func() {}, nil
	}
	text, parsed, err := parseSite(f.name)
	if err != nil {
		return nil, err
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.text = text
		f.store.Replace(parsed)
	}, nil
}

// parseSite reads a file. Errors name it, and the line.
func parseSite(name string) ([]byte, *site.Config, error) {
	b, err := readSmall(name, site.MaxSize+1)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	c, err := site.Parse(b)
	if err != nil {
		return nil, nil, named(name, err)
	}
	return b, c, nil
}

// record puts what is in force into a capture. What it says of other hosts is nobody's business who gets an anonymised one.
func (f *siteFile) record(a *capture.Archive, anonymise bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := f.text
	if anonymise && text != nil {
		var err error
		systems := capture.Systems(a, f.store.Current().Systems()...)
		if text, err = site.OfHost(text, a.Meta.Hostname, capture.HostPseudonym, func(name string) string { return capture.SystemIn(systems, name) }); err != nil {
			return fmt.Errorf("configuration file: %w", err)
		}
	}
	a.SetConfig(text)
	return nil
}

// readSmall reads a regular file, or the beginning of a large one.
func readSmall(name string, most int64) ([]byte, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	if !st.Mode().IsRegular() {
		return nil, errors.New("has to be a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	b, err := io.ReadAll(io.LimitReader(f, most))
	return b, errors.Join(err, f.Close())
}

// named puts the file's name before each problem.
func named(name string, err error) error {
	var p site.Problems
	if errors.As(err, &p) {
		return p.In(name)
	}
	return fmt.Errorf("%s: %w", name, err)
}

type checkConfigConfig struct {
	file string
}

func (k *checkConfigConfig) flags(a *kingpin.CmdClause) {
	a.Arg("FILE", "What --config.file would name.").Required().StringVar(&k.file)
}

// runCheckConfig says what a file holds, or all that is wrong with it, a line each.
func runCheckConfig(k *checkConfigConfig, stdout, stderr io.Writer) (int, error) {
	_, c, err := parseSite(k.file)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitUsage, nil
	}
	fmt.Fprintf(stdout, "%s: valid, %d pins, %d ignores, %d cables\n", k.file, len(c.Pins), len(c.Ignore), len(c.Cabling))
	return exitOK, nil
}
