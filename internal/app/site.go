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

// siteFile is the site configuration: its file, and the configuration in force.
type siteFile struct {
	name  string // --config.file; empty: none, or that of a replay
	store site.Store

	mu   sync.Mutex
	text []byte // of the configuration in force
}

// open reads the file for the first time. Without --config.file, a replay uses that of its capture.
func (f *siteFile) open(c *config, m *machine) error {
	if f.name != "" || m.player == nil || m.config == nil {
		return f.read()
	}
	parsed, err := site.Parse(m.config)
	if err != nil {
		return inFile(c.replay+": exporter/config.yml", err)
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

// prepare reads and validates the file. apply puts it in force.
func (f *siteFile) prepare() (apply func(), err error) {
	if f.name == "" {
		return func() {}, nil
	}
	text, parsed, err := parseSite(f.name)
	var p site.Problems
	switch {
	case errors.As(err, &p):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("--config.file=%w", err)
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.text = text
		f.store.Replace(parsed)
	}, nil
}

// parseSite reads a file. Errors have its name and the line.
func parseSite(name string) ([]byte, *site.Config, error) {
	b, err := readSmall(name, site.MaxSize+1)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	c, err := site.Parse(b)
	if err != nil {
		return nil, nil, inFile(name, err)
	}
	return b, c, nil
}

// record adds the configuration in force to a capture. An anonymised one has no entries of other hosts.
func (f *siteFile) record(a *capture.Archive, anonymise bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := f.text
	if anonymise && text != nil {
		var err error
		systems := capture.Systems(a, f.store.Current().Systems()...)
		if text, err = site.OfHost(text, a.Meta.Hostname, capture.HostPseudonym, func(name string) string { return capture.SystemIn(systems, name) }); err != nil {
			return fmt.Errorf("cannot anonymise the configuration: %w", err)
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
		return nil, errors.New("must be a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	b, err := io.ReadAll(io.LimitReader(f, most))
	return b, errors.Join(err, f.Close())
}

// inFile adds the file name to each problem.
func inFile(name string, err error) error {
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
	a.Arg("FILE", "Configuration file to validate.").Required().StringVar(&k.file)
}

// runCheckConfig prints the content of a valid file in numbers, or all errors of an invalid one, a line each.
func runCheckConfig(k *checkConfigConfig, stdout, stderr io.Writer) (int, error) {
	_, c, err := parseSite(k.file)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitUsage, nil
	}
	fmt.Fprintf(stdout, "%s: valid, %d pins, %d ignores, %d cables, %d setups, %d switches\n", k.file, len(c.Pins), len(c.Ignore), len(c.Cabling), len(c.Setup),
		len(c.Switches))
	return exitOK, nil
}
