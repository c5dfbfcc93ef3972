package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/model"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/maintenance"
	"rdma_exporter/internal/state"
)

const (
	// maintenanceFolder is where announced maintenance is kept below the state directory.
	maintenanceFolder = "maintenance"
	// maintenanceNoted is how often the uptime is noted: after a boot without a clock maintenance lasts longer by that at most.
	maintenanceNoted = time.Minute
)

// planned is the maintenance that is announced for a live host.
type planned struct {
	dir   string
	clock func() maintenance.Clock
	log   *slog.Logger
	done  chan struct{} // closed when run has ended; nil until it starts

	turn   sync.Mutex // of who writes, which a scrape does not wait for
	failed bool       // the last write

	mu    sync.Mutex
	store *state.Store             // nil: nothing can be announced
	kept  maintenance.Announcement // zero: nothing is
}

// maintenanceClock reads both clocks of the host.
func (m *machine) maintenanceClock() maintenance.Clock {
	c := maintenance.Clock{Now: time.Now()}
	first, _, _ := strings.Cut(m.firstLine("proc/uptime"), " ")
	if uptime, err := strconv.ParseFloat(first, 64); err == nil {
		c.Uptime, c.Boot = uptime, m.firstLine("proc/sys/kernel/random/boot_id")
	}
	return c
}

// open takes the folder below the state directory, which is locked.
func (p *planned) open() error {
	store, err := state.Open(p.dir)
	if err != nil {
		return err
	}
	var kept maintenance.Announcement
	if err := store.Read(&kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, store.Close())
	}
	p.set(store, kept)
	return nil
}

func (p *planned) set(store *state.Store, kept maintenance.Announcement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.store, p.kept = store, kept
}

func (p *planned) get() (*state.Store, maintenance.Announcement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.store, p.kept
}

// start notes the uptime until ctx ends.
func (p *planned) start(ctx context.Context) {
	p.done = make(chan struct{})
	go func() {
		defer close(p.done)
		for pause(ctx, maintenanceNoted) {
			p.advance()
		}
	}()
}

// advance logs a lasting failure when it starts and when it ends.
func (p *planned) advance() {
	p.turn.Lock()
	defer p.turn.Unlock()
	store, kept := p.get()
	if store == nil || kept.Left <= 0 {
		return
	}
	kept = kept.Advance(p.clock())
	p.set(store, kept)
	err := store.Write(kept)
	switch {
	case err != nil && !p.failed:
		p.log.Warn("cannot write the state of the maintenance", "err", err)
	case err == nil && p.failed:
		p.log.Info("can write the state of the maintenance again")
	}
	p.failed = err != nil
}

// current returns what is announced; false where nothing can be.
func (p *planned) current() (*maintenance.Notice, bool) {
	store, kept := p.get()
	if store == nil {
		return nil, false
	}
	return kept.At(p.clock()), true
}

// replace keeps another announcement, and returns the notice that it replaces. What cannot be written is not announced.
func (p *planned) replace(a maintenance.Announcement) (before *maintenance.Notice, err error) {
	p.turn.Lock()
	defer p.turn.Unlock()
	store, _ := p.get()
	if store == nil {
		return nil, errors.New("the state directory of the exporter cannot be used: see its log")
	}
	before, _ = p.current()
	if err := store.Write(a); err != nil {
		return nil, err
	}
	p.set(store, a)
	return before, nil
}

// close lets another process have the folder. The context of start has ended.
func (p *planned) close() {
	if p.done != nil {
		<-p.done
	}
	p.turn.Lock()
	defer p.turn.Unlock()
	if store, kept := p.get(); store != nil {
		discard(p.log, "cannot close the state of the maintenance", store.Close())
		p.set(nil, kept)
	}
}

// announced reads what a running exporter keeps, for one-off evaluation; nil of a replay.
func (c *config) announced(m *machine) func() (*maintenance.Notice, bool) {
	if m.player != nil {
		return nil
	}
	return func() (*maintenance.Notice, bool) {
		var a maintenance.Announcement
		if state.Read(filepath.Join(c.stateDir, maintenanceFolder), &a) != nil {
			return nil, false
		}
		return a.At(m.maintenanceClock()), true
	}
}

// Paths of the control socket.
const (
	maintenancePath      = "/maintenance"
	maintenanceStartPath = "/maintenance/start"
	maintenanceEndPath   = "/maintenance/end"
)

// control adds the answers on the socket: what is announced now, or null; to the end of maintenance, what has ended.
func (p *planned) control(mux *http.ServeMux) {
	mux.HandleFunc("GET "+maintenancePath, func(w http.ResponseWriter, _ *http.Request) {
		n, _ := p.current()
		answerJSON(w, n)
	})
	mux.HandleFunc("POST "+maintenanceStartPath, func(w http.ResponseWriter, r *http.Request) {
		length, err := time.ParseDuration(r.URL.Query().Get("for"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a, err := maintenance.New(p.clock(), length, r.URL.Query().Get("reason"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if _, err := p.replace(a); err != nil {
			http.Error(w, "maintenance is not announced: "+err.Error(), http.StatusInternalServerError)
			return
		}
		n, _ := p.current()
		p.log.Info("maintenance is announced", "until", a.Until, "reason", a.Reason)
		answerJSON(w, n)
	})
	mux.HandleFunc("POST "+maintenanceEndPath, func(w http.ResponseWriter, _ *http.Request) {
		before, err := p.replace(maintenance.Announcement{})
		if err != nil {
			http.Error(w, "maintenance is not ended: "+err.Error(), http.StatusInternalServerError)
			return
		}
		p.log.Info("maintenance is ended")
		answerJSON(w, before)
	})
}

// maintenanceConfig is of "maintenance start".
type maintenanceConfig struct {
	length string
	reason string
}

func (p *maintenanceConfig) flags(a *kingpin.CmdClause) {
	a.Flag("for", "How long: 30m, 2h, 1d; from 1m to 7d.").Required().PlaceHolder("DURATION").StringVar(&p.length)
	a.Flag("reason", "What is done, in one line of 200 characters at most; shown on the page and by check.").PlaceHolder("TEXT").StringVar(&p.reason)
}

func runMaintenanceStart(ctx context.Context, c *config, p *maintenanceConfig, stdout io.Writer) (int, error) {
	length, err := model.ParseDuration(p.length)
	if err != nil {
		return usage(fmt.Errorf("--for=%s: is no duration: 30m, 2h, 1d; from 1m to 7d", p.length))
	}
	if err := errors.Join(maintenance.CheckLength(time.Duration(length)), maintenance.CheckReason(p.reason)); err != nil {
		return usage(err)
	}
	q := url.Values{"for": {time.Duration(length).String()}, "reason": {p.reason}}
	return printMaintenance(ctx, c, http.MethodPost, maintenanceStartPath, q, "%s\n", stdout)
}

func runMaintenanceEnd(ctx context.Context, c *config, stdout io.Writer) (int, error) {
	return printMaintenance(ctx, c, http.MethodPost, maintenanceEndPath, nil, "Ended: %s\n", stdout)
}

func runMaintenanceStatus(ctx context.Context, c *config, stdout io.Writer) (int, error) {
	return printMaintenance(ctx, c, http.MethodGet, maintenancePath, nil, "%s\n", stdout)
}

// printMaintenance asks the running exporter, and prints its answer.
func printMaintenance(ctx context.Context, c *config, method, path string, q url.Values, format string, stdout io.Writer) (int, error) {
	if c.replay != "" {
		return usage(errors.New("maintenance: a replay has no running exporter; leave --replay out"))
	}
	n, err := askControl[*maintenance.Notice](ctx, c.stateDir, method, path, q)
	if err != nil {
		return usage(err)
	}
	if n == nil {
		fmt.Fprintln(stdout, "No maintenance is announced.")
		return exitOK, nil
	}
	fmt.Fprintf(stdout, format, check.Plain(n.String()))
	return exitOK, nil
}
