package app

import (
	"context"
	"crypto/tls"
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
	"rdma_exporter/internal/host"
)

// daemonTimeout is short: the running exporter has its findings in memory.
var daemonTimeout = time.Second

const (
	// maxFindings limits the response: a finding has 3 kB.
	maxFindings = 8 << 20
	// A round of the daemon is stale after oldRounds intervals, but not before oldLeast.
	oldRounds = 3
	oldLeast  = time.Minute
)

// ask queries the running exporter. It returns false if there is none, or if its response cannot be used, which is logged.
func (k *checkConfig) ask(ctx context.Context, c *config, log *slog.Logger) (check.Report, bool) {
	if k.noDaemon || k.length > 0 || c.isOwn() {
		return check.Report{}, false
	}
	report, err := k.fetch(ctx)
	if err == nil && !k.daemonSet {
		err = c.trusted()
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
func (c *config) trusted() error {
	live, err := host.OpenLive(c.paths)
	if err != nil {
		return err
	}
	defer live.Close()
	for _, uid := range host.ListenerUIDs(live.Files, defaultPort) { // one on another address may not be the one that responds
		if uid != os.Geteuid() && firstUser <= uid && uid <= lastUser {
			return fmt.Errorf("not trusted: the listener on port %[2]s belongs to user %[1]d; set --daemon if that is the exporter", uid, defaultPort)
		}
	}
	return nil
}

// isOwn reports whether the command line selects another machine, or other parts of it, than the running exporter reads.
func (c *config) isOwn() bool {
	for _, ch := range c.chosen {
		if ch.set {
			return true
		}
	}
	return c.replay != "" || c.site.name != "" || c.paths.RootFS != "/" || c.paths.Sys != "" || c.paths.Proc != "" || c.include != nil || c.exclude != nil || c.disableDefaults
}

// findingsURL is the URL of the findings of an exporter.
func findingsURL(daemon string) (*url.URL, error) {
	u, err := exporterURL(daemon)
	if err != nil {
		return nil, err
	}
	return u.JoinPath("api/v1/findings"), nil
}

// exporterURL parses the URL of an exporter.
func exporterURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("must be http://HOST:PORT or https://HOST:PORT, with the route prefix of the exporter")
	}
	return u, nil
}

// localClient is for the exporter of this host: without proxies and redirects.
func localClient(c *tls.Config) *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, TLSClientConfig: c},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// fetch gets the report of the running exporter.
func (k *checkConfig) fetch(ctx context.Context) (r check.Report, err error) {
	u, err := findingsURL(k.daemonURL)
	if err != nil {
		return r, err
	}
	at := u.Redacted()
	ctx, cancel := context.WithTimeout(ctx, daemonTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return r, err
	}
	resp, err := localClient(nil).Do(req)
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
	case r.Version != check.Version || r.Exporter != build():
		return fmt.Errorf("different version: %q, this is %q", r.Exporter, build())
	case r.Replay != "":
		return fmt.Errorf("it evaluates a replay, %s", r.Replay)
	case age < -oldLeast:
		return fmt.Errorf("its last evaluation is %s ahead of the clock of this host", -age.Round(time.Second))
	case age > max(oldRounds*interval, oldLeast):
		return fmt.Errorf("its last evaluation is %s old", age.Round(time.Second))
	}
	return nil
}
