package alerting

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	httpconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/notifier"
	"github.com/prometheus/prometheus/rules"
)

const (
	// queueCapacity bounds the alerts that wait for one Alertmanager: all that 250 rules on 8 ports can fire.
	queueCapacity = 2000
	// drainTime is what a queue gets at the end.
	drainTime = 5 * time.Second
	// validBeyond is added to the four minutes for which an alert stays valid at its Alertmanager without a word: the last one may
	// have come 75 s before the exporter ended, and the next one comes in the second round of the next exporter. So a restart within
	// four minutes resolves nothing.
	validBeyond = 2 * time.Minute
)

// NotifierOptions say where alerts go.
type NotifierOptions struct {
	URLs []string // of Alertmanagers, each of which gets all alerts
	// HTTPFile says how they are reached: TLS, authentication, proxies, as `http_config` in Prometheus; empty: plainly.
	HTTPFile       string
	ExternalLabels map[string]string // added to each alert that does not have them
	ExternalURL    string            // where a person looks for more
	Logger         *slog.Logger
}

// Notifier hands alerts to Alertmanagers.
type Notifier struct {
	opts     NotifierOptions
	manager  *notifier.Manager
	registry *prometheus.Registry
	targets  chan map[string][]*targetgroup.Group
	ended    chan struct{}   // closed when all is sent or given up
	requests context.Context // ends with Close
	cancel   context.CancelFunc
	sending  sync.RWMutex // held for reading by each request

	mu      sync.Mutex
	text    string          // of HTTPFile, as it is in force
	failing map[string]bool // Alertmanagers that did not take the last request
	before  Deliveries      // of send loops that a reload has ended
}

// NewNotifier reads the configuration and starts. Close ends it.
func NewNotifier(o NotifierOptions) (*Notifier, error) {
	n := &Notifier{
		opts: o, registry: prometheus.NewRegistry(), failing: map[string]bool{},
		targets: make(chan map[string][]*targetgroup.Group), ended: make(chan struct{}),
	}
	if n.opts.Logger == nil {
		n.opts.Logger = slog.New(slog.DiscardHandler)
	}
	// What the library would log with each request is logged when it starts and when it ends.
	n.manager = notifier.NewManager(&notifier.Options{
		QueueCapacity: queueCapacity, DrainOnShutdown: true, Do: n.do, Registerer: n.registry,
	}, model.LegacyValidation, slog.New(slog.DiscardHandler))
	conf, groups, text, err := n.read()
	if err != nil {
		return nil, err
	}
	if err := n.manager.ApplyConfig(conf); err != nil {
		return nil, fmt.Errorf("%s: %w", o.HTTPFile, err)
	}
	n.text = text
	n.requests, n.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(n.ended)
		n.manager.Run(n.targets)
	}()
	n.discover(groups)
	return n, nil
}

// read makes the library's configuration of the options. It changes nothing.
func (n *Notifier) read() (*config.Config, map[string][]*targetgroup.Group, string, error) {
	client, text := &httpconfig.DefaultHTTPClientConfig, []byte(nil)
	if n.opts.HTTPFile != "" {
		var err error
		if client, text, err = httpconfig.LoadHTTPConfigFile(n.opts.HTTPFile); err != nil {
			return nil, nil, "", fmt.Errorf("%s: %w", n.opts.HTTPFile, err)
		}
		// Files that it names are opened when a client is made.
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

// CheckURL says what is wrong with the URL of an Alertmanager.
func CheckURL(text string) error {
	_, err := parseAlertmanager(text)
	return err
}

func parseAlertmanager(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("%s: has to be http://HOST:PORT/… or https://HOST:PORT/… of an Alertmanager, credentials in a file of their own", text)
	}
	return u, nil
}

// discover returns when alerts go to the Alertmanagers: the second message is taken when the first is done with.
func (n *Notifier) discover(groups map[string][]*targetgroup.Group) {
	n.targets <- groups
	n.targets <- nil
}

// Prepare reads the configuration file again. apply puts it in force; what is refused changes nothing.
func (n *Notifier) Prepare() (apply func(), err error) {
	conf, groups, text, err := n.read()
	if err != nil {
		return nil, err
	}
	return func() {
		n.mu.Lock()
		same := text == n.text
		n.text = text
		n.mu.Unlock()
		if same { // files that it names are read with each request
			return
		}
		// The library keeps the loops, and with them the clients, of a configuration that looks the same, and passwords look all the same.
		n.note(n.Deliveries())
		err := errors.Join(n.manager.ApplyConfig(&config.Config{GlobalConfig: conf.GlobalConfig}), n.manager.ApplyConfig(conf))
		if err != nil { // read has made a client already
			n.opts.Logger.Error("Alertmanagers' configuration is not in force", "err", err)
		}
		n.discover(groups)
	}, nil
}

// notify hands alerts to the queues: rules.NotifyFunc. See rules.SendAlerts, which links to a page that this program does not have.
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
	if len(out) > 0 {
		n.manager.Send(out...)
	}
}

// do sends a request, and says when an Alertmanager begins to refuse and when it takes alerts again.
func (n *Notifier) do(ctx context.Context, client *http.Client, r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(ctx) // the library ends it when it has read the answer
	stop := context.AfterFunc(n.requests, cancel)
	n.sending.RLock()
	context.AfterFunc(ctx, func() {
		stop()
		n.sending.RUnlock()
	})
	resp, err := client.Do(r.WithContext(ctx))
	reason := err
	if err == nil && resp.StatusCode/100 != 2 {
		reason = errors.New(resp.Status)
	}
	host := r.URL.Host
	n.mu.Lock()
	failed := n.failing[host]
	n.failing[host] = reason != nil
	n.mu.Unlock()
	switch {
	case reason != nil && !failed:
		n.opts.Logger.Warn("an Alertmanager does not take alerts; those that fire are sent again each minute", "alertmanager", host, "err", reason)
	case reason == nil && failed:
		n.opts.Logger.Info("the Alertmanager takes alerts again", "alertmanager", host)
	}
	return resp, err
}

// Deliveries count alerts, each for each Alertmanager.
type Deliveries struct {
	Alertmanagers         int
	Sent, Errors, Dropped float64 // Dropped are those of Errors and those for which the queue was full
}

// Deliveries since the start.
func (n *Notifier) Deliveries() Deliveries {
	n.mu.Lock()
	d := n.before
	n.mu.Unlock()
	d.Alertmanagers = len(n.manager.Alertmanagers())
	families, err := n.registry.Gather()
	if err != nil {
		return d
	}
	totals := map[string]*float64{
		"prometheus_notifications_sent_total": &d.Sent, "prometheus_notifications_errors_total": &d.Errors, "prometheus_notifications_dropped_total": &d.Dropped,
	}
	for _, f := range families {
		if total := totals[f.GetName()]; total != nil {
			for _, m := range f.GetMetric() {
				*total += m.GetCounter().GetValue()
			}
		}
	}
	return d
}

func (n *Notifier) note(d Deliveries) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.before = d
}

// Close sends what is in the queues and waits for the answers, for some seconds at most.
func (n *Notifier) Close() {
	timer := time.AfterFunc(drainTime, n.cancel)
	defer timer.Stop()
	n.manager.Stop()
	<-n.ended
	n.sending.Lock()
	defer n.sending.Unlock()
	n.cancel()
}

// ParseLabels reads NAME=VALUE pairs.
func ParseLabels(pairs []string) (map[string]string, error) {
	out := map[string]string{}
	for _, p := range pairs {
		name, value, ok := strings.Cut(p, "=")
		if !ok || !model.LegacyValidation.IsValidLabelName(name) || strings.HasPrefix(name, model.ReservedLabelPrefix) || value == "" {
			return nil, fmt.Errorf("%s: has to be NAME=VALUE, with a label name of letters, digits and _", p)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("%s: the label is there twice", p)
		}
		out[name] = value
	}
	return out, nil
}
