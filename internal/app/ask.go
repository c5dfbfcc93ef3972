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

// daemonPatience is how long the running exporter has to answer: it has its findings at hand.
var daemonPatience = time.Second

const (
	// maxFindings bounds an answer: a finding is 3 kB with all its text.
	maxFindings = 8 << 20
	// oldRounds is after how many intervals a round of the daemon is too old; never before oldLeast.
	oldRounds = 3
	oldLeast  = time.Minute
)

// ask asks the running exporter; false: there is none, or its answer is of no use, which is logged.
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
			return check.Report{}, false // none runs
		}
		log.Warn("looking without the running exporter", "err", err)
		return check.Report{}, false
	}
	return report, true
}

// Ordinary users, by the defaults of /etc/login.defs: whoever may log in may listen on a port that no exporter holds.
const firstUser, lastUser = 1000, 59999

// trusted says why what listens on the exporter's port is not to be believed.
func (c *config) trusted() error {
	live, err := host.OpenLive(c.paths)
	if err != nil {
		return err
	}
	defer live.Close()
	for _, uid := range host.ListenerUIDs(live.Files, defaultPort) { // one that holds another address may not be the one that answers
		if uid != os.Geteuid() && firstUser <= uid && uid <= lastUser {
			return fmt.Errorf("a program of user %d listens on port %s: give --daemon if that is the exporter", uid, defaultPort)
		}
	}
	return nil
}

// isOwn says whether the command line chooses another machine, or another part of it, than the running exporter's.
func (c *config) isOwn() bool {
	for _, ch := range c.chosen {
		if ch.set {
			return true
		}
	}
	return c.replay != "" || c.site.name != "" || c.paths.RootFS != "/" || c.paths.Sys != "" || c.paths.Proc != "" || c.include != nil || c.exclude != nil || c.disableDefaults
}

// findingsURL is where the exporter at an address tells its findings.
func findingsURL(daemon string) (*url.URL, error) {
	u, err := exporterURL(daemon)
	if err != nil {
		return nil, err
	}
	return u.JoinPath("api/v1/findings"), nil
}

// exporterURL is the address of an exporter, as an operator gives it.
func exporterURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("has to be http://HOST:PORT or https://HOST:PORT, with the prefix of its paths if it has one")
	}
	return u, nil
}

// localClient asks the exporter of this host: no proxy, and no redirect, since it has none.
func localClient(c *tls.Config) *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, TLSClientConfig: c},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// fetch gets a report that is of use.
func (k *checkConfig) fetch(ctx context.Context) (r check.Report, err error) {
	u, err := findingsURL(k.daemonURL)
	if err != nil {
		return r, err
	}
	at := u.Redacted()
	ctx, cancel := context.WithTimeout(ctx, daemonPatience)
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
		return r, fmt.Errorf("%s: it answers %s", at, resp.Status)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxFindings+1))
	switch {
	case err != nil:
		return r, fmt.Errorf("%s: %w", at, err)
	case len(b) > maxFindings:
		return r, fmt.Errorf("%s: the answer is larger than %d MiB", at, maxFindings>>20)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("%s: the answer is not a report: %w", at, err)
	}
	if err := usable(r, time.Now()); err != nil {
		return r, fmt.Errorf("%s: %w", at, err)
	}
	return r, nil
}

// usable says why a report is not to be taken for what this program would find on this host now.
func usable(r check.Report, now time.Time) error {
	age := now.Sub(r.Time)
	interval := time.Duration(r.IntervalSeconds * float64(time.Second))
	switch {
	case r.Version != check.Version || r.Exporter != build():
		return fmt.Errorf("it is another version: %q, this is %q", r.Exporter, build())
	case r.Replay != "":
		return fmt.Errorf("it evaluates a replay, %s", r.Replay)
	case age < -oldLeast:
		return fmt.Errorf("its last round is %s ahead of this host's clock", -age.Round(time.Second))
	case age > max(oldRounds*interval, oldLeast):
		return fmt.Errorf("its last round is %s old", age.Round(time.Second))
	}
	return nil
}
