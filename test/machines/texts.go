package machines

import (
	"cmp"
	"strings"
	"testing"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/pci"
)

// CheckTexts wants of each text of a finding what programs and people rely on: all are there, templates had what they
// asked for, what is one line is one, and evidence has names.
func CheckTexts(t *testing.T, machine string, f check.Finding) {
	t.Helper()
	texts := map[string]string{
		"summary": f.Summary, "description": f.Description, "diagnose": f.Diagnose, "action": f.Action,
		"drain_reason": f.DrainReason,
	}
	for name, text := range texts {
		if text == "" {
			t.Errorf("%s: %s: no %s", machine, f.Alert, name)
		}
	}
	for _, name := range []string{"summary", "diagnose"} {
		if strings.Contains(texts[name], "\n") {
			t.Errorf("%s: %s: %s has more than one line: %q", machine, f.Alert, name, texts[name])
		}
	}
	for _, e := range f.Evidence {
		texts["evidence"] += e.Name + ": " + e.Value + "\n"
		if e.Name == "" || !strings.HasSuffix(e.Value, ".") {
			t.Errorf("%s: %s: evidence is not \"Name: value.\": %q %q", machine, f.Alert, e.Name, e.Value)
		}
	}
	for name, text := range texts {
		if strings.Contains(text, "error expanding") || strings.Contains(text, "<no value>") ||
			strings.Contains(text, "  ") || strings.TrimSpace(text) != strings.TrimRight(text, "\n") {
			t.Errorf("%s: %s: %s: %q", machine, f.Alert, name, text)
		}
	}
	object := cmp.Or(f.Labels["device"], f.Labels["gpu"])
	if len(f.Identity) == 0 && object != "" && !pci.IsAddress(object) { // an address identifies
		t.Errorf("%s: %s %v: nothing identifies the object", machine, f.Alert, f.Labels)
	}
	if (f.Limit == nil) != (f.Unit == "") && f.Limit == nil {
		t.Errorf("%s: %s: unit %s without a limit", machine, f.Alert, f.Unit)
	}
}
