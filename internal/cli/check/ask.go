package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/control"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/verdict"
	"rdma_exporter/internal/words"
)

const (
	// maxFindings limits the response: a finding has 3 kB.
	maxFindings = 8 << 20
	// A round of the daemon is stale after oldRounds intervals, but not before oldLeast.
	oldRounds = 3
	oldLeast  = time.Minute
)

// ask queries the running exporter. It returns false if there is none, or if its response cannot be used, which is
// logged.
func (k *Config) ask(ctx context.Context, c *machine.Config, log *slog.Logger) (check.Report, bool) {
	if k.noDaemon || k.length > 0 || c.Selects() {
		return check.Report{}, false
	}
	report, err := k.fetch(ctx)
	if err == nil && !k.daemonSet {
		err = trusted(c.Paths)
	}
	if err != nil {
		if !k.daemonSet && errors.Is(err, unix.ECONNREFUSED) {
			return check.Report{}, false // not running
		}
		log.Warn("cannot use the running exporter, running a one-off evaluation", "err", err)
		return check.Report{}, false
	}
	return report, true
}

// Ordinary users, by the defaults of /etc/login.defs: any of them can listen on a port that no exporter holds.
const firstUser, lastUser = 1000, 59999

// trusted returns why the listener on the exporter's port cannot be trusted.
func trusted(paths host.Paths) error {
	live, err := host.OpenLive(paths)
	if err != nil {
		return err
	}
	defer live.Close()
	// One on another address may not be the one that responds.
	for _, uid := range host.ListenerUIDs(live.Files, machine.DefaultPort) {
		if uid != os.Geteuid() && firstUser <= uid && uid <= lastUser {
			return fmt.Errorf("not trusted: the listener on port %[2]s belongs to user %[1]d; set --daemon if that is the exporter",
				uid, machine.DefaultPort)
		}
	}
	return nil
}

// findingsURL is the URL of the findings of an exporter.
func findingsURL(daemon string) (*url.URL, error) {
	u, err := control.ExporterURL(daemon)
	if err != nil {
		return nil, err
	}
	return u.JoinPath("api/v1/findings"), nil
}

// fetch gets the report of the running exporter.
func (k *Config) fetch(ctx context.Context) (r check.Report, err error) {
	u, err := findingsURL(k.daemonURL)
	if err != nil {
		return r, err
	}
	at := u.Redacted()
	ctx, cancel := context.WithTimeout(ctx, k.daemonTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return r, err
	}
	resp, err := control.HTTPClient(nil).Do(req)
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return r, fmt.Errorf("%s: HTTP status %s", at, resp.Status)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxFindings+1))
	switch {
	case err != nil:
		return r, fmt.Errorf("%s: %w", at, err)
	case len(b) > maxFindings:
		return r, fmt.Errorf("%s: response larger than %d MiB", at, maxFindings>>20)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("%s: response is not a report: %w", at, err)
	}
	r = words.AllForeign(r)
	if err := usable(r, time.Now()); err != nil {
		return r, fmt.Errorf("%s: %w", at, err)
	}
	return r, nil
}

// usable returns why a report cannot stand for the present state of this host.
func usable(r check.Report, now time.Time) error {
	age := now.Sub(r.Time)
	interval := time.Duration(r.IntervalSeconds * float64(time.Second))
	switch {
	case r.Version != check.Version || r.Exporter != verdict.Build():
		return fmt.Errorf("different version: %q, this is %q", r.Exporter, verdict.Build())
	case r.Replay != "":
		return fmt.Errorf("it evaluates a replay, %s", r.Replay)
	case age < -oldLeast:
		return fmt.Errorf("its last evaluation is %s ahead of the clock of this host", -age.Round(time.Second))
	case age > max(oldRounds*interval, oldLeast):
		return fmt.Errorf("its last evaluation is %s old", age.Round(time.Second))
	}
	return nil
}
