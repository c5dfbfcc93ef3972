package author

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/tune"
)

// tuneFlags holds the changes of the shipped rules: a file, and flags, which take precedence.
type tuneFlags struct {
	file                                  string
	leaveOut                              []string
	severities, waits, thresholds, labels []string // NAME=VALUE
	selector                              string
}

// add adds the flags.
func (t *tuneFlags) add(a *kingpin.CmdClause) {
	a.Flag("tune.file",
		"File with rule tuning, YAML, keys leave_out, severities, waits, thresholds, labels and selector. Flags take precedence.").
		PlaceHolder("FILE").StringVar(&t.file)
	a.Flag("tune.leave-out", "Alert to remove, with all its severities. Repeatable.").
		PlaceHolder("ALERT").StringsVar(&t.leaveOut)
	a.Flag("tune.severity",
		"Severity of an alert, or of its rules with one severity, such as RDMAPortDown=warning or RDMALinkErrors:warning=info. Repeatable.").
		PlaceHolder("ALERT=SEVERITY").StringsVar(&t.severities)
	a.Flag("tune.wait", "How long an alert waits before it fires (for), such as RDMAPortDown=5m. Repeatable.").
		PlaceHolder("ALERT=DURATION").StringsVar(&t.waits)
	a.Flag("tune.threshold", "Value of a threshold, recorded by a file of the set node. Names are in docs/alerts.md. Repeatable.").
		PlaceHolder("NAME=VALUE").StringsVar(&t.thresholds)
	a.Flag("tune.label", "Label added to all alerts. Repeatable.").PlaceHolder("NAME=VALUE").StringsVar(&t.labels)
	a.Flag("tune.selector", "Label matchers added to all series of the exporter and to up, such as cluster=\"a\".").
		PlaceHolder("MATCHERS").StringVar(&t.selector)
}

// maxTuneFile limits the file.
const maxTuneFile = 1 << 20

// read reads the file, and applies the flags.
func (t *tuneFlags) read() (out tune.Tuning, err error) {
	if t.file != "" {
		text, err := command.ReadSmall(t.file, maxTuneFile)
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
	}{
		"tune.severity": {t.severities, &set.Severities}, "tune.wait": {t.waits, &set.Waits},
		"tune.threshold": {t.thresholds, &set.Thresholds},
		"tune.label":     {t.labels, &set.Labels},
	} {
		if *to.into, err = pairs(flag, to.given); err != nil {
			return out, err
		}
	}
	return out.Merge(set), nil
}

// pairs returns the values of a flag that takes NAME=VALUE.
func pairs(flag string, given []string) (map[string]string, error) {
	out := map[string]string{}
	for _, g := range given {
		name, value, ok := strings.Cut(g, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--%s=%s: must be NAME=VALUE", flag, g)
		}
		out[name] = value
	}
	return out, nil
}

// apply changes rule files.
func (t *tuneFlags) apply(files []command.File) ([]command.File, error) {
	tuning, err := t.read()
	if err != nil {
		return nil, err
	}
	var in []tune.File
	for _, f := range files {
		in = append(in, tune.File{Name: f.Name, Text: f.Text})
	}
	tuned, err := tuning.Apply(in)
	if err != nil {
		return nil, hinted(err)
	}
	var out []command.File
	for _, f := range tuned {
		out = append(out, command.File{Name: f.Name, Text: f.Text})
	}
	return out, nil
}

// hinted adds similar names to errors of unknown names.
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
	return fmt.Errorf("%w: %s", err, command.Hint(u.Name, u.Known, "names are in docs/alerts.md"))
}
