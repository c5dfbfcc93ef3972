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

// reloader reloads site configuration, rules, and the HTTP client configuration of the Alertmanagers: all of them, or
// none.
type reloader struct {
	site   *machine.SiteFile
	daemon *daemon // nil: no alerting
	log    *slog.Logger

	ruleFiles []string // globs
	read      func(globs []string, books rulefiles.RunbookURL) (*rulefiles.Files, error)
	rules     *rulefiles.Files // at the start
	books     rulefiles.RunbookURL
	coverage  atomic.Pointer[coverage.Detector]

	one sync.Mutex // reload at a time

	mu    sync.Mutex
	state rounds.FileState
}

// begin makes the detector of the rules at the start.
func (r *reloader) begin() error {
	detector, err := r.rules.Detector()
	r.coverage.Store(detector)
	return err
}

// hasFiles reports whether there is a file to reload.
func (r *reloader) hasFiles() bool {
	return r.site.Name != "" || len(r.ruleFiles) > 0 || r.daemon != nil && r.daemon.config.httpFile != ""
}

// prepareRules reads the rules, for the engine and for the detector of rules that cannot be evaluated. Built-in ones do
// not change.
func (r *reloader) prepareRules() (apply func(), err error) {
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

// reload reloads the files, and logs the result.
func (r *reloader) reload() error {
	if !r.hasFiles() {
		return errors.New("nothing to reload: none of --config.file, --alerting.rule-files and --alerting.alertmanager-config-file is set")
	}
	r.one.Lock()
	defer r.one.Unlock()
	applySite, err := r.site.Prepare()
	applyRules, rulesErr := r.prepareRules()
	err = errors.Join(err, rulesErr)
	r.note(err)
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

func (r *reloader) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state.Failed = err != nil; err == nil {
		r.state.At = time.Now()
	}
}

// current is the result of the last reload; false without a file.
func (r *reloader) current() (rounds.FileState, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state, r.hasFiles()
}

// control adds the handler on the control socket. It responds when the files are in force.
func (r *reloader) control(mux *http.ServeMux) {
	control.Handle(mux, "POST "+control.ReloadPath, func(*http.Request) (bool, error) {
		if err := r.reload(); err != nil {
			return false, control.BadRequest(err)
		}
		return true, nil
	})
}

// onHangup reloads on each SIGHUP until ctx ends. Once it returns, SIGHUP does not end the program.
func (r *reloader) onHangup(ctx context.Context) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, unix.SIGHUP)
	go func() {
		defer signal.Stop(hangup)
		for {
			select {
			case <-hangup:
				if err := r.reload(); err != nil && !r.hasFiles() {
					r.log.Warn("ignoring SIGHUP", "err", err)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
}
