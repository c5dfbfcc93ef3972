package runbooks

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFormerNames: each former name leads to a section of a runbook, and has no runbook of its own.
func TestFormerNames(t *testing.T) {
	names := FormerNames()
	if len(names) == 0 || !slices.IsSorted(names) {
		t.Fatalf("%q", names)
	}
	alert, reason := regexp.MustCompile(`^RDMA[A-Z]\w+$`), regexp.MustCompile(`^([a-z][a-z0-9_]*)?$`)
	for _, name := range names {
		now, ok := Former(name)
		if !ok || !alert.MatchString(name) || !reason.MatchString(now.Reason) {
			t.Errorf("%s: %+v", name, now)
		}
		if _, ok := Text(name); ok {
			t.Errorf("%s has a runbook of its own", name)
		}
		text, ok := Text(now.Alert)
		if !ok {
			t.Errorf("%s is now %s, which has no runbook", name, now)
		}
		if now.Reason != "" && strings.Count(string(text), "\n### "+now.Reason+"\n\n") != 1 {
			t.Errorf("%s is now %s: its runbook needs one heading ### %s", name, now, now.Reason)
		}
	}
	for _, name := range append(Names(), "", "RDMANothing", "rdmareloadfailed", "RDMAReloadFailed.md") {
		if now, ok := Former(name); ok || now != (Current{}) {
			t.Errorf("%q is no former name: %v", name, now)
		}
	}
}

func TestCurrent(t *testing.T) {
	for _, c := range []struct {
		Current
		text, anchor string
	}{
		{Current{"RDMAA", "b_c"}, "RDMAA, reason b_c", "#b_c"},
		{Current{"RDMAA", ""}, "RDMAA", ""},
	} {
		if c.String() != c.text || c.Anchor() != c.anchor {
			t.Errorf("%q %q, want %q %q", c.String(), c.Anchor(), c.text, c.anchor)
		}
	}
}
