// Package tune changes the shipped rules without a copy of them: removed alerts, severities, thresholds, labels, a
// selector. It edits the text, which keeps comments and the format of expressions. It does no I/O.
package tune

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/rules"
)

// Tuning is the changes of the shipped rules. The zero value changes nothing.
type Tuning struct {
	LeaveOut   []string          `yaml:"leave_out"`  // alerts, in all their severities
	Severities map[string]string `yaml:"severities"` // by ALERT or ALERT:SEVERITY
	Waits      map[string]string `yaml:"waits"`      // `for`, by ALERT
	Thresholds map[string]string `yaml:"thresholds"` // by the names in rules.Thresholds
	Labels     map[string]string `yaml:"labels"`     // of every alert
	Selector   string            `yaml:"selector"`   // label matchers for every series of the exporter
}

// DefaultSeverity is the label with the shipped severity of an alert whose severity is changed: that of its symptom.
const DefaultSeverity = "default_severity"

// Severities that an alert can be given, the worst first.
func Severities() []string { return []string{"critical", "warning", "info"} }

// File is a rule file.
type File struct {
	Name string
	Text []byte
}

// Unknown is the error of an unknown name in a tuning.
type Unknown struct {
	What, Name string
	Known      []string
}

func (u *Unknown) Error() string { return fmt.Sprintf("unknown %s %s", u.What, u.Name) }

// Parse reads the file form of a tuning.
func Parse(text []byte) (t Tuning, err error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&t); err != nil && !errors.Is(err, io.EOF) {
		return Tuning{}, err
	}
	return t, nil
}

// Merge adds o to t. Values in o take precedence.
func (t Tuning) Merge(o Tuning) Tuning {
	t.LeaveOut = slices.Concat(t.LeaveOut, o.LeaveOut)
	t.Severities, t.Waits = merge(t.Severities, o.Severities), merge(t.Waits, o.Waits)
	t.Thresholds, t.Labels = merge(t.Thresholds, o.Thresholds), merge(t.Labels, o.Labels)
	if o.Selector != "" {
		t.Selector = o.Selector
	}
	return t
}

func merge(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, b)
	return out
}

// isZero reports whether the tuning changes nothing.
func (t Tuning) isZero() bool {
	return len(t.LeaveOut)+len(t.Severities)+len(t.Waits)+len(t.Thresholds)+len(t.Labels) == 0 && t.Selector == ""
}

// Apply returns the tuned files, after the file of thresholds if there are any. Names are checked against all shipped
// sets, the files may be one of these.
func (t Tuning) Apply(files []File) ([]File, error) {
	if t.isZero() {
		return files, nil
	}
	shipped, err := shippedRules()
	if err != nil {
		return nil, err
	}
	c, err := t.check(shipped)
	if err != nil {
		return nil, err
	}
	var out []File
	if len(c.limits) > 0 {
		out = append(out, ruleFile(c.limits))
	}
	for _, f := range files {
		parsed := split(string(f.Text))
		if err := c.apply(parsed); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		out = append(out, File{f.Name, []byte(parsed.join())})
	}
	return out, nil
}

// shippedRules returns all rules of the sets node and central.
func shippedRules() (out []*rule, err error) {
	files, names, err := rules.Both()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("read rules: %w", err)
		}
		for _, p := range split(string(text)).pieces {
			if p.rule != nil {
				out = append(out, p.rule)
			}
		}
	}
	return out, nil
}

// changes is a tuning that was checked.
type changes struct {
	Tuning
	severities map[string]map[string]string // by alert: new severity by shipped severity
	limits     map[string]string            // thresholds, as in PromQL
}

func (t Tuning) check(shipped []*rule) (*changes, error) {
	c := &changes{Tuning: t, severities: map[string]map[string]string{}}
	var errs []error
	has := map[string][]string{} // severities by alert
	for _, r := range shipped {
		if r.alert {
			has[r.name] = append(has[r.name], r.severity())
		}
	}
	known := slices.Sorted(maps.Keys(has))
	for _, name := range t.LeaveOut {
		if has[name] == nil {
			errs = append(errs, &Unknown{"alert", name, known})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t.Severities)) {
		name, from, one := strings.Cut(key, ":")
		switch to := t.Severities[key]; {
		case has[name] == nil:
			errs = append(errs, &Unknown{"alert", name, known})
		case !slices.Contains(Severities(), to):
			errs = append(errs, fmt.Errorf("severity %s=%s: must be one of %s", key, to, strings.Join(Severities(), ", ")))
		case one && !slices.Contains(has[name], from):
			errs = append(errs,
				&Unknown{"severity of " + name + ",", from, slices.Compact(slices.Sorted(slices.Values(has[name])))})
		default:
			if c.severities[name] == nil {
				c.severities[name] = map[string]string{}
			}
			for _, s := range has[name] {
				if _, more := t.Severities[name+":"+s]; s == from || !one && !more {
					c.severities[name][s] = to
				}
			}
		}
	}
	var err error
	c.limits, err = t.thresholds()
	errs = append(errs, err, t.checkWaits(known))
	errs = append(errs, checkLabels(t.Labels, shipped))
	if t.Selector != "" {
		if err := checkMatchers(t.Selector); err != nil {
			errs = append(errs, err)
		}
	}
	return c, errors.Join(errs...)
}

var (
	labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	grouping  = regexp.MustCompile(`\b(?:by|on|group_left) \(([^)]*)\)`)
)

// checkLabels rejects labels that alerts have, and labels that rules join on: ALERTS would no longer join with the
// series of its host.
func checkLabels(labels map[string]string, shipped []*rule) error {
	if len(labels) == 0 {
		return nil
	}
	own := map[string]bool{
		"alertname": true, "alertstate": true, "severity": true, "drain": true, DefaultSeverity: true, "replay": true,
	}
	for _, r := range shipped {
		for _, m := range grouping.FindAllStringSubmatch(r.text, -1) {
			for name := range strings.SplitSeq(m[1], ",") {
				own[strings.TrimSpace(name)] = true
			}
		}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		switch {
		case !labelName.MatchString(name):
			errs = append(errs, fmt.Errorf("label %s: invalid name: must match [a-zA-Z_][a-zA-Z0-9_]*", name))
		case name == "cluster":
			errs = append(errs,
				errors.New("label cluster: reserved, the rules join on it: set it in external_labels or by relabeling"))
		case own[name]:
			errs = append(errs, fmt.Errorf("label %s: reserved, alerts have this label", name))
		}
	}
	return errors.Join(errs...)
}
