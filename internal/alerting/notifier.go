package alerting

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	httpconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/notifier"
	"github.com/prometheus/prometheus/rules"
)

// validBeyond is added to the four minutes for which Alertmanager keeps an alert without an update: the last update may be 75 s before the
// exporter ended, and the next one is sent in the second round after the restart. A restart within four minutes then resolves nothing.
const validBeyond = 2 * time.Minute

// NotifierOptions are the destinations of alerts.
type NotifierOptions struct {
	URLs []string // of Alertmanagers; each receives all alerts
	// HTTPFile configures TLS, authentication and proxies: the contents of `http_config` in Prometheus; empty: none.
	HTTPFile       string
	ExternalLabels map[string]string // added to each alert without them
	ExternalURL    string            // link target for details
	Logger         *slog.Logger
}

// Notifier sends alerts to Alertmanagers.
type Notifier struct {
	opts NotifierOptions

	mu      sync.Mutex
	text    string          // content of HTTPFile in use
	senders []*sender       // the last is in use, the others are ending
	closed  bool            // nothing is sent or changed any more
	before  Deliveries      // of senders that have ended
	failing map[string]bool // Alertmanagers that rejected the last request, by URL
	ending  sync.WaitGroup  // senders replaced by a reload
}

// NewNotifier reads the configuration and starts. Close ends it.
func NewNotifier(o NotifierOptions) (*Notifier, error) {
	n := &Notifier{opts: o, failing: map[string]bool{}}
	if n.opts.Logger == nil {
		n.opts.Logger = slog.New(slog.DiscardHandler)
	}
	conf, groups, text, err := n.read()
	if err != nil {
		return nil, err
	}
	s, err := newSender(conf, groups, n.answered)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.HTTPFile, err)
	}
	n.senders, n.text = []*sender{s}, text
	return n, nil
}

// read converts the options to the library's configuration. It changes nothing.
func (n *Notifier) read() (*config.Config, map[string][]*targetgroup.Group, string, error) {
	client, text := &httpconfig.DefaultHTTPClientConfig, []byte(nil)
	if n.opts.HTTPFile != "" {
		var err error
		if client, text, err = httpconfig.LoadHTTPConfigFile(n.opts.HTTPFile); err != nil {
			if strings.Contains(err.Error(), "field http_config not found") {
				err = errors.New("it contains the key http_config: use the contents of http_config, without the key")
			}
			return nil, nil, "", fmt.Errorf("%s: %w", n.opts.HTTPFile, err)
		}
		// Files that it refers to are opened when a client is created.
		if _, err := httpconfig.NewClientFromConfig(*client, "alertmanager"); err != nil {
			return nil, nil, "", fmt.Errorf("%s: %w", n.opts.HTTPFile, err)
		}
	}
	conf := &config.Config{GlobalConfig: config.DefaultGlobalConfig}
	conf.GlobalConfig.ExternalLabels = labels.FromMap(n.opts.ExternalLabels)
	groups := map[string][]*targetgroup.Group{}
	for i, text := range n.opts.URLs {
		u, err := parseAlertmanager(text)
		if err != nil {
			return nil, nil, "", err
		}
		am := config.DefaultAlertmanagerConfig
		am.Scheme, am.PathPrefix, am.HTTPClientConfig = u.Scheme, u.Path, *client
		conf.AlertingConfig.AlertmanagerConfigs = append(conf.AlertingConfig.AlertmanagerConfigs, &am)
		groups[fmt.Sprintf("config-%d", i)] = []*targetgroup.Group{{Targets: []model.LabelSet{{model.AddressLabel: model.LabelValue(u.Host)}}}}
	}
	return conf, groups, string(text), nil
}

// CheckURL checks the URL of an Alertmanager.
func CheckURL(text string) error {
	_, err := parseAlertmanager(text)
	return err
}

func parseAlertmanager(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("%s: must be http://HOST:PORT/… or https://HOST:PORT/… of an Alertmanager, with credentials in a separate file", text)
	}
	return u, nil
}

// Prepare reads the configuration file again. apply puts it into use and does not wait for requests. If an error is returned nothing has
// changed.
func (n *Notifier) Prepare() (apply func(), err error) {
	conf, groups, text, err := n.read()
	if err != nil {
		return nil, err
	}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if text == n.text || n.closed { // files that it refers to are read with each request
			return
		}
		s, err := newSender(conf, groups, n.answered)
		if err != nil { // read has created a client before
			n.opts.Logger.Error("reload of the Alertmanager configuration failed, keeping the previous one", "err", err)
			return
		}
		old := n.senders[len(n.senders)-1]
		n.senders, n.text = append(n.senders, s), text
		n.ending.Go(func() { n.end(old) })
	}, nil
}

// end ends a replaced sender.
func (n *Notifier) end(s *sender) {
	if lost := s.drain(); lost > 0 {
		n.opts.Logger.Warn("alerts dropped: no answer from Alertmanager before the shutdown timeout", "alerts", lost)
	}
	n.mu.Lock()
	d, err := s.deliveries()
	if err == nil {
		n.before.add(d)
	}
	n.senders = slices.DeleteFunc(n.senders, func(x *sender) bool { return x == s })
	n.mu.Unlock()
	s.stop()
}

// notify queues alerts: rules.NotifyFunc. rules.SendAlerts would link to a page that this program does not have.
func (n *Notifier) notify(_ context.Context, _ string, alerts ...*rules.Alert) {
	var out []*notifier.Alert
	for _, a := range alerts {
		ends := a.ResolvedAt
		if ends.IsZero() {
			ends = a.ValidUntil.Add(validBeyond)
		}
		out = append(out, &notifier.Alert{
			Labels: a.Labels, Annotations: a.Annotations, StartsAt: a.FiredAt, EndsAt: ends, GeneratorURL: n.opts.ExternalURL,
		})
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(out) > 0 && !n.closed {
		n.senders[len(n.senders)-1].send(out)
	}
}

// answered logs when an Alertmanager starts to fail and when it recovers.
func (n *Notifier) answered(r *http.Request, resp *http.Response, reason error) {
	if reason == nil && resp.StatusCode/100 != 2 {
		reason = errors.New(resp.Status)
	}
	at := r.URL.String() // without credentials: those are in the file
	n.mu.Lock()
	failed := n.failing[at]
	n.failing[at] = reason != nil
	n.mu.Unlock()
	switch {
	case reason != nil && !failed:
		n.opts.Logger.Warn("sending alerts to Alertmanager failed; firing alerts are sent again every minute", "alertmanager", at, "err", reason)
	case reason == nil && failed:
		n.opts.Logger.Info("sending alerts to Alertmanager works again", "alertmanager", at)
	}
}

// Deliveries counts alerts, once per Alertmanager.
type Deliveries struct {
	Alertmanagers         int
	Sent, Errors, Dropped float64 // Dropped includes Errors and alerts that found the queue full
}

// add adds the counts of a sender; all senders have the same Alertmanagers.
func (d *Deliveries) add(of Deliveries) {
	d.Alertmanagers = of.Alertmanagers
	d.Sent += of.Sent
	d.Errors += of.Errors
	d.Dropped += of.Dropped
}

// Deliveries returns the counts since the start.
func (n *Notifier) Deliveries() Deliveries {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.before
	for _, s := range n.senders {
		if of, err := s.deliveries(); err == nil {
			d.add(of)
		}
	}
	return d
}

// Close sends what is queued and waits a few seconds for the answers. It is called once.
func (n *Notifier) Close() {
	n.mu.Lock()
	last := n.senders[len(n.senders)-1]
	n.closed = true
	n.mu.Unlock()
	n.end(last)
	n.ending.Wait()
}

// ParseLabels parses NAME=VALUE pairs.
func ParseLabels(pairs []string) (map[string]string, error) {
	out := map[string]string{}
	for _, p := range pairs {
		name, value, ok := strings.Cut(p, "=")
		if !ok || !model.LegacyValidation.IsValidLabelName(name) || strings.HasPrefix(name, model.ReservedLabelPrefix) || value == "" {
			return nil, fmt.Errorf("%s: must be NAME=VALUE, with a label name of letters, digits and _", p)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("%s: duplicate label", p)
		}
		out[name] = value
	}
	return out, nil
}
