package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/rounds"
)

// reloader reloads site configuration, rules, and the HTTP client configuration of the Alertmanagers: all of them, or none.
type reloader struct {
	site   *siteFile
	daemon *daemon // nil: no alerting
	log    *slog.Logger

	ruleFiles []string // globs
	books     runbookURL
	coverage  atomic.Pointer[coverage.Detector]

	one sync.Mutex // reload at a time

	mu    sync.Mutex
	state rounds.FileState
}

// begin makes the detector of the rules at the start.
func (r *reloader) begin() error {
	files, names, err := readRules(r.ruleFiles, r.books)
	if err != nil {
		return err
	}
	detector, err := r.detector(files, names)
	r.coverage.Store(detector)
	return err
}

func (r *reloader) detector(files fs.FS, names []string) (*coverage.Detector, error) {
	if len(r.ruleFiles) == 0 {
		return embeddedDetector()
	}
	return detector(files, names)
}

func (r *reloader) hasFiles() bool {
	return r.site.name != "" || len(r.ruleFiles) > 0 || r.daemon != nil && r.daemon.config.httpFile != ""
}

// prepareRules reads the rules, for the engine and for the detector of rules that cannot be evaluated.
func (r *reloader) prepareRules() (apply func(), err error) {
	files, names, err := readRules(r.ruleFiles, r.books)
	if err != nil {
		return nil, err
	}
	applyDaemon, err := r.daemon.prepare(files, names)
	if err != nil {
		return nil, err
	}
	detector, err := r.detector(files, names)
	return func() { applyDaemon(); r.coverage.Store(detector) }, err
}

// reload reloads the files, and logs the result.
func (r *reloader) reload() error {
	if !r.hasFiles() {
		return errors.New("nothing to reload: none of --config.file, --alerting.rule-files and --alerting.alertmanager-config-file is set")
	}
	r.one.Lock()
	defer r.one.Unlock()
	applySite, err := r.site.prepare()
	applyRules, rulesErr := r.prepareRules()
	err = errors.Join(err, rulesErr)
	r.note(err)
	if err != nil {
		r.log.Error("reload failed, keeping the previous configuration", "err", oneLine(err))
		return fmt.Errorf("reload failed, keeping the previous configuration: %w", err)
	}
	applySite()
	applyRules()
	c := r.site.store.Current()
	r.log.Info("configuration reloaded", "file", r.site.name, "pins", len(c.Pins), "ignores", len(c.Ignore))
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

const reloadPath = "/reload"

// control adds the handler on the control socket. It responds when the files are in force.
func (r *reloader) control(mux *http.ServeMux) {
	mux.HandleFunc("POST "+reloadPath, func(w http.ResponseWriter, _ *http.Request) {
		if err := r.reload(); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answerJSON(w, true)
	})
}

func runReload(ctx context.Context, c *config, stdout io.Writer) (int, error) {
	if c.replay != "" {
		return usage(errors.New("--replay: a replay has no running exporter"))
	}
	if _, err := askControl[bool](ctx, c.stateDir, http.MethodPost, reloadPath, nil); err != nil {
		return usage(instead(err, "reloads on SIGHUP"))
	}
	fmt.Fprintln(stdout, "Configuration reloaded.")
	return exitOK, nil
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
