package machine

import (
	"errors"
	"fmt"
	"sync"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/anonymise"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/site"
)

// SiteFile is the site configuration: its file, and the configuration in force.
type SiteFile struct {
	Name  string // --config.file; empty: none, or that of a replay
	Store site.Store

	mu   sync.Mutex
	text []byte // of the configuration in force
}

// open reads the file for the first time. Without --config.file, a replay uses that of its capture.
func (f *SiteFile) open(c *Config, m *Machine) error {
	if f.Name != "" || m.Player == nil || m.Site == nil {
		return f.Read()
	}
	parsed, err := site.Parse(m.Site)
	if err != nil {
		return inFile(c.Replay+": exporter/config.yml", err)
	}
	f.text = m.Site
	f.Store.Replace(parsed)
	return nil
}

// Read reads the file and puts it in force.
func (f *SiteFile) Read() error {
	apply, err := f.Prepare()
	if err == nil {
		apply()
	}
	return err
}

// Prepare reads and validates the file. apply puts it in force.
func (f *SiteFile) Prepare() (apply func(), err error) {
	if f.Name == "" {
		return func() {}, nil
	}
	text, parsed, err := ParseSite(f.Name)
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
		f.Store.Replace(parsed)
	}, nil
}

// ParseSite reads a file. Errors have its name and the line.
func ParseSite(name string) ([]byte, *site.Config, error) {
	b, err := command.ReadSmall(name, site.MaxSize+1)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	c, err := site.Parse(b)
	if err != nil {
		return nil, nil, inFile(name, err)
	}
	return b, c, nil
}

// Record adds the configuration in force to a capture. An anonymised one has no entries of other hosts.
func (f *SiteFile) Record(a *capture.Archive, anonymised bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := f.text
	if anonymised && text != nil {
		var err error
		systems := anonymise.Systems(a, f.Store.Current().Systems()...)
		if text, err = site.OfHost(text, a.Meta.Hostname, anonymise.Host, func(name string) string {
			return anonymise.SystemIn(systems, name)
		}); err != nil {
			return fmt.Errorf("cannot anonymise the configuration: %w", err)
		}
	}
	a.SetConfig(text)
	return nil
}

// inFile adds the file name to each problem.
func inFile(name string, err error) error {
	var p site.Problems
	if errors.As(err, &p) {
		return p.In(name)
	}
	return fmt.Errorf("%s: %w", name, err)
}
