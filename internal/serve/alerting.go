package serve

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/alerting/notify"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rulefiles"
)

// Alerting holds the flags of rules and notifications.
type Alerting struct {
	on             bool
	Interval       time.Duration
	alertmanagers  []string // URLs
	httpFile       string
	RuleFiles      []string // globs
	job, instance  string
	externalPairs  []string
	externalLabels map[string]string
	sendReplay     bool
	Runbooks       rulefiles.RunbookURL // of the operator
}

// Flags adds the flags, with the defaults of a daemon.
func (a *Alerting) Flags(c *kingpin.CmdClause, job, interval string) {
	c.Flag("alerting", "Evaluate the alerting rules. With --no-alerting, serve metrics only.").
		Default("true").BoolVar(&a.on)
	c.Flag("alerting.interval",
		"Rule evaluation interval, from 1s to 2m. A collection younger than half of it is reused.").
		Default(interval).DurationVar(&a.Interval)
	c.Flag("alerting.alertmanager-url",
		"Alertmanager to send alerts to. Repeatable; each gets all alerts. Without one, no alerts are sent.").
		PlaceHolder("URL").StringsVar(&a.alertmanagers)
	c.Flag("alerting.alertmanager-config-file",
		"HTTP client configuration for the Alertmanagers, YAML: TLS and authentication, the contents of http_config in Prometheus.").
		PlaceHolder("FILE").StringVar(&a.httpFile)
	c.Flag("alerting.rule-files",
		"Additional rule files, as a glob. A file replaces the built-in one of the same name. Repeatable.").
		PlaceHolder("GLOB").StringsVar(&a.RuleFiles)
	c.Flag("alerting.job", "Label job of alerts, as set by a central Prometheus.").
		Default(job).StringVar(&a.job)
	c.Flag("alerting.instance",
		"Label instance of alerts: the address scraped by a central Prometheus. Default: HOSTNAME:PORT.").
		PlaceHolder("HOST:PORT").StringVar(&a.instance)
	c.Flag("alerting.external-labels", "Label added to all alerts sent. Repeatable.").
		PlaceHolder("NAME=VALUE").StringsVar(&a.externalPairs)
	c.Flag("replay.send-alerts", "Send the alerts of a replay, with the label replay=\"true\".").BoolVar(&a.sendReplay)
	c.Flag("runbook-url", "Runbooks for the annotation runbook_url of alerts. Default: the pages of this exporter, if its address is known."+rulefiles.RunbookURLHelp).
		PlaceHolder("URL").StringVar((*string)(&a.Runbooks))
}

// Limits of the evaluation interval: the shortest range of the rules is 5m and must contain several rounds.
const (
	minAlertingInterval = time.Second
	maxAlertingInterval = 2 * time.Minute
)

// Check validates the flags.
func (a *Alerting) Check() (err error) {
	wrongBooks := a.Runbooks.Check()
	if err := (command.Checks{
		{a.Interval < minAlertingInterval || a.Interval > maxAlertingInterval, fmt.Errorf("--alerting.interval=%s: must be from 1s to 2m: the ranges of the rules start at 5m", a.Interval)},
		{wrongBooks != nil, wrongBooks},
		{a.job == "", errors.New("--alerting.job: must not be empty")},
		{a.httpFile != "" && len(a.alertmanagers) == 0, fmt.Errorf("--alerting.alertmanager-config-file=%s: has no effect without --alerting.alertmanager-url", a.httpFile)},
	}).First(); err != nil {
		return err
	}
	for i, u := range a.alertmanagers {
		wrong := notify.CheckURL(u)
		if err := (command.Checks{
			{!a.on, fmt.Errorf("--alerting.alertmanager-url=%s: has no effect with --no-alerting, which sends no alerts", u)},
			{wrong != nil, fmt.Errorf("--alerting.alertmanager-url=%w", wrong)},
			{slices.Contains(a.alertmanagers[:i], u), fmt.Errorf("--alerting.alertmanager-url=%s: given more than once", u)},
		}).First(); err != nil {
			return err
		}
	}
	if a.externalLabels, err = notify.ParseLabels(a.externalPairs); err != nil {
		return fmt.Errorf("--alerting.external-labels: %w", err)
	}
	return nil
}

// newNotifier returns the notifier; nil if no alerts are sent.
func (a *Alerting) newNotifier(m *machine.Machine, o notify.Options) (*notify.Notifier, error) {
	if len(a.alertmanagers) == 0 {
		return nil, nil
	}
	o.URLs, o.HTTPFile, o.ExternalLabels = a.alertmanagers, a.httpFile, maps.Clone(a.externalLabels)
	if m.Player != nil {
		if !a.sendReplay {
			o.Logger.Warn("not sending the alerts of the replay: --replay.send-alerts is not set")
			return nil, nil
		}
		o.ExternalLabels["replay"] = "true"
	}
	n, err := notify.New(o)
	if err != nil {
		return nil, fmt.Errorf("--alerting.alertmanager-config-file=%s: %w", a.httpFile, err)
	}
	return n, nil
}
