package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	httpconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/notifier"
	"github.com/prometheus/prometheus/rules"
)

// validBeyond is added to the four minutes for which Alertmanager keeps an alert without an update: the last update may
// be 75 s before the exporter ended, and the next one is sent in the second round after the restart. A restart within
// four minutes then resolves nothing.
const validBeyond = 2 * time.Minute

// Options are the destinations of alerts.
type Options struct {
	URLs []string // of Alertmanagers; each receives all alerts
	// HTTPFile configures TLS, authentication and proxies: the contents of `http_config` in Prometheus; empty: none.
	HTTPFile       string
	ExternalLabels map[string]string // added to each alert without them
	ExternalURL    string            // link target for details
	Logger         *slog.Logger
}

// Notifier sends alerts to Alertmanagers.
type Notifier struct {
	opts     Options
	external labels.Labels
	senders  []*sender // in the order of the URLs

	mu      sync.Mutex
	text    string            // content of HTTPFile in use
	closed  bool              // nothing is sent or changed any more
	failing map[string]string // URLs of Alertmanagers that did not accept the last request, with the remedy
}

// New reads the configuration and starts a Notifier. Close ends it.
func New(o Options) (*Notifier, error) {
	n := &Notifier{opts: o, external: labels.FromMap(o.ExternalLabels), failing: map[string]string{}}
	n.opts.Logger = cmp.Or(n.opts.Logger, slog.New(slog.DiscardHandler))
	for _, u := range o.URLs {
		if err := CheckURL(u); err != nil {
			return nil, err
		}
	}
	client, text, err := n.read()
	if err != nil {
		return nil, err
	}
	n.text = text
	for _, u := range o.URLs {
		n.senders = append(n.senders, newSender(u, client, n.answered, n.skewed))
	}
	return n, nil
}

// read makes a client of the HTTP configuration file. It changes nothing.
func (n *Notifier) read() (*http.Client, string, error) {
	conf, text := &httpconfig.DefaultHTTPClientConfig, []byte(nil)
	var err error
	if n.opts.HTTPFile != "" {
		if conf, text, err = httpconfig.LoadHTTPConfigFile(n.opts.HTTPFile); err != nil {
			if strings.Contains(err.Error(), "field http_config not found") {
				err = errors.New("it contains the key http_config: use the contents of http_config, without the key")
			}
			return nil, "", fmt.Errorf("%s: %w", n.opts.HTTPFile, err)
		}
	}
	client, err := httpconfig.NewClientFromConfig(*conf, "alertmanager") // opens the files that it refers to
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", n.opts.HTTPFile, err)
	}
	// A redirected POST becomes a GET without the alerts, and who answers may choose where they go: follow_redirects has
	// no effect.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client, string(text), nil
}

// CheckURL checks the URL of an Alertmanager.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return fmt.Errorf("%s: must be http://HOST:PORT/… or https://HOST:PORT/… of an Alertmanager, with credentials in a separate file", text)
	}
	return nil
}

// Prepare reads the configuration file again. apply puts it into use and does not wait for requests. If an error is
// returned nothing has changed.
func (n *Notifier) Prepare() (apply func(), err error) {
	client, text, err := n.read()
	if err != nil {
		return nil, err
	}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if text == n.text || n.closed { // files that it refers to are read with each request
			return
		}
		n.text = text
		for _, s := range n.senders {
			s.use(client)
		}
	}, nil
}

// Notify queues alerts and does not wait: rules.NotifyFunc. rules.SendAlerts would link to a page that this program
// does not have.
func (n *Notifier) Notify(_ context.Context, _ string, alerts ...*rules.Alert) {
	var out []*notifier.Alert
	for _, a := range alerts {
		ends := a.ResolvedAt
		if ends.IsZero() {
			ends = a.ValidUntil.Add(validBeyond)
		}
		out = append(out, &notifier.Alert{
			Labels: n.labeled(a.Labels), Annotations: a.Annotations, StartsAt: a.FiredAt, EndsAt: ends,
			GeneratorURL: n.opts.ExternalURL,
		})
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(out) == 0 || n.closed {
		return
	}
	for _, s := range n.senders {
		s.send(out)
	}
}

// labeled adds the external labels that an alert does not have.
func (n *Notifier) labeled(of labels.Labels) labels.Labels {
	b := labels.NewBuilder(n.external)
	of.Range(func(l labels.Label) { b.Set(l.Name, l.Value) })
	return b.Labels()
}

// answered logs when an Alertmanager starts to fail, when the remedy is another one, and when it recovers.
func (n *Notifier) answered(at string, reason error) {
	cause := remedyOf(reason)
	n.mu.Lock()
	before, failed := n.failing[at]
	if n.failing[at] = cause; reason == nil {
		delete(n.failing, at)
	}
	n.mu.Unlock()
	log := n.opts.Logger.With("alertmanager", at)
	switch {
	case reason == nil && failed:
		log.Info("sending alerts to Alertmanager works again")
	case reason == nil || failed && before == cause:
	case isRejection(reason):
		log.Warn("Alertmanager rejected alerts, dropping them", "err", withRemedy(reason, cause))
	default:
		log.Warn("sending alerts to Alertmanager failed, retrying every "+retryDelay.String(),
			"err", withRemedy(reason, cause))
	}
}

// skewed logs that the clock of an Alertmanager is ahead of that of this host, or behind if ahead is negative; 0: no
// longer.
func (n *Notifier) skewed(at string, ahead time.Duration) {
	log := n.opts.Logger.With("alertmanager", at)
	switch {
	case ahead == 0:
		log.Info("clock of this host agrees with that of Alertmanager again")
	case ahead > 0:
		log.Warn("clock of this host is behind that of Alertmanager, sending alerts with the times of its clock",
			"by", ahead.Round(time.Second))
	default:
		log.Warn("clock of this host is ahead of that of Alertmanager, sending alerts with the times of its clock",
			"by", -ahead.Round(time.Second))
	}
}

func withRemedy(err error, remedy string) error {
	if remedy == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, remedy)
}

// Deliveries counts the alerts for one Alertmanager since the start.
type Deliveries struct {
	Alertmanager string  // its URL
	Queued       float64 // now, including those of a request in progress
	Sent         float64 // accepted
	Errors       float64 // of failed requests, counted in each attempt
	// lost: the queue was full, the Alertmanager rejected them, or it did not answer before the exporter ended.
	Dropped float64
}

// Deliveries returns the counts of each Alertmanager, in the order of the options.
func (n *Notifier) Deliveries() (out []Deliveries) {
	for _, s := range n.senders {
		out = append(out, s.deliveries())
	}
	return out
}

// Close sends what is queued and waits a few seconds for the answers. It is called once.
func (n *Notifier) Close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	var all sync.WaitGroup
	for _, s := range n.senders {
		all.Go(func() {
			if lost := s.drain(); lost > 0 {
				n.opts.Logger.Warn("alerts dropped: Alertmanager did not accept them before the shutdown timeout",
					"alertmanager", s.url, "alerts", lost)
			}
		})
	}
	all.Wait()
}

// ParseLabels parses NAME=VALUE pairs.
func ParseLabels(pairs []string) (map[string]string, error) {
	out := map[string]string{}
	for _, p := range pairs {
		name, value, ok := strings.Cut(p, "=")
		if !ok || !model.LegacyValidation.IsValidLabelName(name) ||
			strings.HasPrefix(name, model.ReservedLabelPrefix) || value == "" {
			return nil, fmt.Errorf("%s: must be NAME=VALUE, with a label name of letters, digits and _", p)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("%s: duplicate label", p)
		}
		out[name] = value
	}
	return out, nil
}
