package tune

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/rules"
)

// ThresholdsFile is the rule file with the thresholds of a site. The rules read what it records in place of their
// defaults.
const ThresholdsFile = "thresholds.rules.yml"

// thresholds returns the values of a tuning, as in PromQL.
func (t Tuning) thresholds() (map[string]string, error) {
	all, out := rules.Thresholds(), map[string]string{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(t.Thresholds)) {
		i := slices.IndexFunc(all, func(t rules.Threshold) bool { return t.Name == name })
		if i < 0 {
			var known []string
			for _, t := range all {
				known = append(known, t.Name)
			}
			errs = append(errs, &Unknown{"threshold", name, known})
			continue
		}
		v, err := parse(all[i].Unit, strings.TrimSpace(t.Thresholds[name]))
		if err != nil {
			errs = append(errs, fmt.Errorf("threshold %s=%s: %w", name, t.Thresholds[name], err))
		}
		out[name] = v
	}
	return out, errors.Join(errs...)
}

// ruleFile returns the rule file of thresholds.
func ruleFile(thresholds map[string]string) File {
	var b strings.Builder
	b.WriteString("# Limits of this site, in place of the defaults of the rules.\ngroups:\n- name: rdma-thresholds\n  rules:\n")
	for _, name := range slices.Sorted(maps.Keys(thresholds)) {
		fmt.Fprintf(&b, "  - record: %s\n    labels: {name: %s}\n    expr: vector(%s)\n",
			rules.ThresholdMetric, name, thresholds[name])
	}
	return File{ThresholdsFile, []byte(b.String())}
}

// parse returns a value as written in the rules.
func parse(unit rules.Unit, s string) (string, error) {
	percent := unit == rules.Ratio && strings.HasSuffix(s, "%")
	v, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
	if percent {
		v /= 100
	}
	switch {
	case err != nil, math.IsNaN(v), math.IsInf(v, 0):
		return "", errors.New("must be a number")
	case unit == rules.Count && (v < 1 || v != math.Trunc(v) || v > 1e9):
		return "", errors.New("must be an integer, 1 or more")
	case unit == rules.Ratio && (v <= 0 || v > 1):
		return "", errors.New("must be greater than 0 and at most 1, or a percentage")
	}
	return strconv.FormatFloat(v, 'g', 6, 64), nil
}

var duration = regexp.MustCompile(`^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$`)

// checkWaits rejects what is no duration, or of no alert.
func (t Tuning) checkWaits(known []string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(t.Waits)) {
		switch v := t.Waits[name]; {
		case !slices.Contains(known, name):
			errs = append(errs, &Unknown{"alert", name, known})
		case v == "" || !duration.MatchString(v):
			errs = append(errs, fmt.Errorf("wait %s=%s: must be a duration such as 2m or 1h30m", name, v))
		}
	}
	return errors.Join(errs...)
}
