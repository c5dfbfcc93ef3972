package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/site"
)

// siteFile is what the operator says of the site: where it is read from, and what is in force.
type siteFile struct {
	name  string // --config.file; empty: none, or that of a replay
	store site.Store

	mu    sync.Mutex
	text  []byte // of what is in force
	state rounds.FileState
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

// read reads the file and puts it in force. What is refused leaves what was in force.
func (f *siteFile) read() error {
	if f.name == "" {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	text, parsed, err := parseSite(f.name)
	f.state.Failed = err != nil
	if err != nil {
		return err
	}
	f.text, f.state.At = text, time.Now()
	f.store.Replace(parsed)
	return nil
}

// current says how the last reading went; false without a file.
func (f *siteFile) current() (rounds.FileState, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state, f.name != ""
}

// reload reads the file again for whoever asks, and says so in the log.
func (f *siteFile) reload(log *slog.Logger) error {
	if f.name == "" {
		return errors.New("no --config.file is given: there is nothing to read again")
	}
	if err := f.read(); err != nil {
		log.Error("configuration file refused, what was in force stays", "err", oneLine(err))
		return fmt.Errorf("%w\nthe configuration before stays in force", err)
	}
	c := f.store.Current()
	log.Info("configuration file read again", "file", f.name, "pins", len(c.Pins), "ignores", len(c.Ignore))
	return nil
}

// reloadOnHangup reads the file again on each SIGHUP until ctx ends. From its return on the signal does not end the program.
func (f *siteFile) reloadOnHangup(ctx context.Context, log *slog.Logger) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, unix.SIGHUP)
	go func() {
		defer signal.Stop(hangup)
		for {
			select {
			case <-hangup:
				if err := f.reload(log); err != nil && f.name == "" {
					log.Warn("SIGHUP", "err", err)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
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
		if text, err = site.OfHost(text, a.Meta.Hostname, capture.HostPseudonym); err != nil {
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
	fmt.Fprintf(stdout, "%s: valid, %d pins, %d ignores\n", k.file, len(c.Pins), len(c.Ignore))
	return exitOK, nil
}
