package app

import (
	"log/slog"
	"strings"
	"testing"

	"rdma_exporter/internal/gdr"
)

// TestGPUDirectAlertSaysTheReasons: the alert on a mechanism that is missing knows each reason, and says it in the words of internal/gdr.
func TestGPUDirectAlertSaysTheReasons(t *testing.T) {
	m, sched := open(t, fixture("no-rdma"))
	j, err := newJudge(m, sched, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	expr, text := "", ""
	for _, r := range j.engine.RecordingRules() {
		if r.Name == "gpu:rdma_gdr:no_mechanism" {
			expr = r.Expr
		}
	}
	for _, r := range j.engine.Rules() {
		if r.Name == "RDMAGPUDirectUnavailable" {
			text = r.Annotations["description"]
		}
	}
	_, listed, _ := strings.Cut(expr, `reason=~"`)
	listed, _, _ = strings.Cut(listed, `"`)
	in := map[string]bool{}
	for slug := range strings.SplitSeq(listed, "|") {
		in[slug] = true
	}
	for _, r := range gdr.Reasons() {
		if in[string(r)] != r.NoMechanism() {
			t.Errorf("%s: in the rule: %v", r, in[string(r)])
		}
		if said := `"` + string(r) + `" }}` + r.Words() + ". Do: " + r.Remedy() + "{{"; r.NoMechanism() && !strings.Contains(text, said) {
			t.Errorf("%s: the alert does not say %s", r, said)
		}
	}
}

// TestTransportAlertSaysTheReasons: so does the alert on sockets.
func TestTransportAlertSaysTheReasons(t *testing.T) {
	m, sched := open(t, fixture("no-rdma"))
	j, err := newJudge(m, sched, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	for _, r := range j.engine.Rules() {
		if r.Name != "RDMATransportFallback" {
			continue
		}
		text := r.Annotations["description"]
		for _, why := range []gdr.Reason{gdr.IBDisabled, gdr.NetChosen, gdr.NoVerbs} {
			if said := why.Words() + ". Do: " + why.Remedy() + "{{"; !strings.Contains(text, said) || !strings.Contains(text, string(why)) {
				t.Errorf("%s: the alert does not say %s", why, said)
			}
		}
	}
}
