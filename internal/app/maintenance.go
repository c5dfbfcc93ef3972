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
	// maintenanceFolder is the directory of announced maintenance below the state directory.
	maintenanceFolder = "maintenance"
	// maintenanceNoted is the interval of saving the uptime: after a boot without a clock, maintenance lasts longer by that at most.
	maintenanceNoted = time.Minute
)

// planned is the announced maintenance of a live host.
type planned struct {
	dir   string
	clock func() maintenance.Clock
	log   *slog.Logger
	done  chan struct{} // closed when run has ended; nil until it starts

	turn   sync.Mutex // of writers; scrapes do not wait for it
	failed bool       // the last write

	mu    sync.Mutex
	store *state.Store             // nil: nothing can be announced
	kept  maintenance.Announcement // zero: none
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

// open opens the directory. The state directory is locked.
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

// start saves the uptime until ctx ends.
func (p *planned) start(ctx context.Context) {
	p.done = make(chan struct{})
	go func() {
		defer close(p.done)
		for pause(ctx, maintenanceNoted) {
			p.advance()
		}
	}()
}

// advance logs the beginning and the end of a persistent failure.
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
		p.log.Warn("cannot write the maintenance state", "err", err)
	case err == nil && p.failed:
		p.log.Info("writing the maintenance state works again")
	}
	p.failed = err != nil
}

// current returns the announced maintenance; false if none can be announced.
func (p *planned) current() (*maintenance.Notice, bool) {
	store, kept := p.get()
	if store == nil {
		return nil, false
	}
	return kept.At(p.clock()), true
}

// replace saves an announcement, and returns the one that it replaces. If it cannot be written, nothing is announced.
func (p *planned) replace(a maintenance.Announcement) (before *maintenance.Notice, err error) {
	p.turn.Lock()
	defer p.turn.Unlock()
	store, _ := p.get()
	if store == nil {
		return nil, errors.New("the exporter cannot use its state directory, see its log")
	}
	before, _ = p.current()
	if err := store.Write(a); err != nil {
		return nil, err
	}
	p.set(store, a)
	return before, nil
}

// close closes the directory. The context of start has ended.
func (p *planned) close() {
	if p.done != nil {
		<-p.done
	}
	p.turn.Lock()
	defer p.turn.Unlock()
	if store, kept := p.get(); store != nil {
		discard(p.log, "cannot close the maintenance directory", store.Close())
		p.set(nil, kept)
	}
}

// announced reads the maintenance saved by the running exporter, for one-off evaluations; nil for a replay.
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

// control adds the handlers on the socket. They respond with the current maintenance or null; to its end, with what ended.
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
			http.Error(w, "cannot announce maintenance: "+err.Error(), http.StatusInternalServerError)
			return
		}
		n, _ := p.current()
		p.log.Info("maintenance announced", "until", a.Until, "reason", a.Reason)
		answerJSON(w, n)
	})
	mux.HandleFunc("POST "+maintenanceEndPath, func(w http.ResponseWriter, _ *http.Request) {
		before, err := p.replace(maintenance.Announcement{})
		if err != nil {
			http.Error(w, "cannot end maintenance: "+err.Error(), http.StatusInternalServerError)
			return
		}
		p.log.Info("maintenance ended")
		answerJSON(w, before)
	})
}

// maintenanceConfig is of "maintenance start".
type maintenanceConfig struct {
	length string
	reason string
}

func (p *maintenanceConfig) flags(a *kingpin.CmdClause) {
	a.Flag("for", "Duration of the maintenance, such as 30m, 2h or 1d; from 1m to 7d.").Required().PlaceHolder("DURATION").StringVar(&p.length)
	a.Flag("reason", "Reason, one line of up to 200 characters, shown on the page and by check.").PlaceHolder("TEXT").StringVar(&p.reason)
}

func runMaintenanceStart(ctx context.Context, c *config, p *maintenanceConfig, stdout io.Writer) (int, error) {
	length, err := model.ParseDuration(p.length)
	if err != nil {
		return usage(fmt.Errorf("--for=%s: must be a duration from 1m to 7d, such as 30m, 2h or 1d", p.length))
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

// printMaintenance sends a request to the running exporter, and prints the response.
func printMaintenance(ctx context.Context, c *config, method, path string, q url.Values, format string, stdout io.Writer) (int, error) {
	if c.replay != "" {
		return usage(errors.New("--replay: a replay has no running exporter"))
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
