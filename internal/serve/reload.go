package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/control"
	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/rulefiles"
)

// RuleReader reads rule files, given as globs, with links to runbooks.
type RuleReader func(globs []string, books rulefiles.RunbookURL) (*rulefiles.Files, error)

// Reloader reloads site configuration, rules, and the HTTP client configuration of the Alertmanagers: all of them, or
// none.
type Reloader struct {
	site   *machine.SiteFile
	daemon *Daemon // nil: no alerting
	log    *slog.Logger

	ruleFiles []string // globs
	read      RuleReader
	rules     *rulefiles.Files // at the start
	books     rulefiles.RunbookURL
	coverage  atomic.Pointer[coverage.Detector]

	one sync.Mutex // one reload at a time

	mu    sync.Mutex
	state rounds.FileState
}

// NewReloader returns a Reloader, with the rules that are in force. read reads them from their files.
func NewReloader(
	site *machine.SiteFile, a *Alerting, d *Daemon, rules *rulefiles.Files, read RuleReader, log *slog.Logger,
) (*Reloader, error) {
	detector, err := rules.Detector()
	if err != nil {
		return nil, err
	}
	r := &Reloader{
		site: site, daemon: d, ruleFiles: a.RuleFiles, read: read, rules: rules, books: a.Runbooks, log: log,
		state: rounds.FileState{At: time.Now()},
	}
	r.coverage.Store(detector)
	return r, nil
}

// Detector returns the detector of the rules that are in force.
func (r *Reloader) Detector() *coverage.Detector { return r.coverage.Load() }

// hasFiles reports whether there is a file to reload.
func (r *Reloader) hasFiles() bool {
	return r.site.Name != "" || len(r.ruleFiles) > 0 || r.daemon != nil && r.daemon.config.httpFile != ""
}

// prepareRules reads the rules for the engine and for the coverage detector. Built-in rules do not change.
func (r *Reloader) prepareRules() (apply func(), err error) {
	if len(r.ruleFiles) == 0 {
		return r.daemon.prepare(r.rules)
	}
	files, err := r.read(r.ruleFiles, r.books)
	if err != nil {
		return nil, err
	}
	applyDaemon, err := r.daemon.prepare(files)
	if err != nil {
		return nil, err
	}
	detector, err := files.Detector()
	return func() { applyDaemon(); r.coverage.Store(detector) }, err
}

// Reload reloads the files, and logs the result.
func (r *Reloader) Reload() error {
	if !r.hasFiles() {
		return errors.New("nothing to reload: none of --config.file, --alerting.rule-files and --alerting.alertmanager-config-file is set")
	}
	r.one.Lock()
	defer r.one.Unlock()
	applySite, err := r.site.Prepare()
	applyRules, rulesErr := r.prepareRules()
	err = errors.Join(err, rulesErr)
	r.keep(err)
	if err != nil {
		r.log.Error("reload failed, keeping the previous configuration", "err", command.OneLine(err))
		return fmt.Errorf("reload failed, keeping the previous configuration: %w", err)
	}
	applySite()
	applyRules()
	c := r.site.Store.Current()
	r.log.Info("configuration reloaded", "file", r.site.Name, "pins", len(c.Pins), "ignores", len(c.Ignore))
	return nil
}

// keep keeps the result of a reload.
func (r *Reloader) keep(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state.Failed = err != nil; err == nil {
		r.state.At = time.Now()
	}
}

// State returns the result of the last reload; false without a file.
func (r *Reloader) State() (rounds.FileState, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state, r.hasFiles()
}

// AddHandlers adds the handler for the control socket. It responds once the files are in force.
func (r *Reloader) AddHandlers(mux *http.ServeMux) {
	control.Handle(mux, "POST "+control.ReloadPath, func(*http.Request) (bool, error) {
		if err := r.Reload(); err != nil {
			return false, control.BadRequest(err)
		}
		return true, nil
	})
}

// ReloadOnHangup reloads on each SIGHUP until ctx ends. Once it returns, SIGHUP does not end the program.
func (r *Reloader) ReloadOnHangup(ctx context.Context) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, unix.SIGHUP)
	go func() {
		defer signal.Stop(hangup)
		for {
			select {
			case <-hangup:
				if err := r.Reload(); err != nil && !r.hasFiles() {
					r.log.Warn("ignoring SIGHUP", "err", err)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
}
