package report

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/control"
	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/host/netlink"
	"rdma_exporter/internal/host/rooted"
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

// ask queries the running exporter. Without a report the reason says why; it is nil where none is to be asked, or where
// the one of this host is not running.
func (k *Check) ask(ctx context.Context, c *machine.Config) (report *check.Report, reason error) {
	if k.local(c) != "" {
		return nil, nil
	}
	r, err := k.fetch(ctx)
	if err == nil && !k.daemonSet {
		err = trusted(cmp.Or(k.listeners, c.Paths), k.port())
	}
	if err != nil {
		if !k.daemonSet && errors.Is(err, unix.ECONNREFUSED) {
			return nil, nil
		}
		return nil, err
	}
	return &r, nil
}

// unanswered returns the report on a host whose exporter does not answer: no evaluation of this host stands for it.
func (k *Check) unanswered(reason error) check.Report {
	r := check.New(check.Input{Exporter: verdict.Build(), Err: reason})
	r.Time = time.Now().UTC()                           // of the question
	if u, err := findingsURL(k.daemonURL); err == nil { // Check has refused any other
		r.Host = u.Host
	}
	return r
}

// source returns where the report of an exporter is from.
func (k *Check) source() check.Source {
	out := check.Source{Kind: check.SourceLocalDaemon}
	if k.daemonSet {
		out.Kind = check.SourceDaemon
	}
	if u, err := control.ExporterURL(k.daemonURL); err == nil {
		out.URL = u.Redacted()
	}
	return out
}

// isOfService reports whether a user is one of a service: of the system (below UID_MIN of /etc/login.defs), a dynamic
// one of systemd (61184 to 65519, systemd's list of UIDs and GIDs), or one of images up to nobody (65534). Any other,
// also one of a directory, can listen on a port that no exporter holds.
func isOfService(uid int) bool { return uid < 1000 || 61184 <= uid && uid <= 65534 }

// port returns the port of the exporter on this host.
func (k *Check) port() string {
	if k.fabric {
		return machine.FabricPort
	}
	return machine.DefaultPort
}

// trusted returns why the listener on the exporter's port cannot be trusted.
func trusted(paths rooted.Paths, port string) error {
	opened, err := live.Open(paths)
	if err != nil {
		return err
	}
	defer opened.Close()
	// One on another address may not be the one that responds.
	for _, uid := range netlink.ListenerUIDs(opened.Files, port) {
		if uid != os.Geteuid() && !isOfService(uid) {
			return fmt.Errorf("not trusted: the listener on port %[2]s belongs to user %[1]d; set --daemon if that is the exporter",
				uid, port)
		}
	}
	return nil
}

// findingsURL returns the URL of the findings of an exporter.
func findingsURL(daemon string) (*url.URL, error) {
	u, err := control.ExporterURL(daemon)
	if err != nil {
		return nil, err
	}
	return u.JoinPath("api/v1/findings"), nil
}

// fetch gets the report of the running exporter. Errors name the URL.
func (k *Check) fetch(ctx context.Context) (r check.Report, err error) {
	u, err := findingsURL(k.daemonURL)
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, k.daemonTimeout, fmt.Errorf("no answer within %s", k.daemonTimeout))
	defer cancel()
	r, err = get(ctx, u)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = usable(r, time.Now())
	}
	if err != nil {
		return r, fmt.Errorf("query exporter %s: %w", u.Redacted(), err)
	}
	return r, nil
}

// get requests a report.
func get(ctx context.Context, u *url.URL) (r check.Report, err error) {
	b, err := fetchLimited(ctx, u, maxFindings)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("response is not a report: %w", err)
	}
	return words.AllForeign(r), nil
}

// fetchLimited requests a URL of an exporter whose answer has at most limit bytes.
func fetchLimited(ctx context.Context, u *url.URL, limit int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := control.HTTPClient(nil).Do(req)
	if e := new(url.Error); errors.As(err, &e) { // it has the method and the URL
		return nil, e.Err
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP status %s", words.Foreign(resp.Status))
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(b)) > limit:
		return nil, fmt.Errorf("response larger than %d MiB", limit>>20)
	}
	return b, nil
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
