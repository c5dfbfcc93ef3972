package ruleplay_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/ruleplay"
)

// TestReplicas: two series of each target, as of two replicas of a Prometheus without deduplication, have the alerts of
// one, also when the second was read 7 seconds later. targets.test.yml has replicas of its own.
func TestReplicas(t *testing.T) {
	u := ruleplay.Read(t, "../../rules/tests/link_changes.test.yml")
	for i := range u.Tests {
		once, twice := &u.Tests[i], doubled(u.Tests[i])
		a, b := u.Play(t, once), u.Play(t, &twice)
		times := map[time.Duration]bool{}
		for _, alert := range once.Alerts {
			times[ruleplay.Duration(t, alert.At)] = true
		}
		for _, at := range slices.Sorted(maps.Keys(times)) {
			for _, p := range []*ruleplay.Play{a, b} {
				if err := p.Until(t.Context(), at, func() {}); err != nil {
					t.Fatalf("%s: %v", once.Name, err)
				}
			}
			if want, got := stated(a), stated(b); !slices.Equal(want, got) {
				t.Errorf("%s, at %v:\none series of each target: %s\ntwo: %s", once.Name, at, want, got)
			}
		}
	}
}

var firstOfCourse = regexp.MustCompile(`^\d+`)

// doubled returns a test with each series twice, by the label replica.
func doubled(once ruleplay.Test) ruleplay.Test {
	twice := once
	twice.Input = nil
	for _, s := range once.Input {
		for _, replica := range []string{"a", "b"} {
			x := s
			name, labels, braced := strings.Cut(s.Series, "{")
			if !braced {
				labels = "}"
			}
			x.Series = fmt.Sprintf("%s{replica=%q,%s", name, replica, labels)
			if name == "rdma_host_uptime_seconds" && replica == "b" {
				x.Values = firstOfCourse.ReplaceAllStringFunc(x.Values, func(n string) string {
					seconds, _ := strconv.Atoi(n) // digits
					return strconv.Itoa(seconds + 7)
				})
			}
			twice.Input = append(twice.Input, x)
		}
	}
	return twice
}

// stated returns the alerts of a play with their values and states.
func stated(p *ruleplay.Play) (out []string) {
	for _, a := range p.Alerts() {
		out = append(out, fmt.Sprint(a.Labels, " ", a.Value, " ", a.State))
	}
	slices.Sort(out)
	return out
}
