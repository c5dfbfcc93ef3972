package app

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/alerting"
)

// alertingConfig is what an operator says of the rules and of where their alerts go.
type alertingConfig struct {
	on             bool
	interval       time.Duration
	alertmanagers  []string // URLs
	httpFile       string
	ruleFiles      []string // globs
	job, instance  string
	externalPairs  []string
	externalLabels map[string]string
	sendReplay     bool
	runbooks       runbookURL // of the operator
}

func (a *alertingConfig) flags(c *kingpin.CmdClause) {
	c.Flag("alerting", "Judge the alerting rules here; without it the program only exports.").Default("true").BoolVar(&a.on)
	c.Flag("alerting.interval", "How often the rules are evaluated, from 1s to 2m; a collection younger than half of it is used again.").Default("15s").DurationVar(&a.interval)
	c.Flag("alerting.alertmanager-url", "An Alertmanager to send alerts to; may be repeated, each gets all. Without one nobody is told.").PlaceHolder("URL").StringsVar(&a.alertmanagers)
	c.Flag("alerting.alertmanager-config-file", "How the Alertmanagers are reached, YAML: TLS, authentication, the contents of http_config in Prometheus.").PlaceHolder("FILE").StringVar(&a.httpFile)
	c.Flag("alerting.rule-files", "Rule files to evaluate besides those in the binary, or instead of one of the same name; a glob, may be repeated.").PlaceHolder("GLOB").StringsVar(&a.ruleFiles)
	c.Flag("alerting.job", "Label job of the alerts, as a central Prometheus would set it.").Default("rdma_exporter").StringVar(&a.job)
	c.Flag("alerting.instance", "Label instance of the alerts: the address that a central Prometheus scrapes; HOSTNAME:PORT if empty.").PlaceHolder("HOST:PORT").StringVar(&a.instance)
	c.Flag("alerting.external-labels", "A label that is added to all alerts that are sent; may be repeated.").PlaceHolder("NAME=VALUE").StringsVar(&a.externalPairs)
	c.Flag("replay.send-alerts", "Send the alerts of a replay too, with the label replay=\"true\".").BoolVar(&a.sendReplay)
	a.runbooks.flag(c, "Where runbooks are read, for the annotation runbook_url of alerts; without it, the exporter's own pages where their address is known")
}

// Intervals of the rules: the shortest range in them is 5m, which has to hold several rounds.
const (
	minAlertingInterval = time.Second
	maxAlertingInterval = 2 * time.Minute
)

func (a *alertingConfig) check() (err error) {
	if a.interval < minAlertingInterval || a.interval > maxAlertingInterval {
		return fmt.Errorf("--alerting.interval: has to be from %s to %s: the rules look back 5m and more", minAlertingInterval, maxAlertingInterval)
	}
	if err := a.runbooks.check(); err != nil {
		return err
	}
	if a.job == "" {
		return errors.New("--alerting.job: has to be something")
	}
	if !a.on && len(a.alertmanagers) > 0 {
		return fmt.Errorf("--alerting.alertmanager-url=%s: has no effect with --no-alerting: no rules are evaluated and no alerts are sent", a.alertmanagers[0])
	}
	if a.httpFile != "" && len(a.alertmanagers) == 0 {
		return errors.New("--alerting.alertmanager-config-file: is of no use without --alerting.alertmanager-url")
	}
	for i, u := range a.alertmanagers {
		if err := alerting.CheckURL(u); err != nil {
			return fmt.Errorf("--alerting.alertmanager-url=%w", err)
		}
		if slices.Contains(a.alertmanagers[:i], u) {
			return fmt.Errorf("--alerting.alertmanager-url=%s: is there twice", u)
		}
	}
	if a.externalLabels, err = alerting.ParseLabels(a.externalPairs); err != nil {
		return fmt.Errorf("--alerting.external-labels: %w", err)
	}
	return nil
}

// instanceOf is the address that a central Prometheus would scrape, as far as this host knows it.
func (a *alertingConfig) instanceOf(m *machine, listen []string) string {
	if a.instance != "" {
		return a.instance
	}
	port := defaultPort
	if len(listen) > 0 {
		if _, p, err := net.SplitHostPort(listen[0]); err == nil && p != "0" {
			port = p
		}
	}
	at := net.JoinHostPort(cmp.Or(m.hostname(), "unknown"), port)
	if _, err := url.Parse("http://" + at); err != nil { // sethostname(2) takes any bytes
		at = net.JoinHostPort("unknown", port)
	}
	return at
}

// notifier is nil where nobody is to be told.
func (a *alertingConfig) notifier(m *machine, o alerting.NotifierOptions) (*alerting.Notifier, error) {
	if len(a.alertmanagers) == 0 {
		return nil, nil
	}
	o.URLs, o.HTTPFile, o.ExternalLabels = a.alertmanagers, a.httpFile, maps.Clone(a.externalLabels)
	if m.player != nil {
		if !a.sendReplay {
			o.Logger.Warn("alerts of a replay are not sent without --replay.send-alerts")
			return nil, nil
		}
		o.ExternalLabels["replay"] = "true"
	}
	n, err := alerting.NewNotifier(o)
	if err != nil {
		return nil, fmt.Errorf("--alerting.alertmanager-config-file: %w", err)
	}
	return n, nil
}
