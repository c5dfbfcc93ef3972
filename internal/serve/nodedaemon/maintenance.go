package nodedaemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/control"
	"rdma_exporter/internal/maintenance"
	"rdma_exporter/internal/serve"
	"rdma_exporter/internal/state"
)

// maintenanceNoted is the interval of saving the uptime. After a boot without a clock, maintenance is extended by at
// most this time.
const maintenanceNoted = time.Minute

// planned is the announced maintenance of a live host.
type planned struct {
	file  *state.File[maintenance.Announcement] // not open: nothing can be announced
	clock func() maintenance.Clock
	log   *slog.Logger
	saves sync.WaitGroup

	turn sync.Mutex // of writers; scrapes do not wait for it

	mu   sync.Mutex
	kept maintenance.Announcement // zero: none
}

// newPlanned returns a planned without maintenance. Nothing can be announced before open.
func newPlanned(dir string, clock func() maintenance.Clock, log *slog.Logger) *planned {
	return &planned{clock: clock, log: log, file: &state.File[maintenance.Announcement]{
		Dir: dir, Log: log, Lost: "cannot write the maintenance state", Well: "writing the maintenance state works again",
	}}
}

// open opens the directory. The state directory is locked.
func (p *planned) open() error {
	kept, err := p.file.Open()
	p.set(kept)
	return err
}

// set sets the announcement.
func (p *planned) set(kept maintenance.Announcement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = kept
}

// get returns the announcement.
func (p *planned) get() maintenance.Announcement {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kept
}

// start saves the uptime until ctx ends.
func (p *planned) start(ctx context.Context) {
	p.saves.Go(func() {
		for serve.Pause(ctx, maintenanceNoted) {
			p.advance()
		}
	})
}

// advance saves the time left of the maintenance.
func (p *planned) advance() {
	p.turn.Lock()
	defer p.turn.Unlock()
	kept := p.get()
	if !p.file.IsOpen() || kept.Left <= 0 {
		return
	}
	kept = kept.Advance(p.clock())
	p.set(kept)
	_ = p.file.Save(kept) // logged
}

// currentNotice returns the announced maintenance; false if none can be announced.
func (p *planned) currentNotice() (*maintenance.Notice, bool) {
	if !p.file.IsOpen() {
		return nil, false
	}
	kept := p.get()
	if kept.Until.IsZero() { // reading the clocks costs eight system calls
		return nil, true
	}
	return kept.At(p.clock()), true
}

// replace saves an announcement, and returns the one that it replaces. If it cannot be written, nothing is announced.
func (p *planned) replace(a maintenance.Announcement) (before *maintenance.Notice, err error) {
	p.turn.Lock()
	defer p.turn.Unlock()
	if !p.file.IsOpen() {
		return nil, errors.New("the exporter cannot use its state directory, see its log")
	}
	before, _ = p.currentNotice()
	if err := p.file.Write(a); err != nil {
		return nil, err
	}
	p.set(a)
	return before, nil
}

// close closes the directory. The context of start has ended.
func (p *planned) close() {
	p.saves.Wait()
	p.turn.Lock()
	defer p.turn.Unlock()
	command.LogError(p.log, "cannot close the maintenance directory", p.file.Close())
}

// addHandlers adds the handlers for the control socket. They respond with the current maintenance or null; a request to
// end it gets the ended maintenance.
func (p *planned) addHandlers(mux *http.ServeMux) {
	control.Handle(mux, "GET "+control.MaintenancePath, func(*http.Request) (*maintenance.Notice, error) {
		n, _ := p.currentNotice()
		return n, nil
	})
	control.Handle(mux, "POST "+control.MaintenanceStartPath, func(r *http.Request) (*maintenance.Notice, error) {
		var a maintenance.Announcement
		length, err := time.ParseDuration(r.URL.Query().Get("for"))
		if err == nil {
			a, err = maintenance.New(p.clock(), length, r.URL.Query().Get("reason"))
		}
		if err != nil {
			return nil, control.BadRequest(err)
		}
		if _, err := p.replace(a); err != nil {
			return nil, fmt.Errorf("cannot announce maintenance: %w", err)
		}
		n, _ := p.currentNotice()
		p.log.Info("maintenance announced", "until", a.Until, "reason", a.Reason)
		return n, nil
	})
	control.Handle(mux, "POST "+control.MaintenanceEndPath, func(*http.Request) (*maintenance.Notice, error) {
		before, err := p.replace(maintenance.Announcement{})
		if err != nil {
			return nil, fmt.Errorf("cannot end maintenance: %w", err)
		}
		p.log.Info("maintenance ended")
		return before, nil
	})
}
