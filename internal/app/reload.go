package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/rounds"
)

// reloader reads the operator's files again: the site's, rules, and how Alertmanagers are reached. All of them are put in force, or none.
type reloader struct {
	site   *siteFile
	daemon *daemon // nil: no rules are judged
	log    *slog.Logger

	ruleFiles []string // globs
	books     runbookURL
	coverage  atomic.Pointer[coverage.Detector]

	one sync.Mutex // reload at a time

	mu    sync.Mutex
	state rounds.FileState
}

// begin makes what the rules make that the program has begun with.
func (r *reloader) begin() error {
	files, names, err := readRules(r.ruleFiles, r.books)
	if err != nil {
		return err
	}
	unseen, err := r.detector(files, names)
	r.coverage.Store(unseen)
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

// prepareRules reads the rules, for the engine and for whoever says which of them see nothing.
func (r *reloader) prepareRules() (apply func(), err error) {
	files, names, err := readRules(r.ruleFiles, r.books)
	if err != nil {
		return nil, err
	}
	applyDaemon, err := r.daemon.prepare(files, names)
	if err != nil {
		return nil, err
	}
	unseen, err := r.detector(files, names)
	return func() { applyDaemon(); r.coverage.Store(unseen) }, err
}

// reload reads the files for whoever asks, and says so in the log.
func (r *reloader) reload() error {
	if !r.hasFiles() {
		return errors.New("no --config.file, --alerting.rule-files or --alerting.alertmanager-config-file is given: there is nothing to read again")
	}
	r.one.Lock()
	defer r.one.Unlock()
	applySite, err := r.site.prepare()
	applyRules, rulesErr := r.prepareRules()
	err = errors.Join(err, rulesErr)
	r.note(err)
	if err != nil {
		r.log.Error("configuration refused, what was in force stays", "err", oneLine(err))
		return fmt.Errorf("%w\nthe configuration before stays in force", err)
	}
	applySite()
	applyRules()
	c := r.site.store.Current()
	r.log.Info("configuration read again", "file", r.site.name, "pins", len(c.Pins), "ignores", len(c.Ignore))
	return nil
}

func (r *reloader) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state.Failed = err != nil; err == nil {
		r.state.At = time.Now()
	}
}

// current says how the last reading went; false without a file.
func (r *reloader) current() (rounds.FileState, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state, r.hasFiles()
}

// onHangup reads the files again on each SIGHUP until ctx ends. From its return on the signal does not end the program.
func (r *reloader) onHangup(ctx context.Context) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, unix.SIGHUP)
	go func() {
		defer signal.Stop(hangup)
		for {
			select {
			case <-hangup:
				if err := r.reload(); err != nil && !r.hasFiles() {
					r.log.Warn("SIGHUP", "err", err)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
}
