package app

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/tune"
)

// tuneConfig is how the shipped rules are to be changed: a file, and flags, which win.
type tuneConfig struct {
	file                           string
	leaveOut                       []string
	severities, thresholds, labels []string // NAME=VALUE
	selector                       string
}

func (t *tuneConfig) flags(a *kingpin.CmdClause) {
	a.Flag("tune.file", "Changes of the rules in one file, with the keys leave_out, severities, thresholds, labels and selector. Flags win.").PlaceHolder("FILE").StringVar(&t.file)
	a.Flag("tune.leave-out", "Alert to leave out, in all its severities. Can be repeated.").PlaceHolder("ALERT").StringsVar(&t.leaveOut)
	a.Flag("tune.severity", "Severity of an alert, or of those of its cases that have one severity: RDMAPortDown=warning, RDMALinkErrors:warning=info. Can be repeated.").PlaceHolder("ALERT=SEVERITY").StringsVar(&t.severities)
	a.Flag("tune.threshold", "Value of a threshold; docs/alerts.md has the names. Can be repeated.").PlaceHolder("NAME=VALUE").StringsVar(&t.thresholds)
	a.Flag("tune.label", "Label to add to every alert. Can be repeated.").PlaceHolder("NAME=VALUE").StringsVar(&t.labels)
	a.Flag("tune.selector", "Label matchers for all series of the exporter and up, as between the braces of a PromQL selector.").PlaceHolder("MATCHERS").StringVar(&t.selector)
}

// maxTuneFile bounds a file of changes.
const maxTuneFile = 1 << 20

func (t *tuneConfig) tuning() (out tune.Tuning, err error) {
	if t.file != "" {
		text, err := readSmall(t.file, maxTuneFile)
		if err != nil {
			return out, fmt.Errorf("--tune.file=%s: %w", t.file, err)
		}
		if out, err = tune.Parse(text); err != nil {
			return out, fmt.Errorf("--tune.file=%s: %w", t.file, err)
		}
	}
	set := tune.Tuning{LeaveOut: t.leaveOut, Selector: t.selector}
	for flag, to := range map[string]struct {
		given []string
		into  *map[string]string
	}{"tune.severity": {t.severities, &set.Severities}, "tune.threshold": {t.thresholds, &set.Thresholds}, "tune.label": {t.labels, &set.Labels}} {
		if *to.into, err = pairs(flag, to.given); err != nil {
			return out, err
		}
	}
	return out.Merge(set), nil
}

// pairs are the values of a flag that takes NAME=VALUE.
func pairs(flag string, given []string) (map[string]string, error) {
	out := map[string]string{}
	for _, g := range given {
		name, value, ok := strings.Cut(g, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--%s=%s: has to be NAME=VALUE", flag, g)
		}
		out[name] = value
	}
	return out, nil
}

// apply changes rule files.
func (t *tuneConfig) apply(files []embedded) ([]embedded, error) {
	tuning, err := t.tuning()
	if err != nil {
		return nil, err
	}
	var in []tune.File
	for _, f := range files {
		in = append(in, tune.File{Name: f.name, Text: f.text})
	}
	tuned, err := tuning.Apply(in)
	if err != nil {
		return nil, hinted(err)
	}
	var out []embedded
	for _, f := range tuned {
		out = append(out, embedded{f.Name, f.Text})
	}
	return out, nil
}

// hinted adds to each unknown name those that may be meant.
func hinted(err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range all.Unwrap() {
			out = append(out, hinted(e))
		}
		return errors.Join(out...)
	}
	var u *tune.Unknown
	if !errors.As(err, &u) {
		return err
	}
	hint := "docs/alerts.md has the names"
	if near := closest(u.Name, u.Known); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("%w: %s", err, hint)
}
