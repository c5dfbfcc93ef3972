package machines_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/verdict"
	"rdma_exporter/test/machines"
)

// noMechanism are the reasons that mean a missing mechanism for NICs to access GPU memory, which can be fixed.
var noMechanism = []gdr.Reason{
	gdr.PeermemNotLoaded, gdr.PeermemInvisible, gdr.DriverProprietary, gdr.DriverOld, gdr.KernelOld, gdr.NICDriverLacks,
	gdr.DMABUFDisabled, gdr.KernelWithoutP2P, gdr.SmallBAR,
}

// TestGPUDirectAlertSaysTheReasons: the alert on a mechanism that is missing has each reason, in the words of
// internal/gdr.
func TestGPUDirectAlertSaysTheReasons(t *testing.T) {
	m, sched := machines.Open(t, machines.Fixture("no-rdma"))
	j, err := verdict.New(m, sched, machines.Builtin(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	expr, evidence, action := "", "", ""
	for _, r := range j.Engine.RecordingRules() {
		if r.Name == "gpu:rdma_gdr:no_mechanism" {
			expr = r.Expr
		}
	}
	for _, r := range j.Engine.Rules() {
		if r.Name == "RDMAGPUDirectUnavailable" {
			evidence, action = r.Annotations["evidence"], r.Annotations["action"]
		}
	}
	_, listed, _ := strings.Cut(expr, `reason=~"`)
	listed, _, _ = strings.Cut(listed, `"`)
	in := map[string]bool{}
	for slug := range strings.SplitSeq(listed, "|") {
		in[slug] = true
	}
	for _, r := range gdr.Reasons() {
		if in[string(r)] != slices.Contains(noMechanism, r) {
			t.Errorf("%s: in the rule: %v", r, in[string(r)])
		}
		if !in[string(r)] {
			continue
		}
		reason, remedy := `"`+string(r)+`" }}`+r.Words()+"{{", `"`+string(r)+`" }}`+sentence(r.Remedy())+"{{"
		if !strings.Contains(evidence, reason) || !strings.Contains(action, remedy) {
			t.Errorf("%s: the alert does not say %s, %s", r, reason, remedy)
		}
	}
}

// TestTransportAlertSaysTheReasons: so does the alert on sockets.
func TestTransportAlertSaysTheReasons(t *testing.T) {
	m, sched := machines.Open(t, machines.Fixture("no-rdma"))
	j, err := verdict.New(m, sched, machines.Builtin(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for _, r := range j.Engine.Rules() {
		if r.Name != "RDMATransportFallback" {
			continue
		}
		for _, why := range []gdr.Reason{gdr.IBDisabled, gdr.NetChosen} {
			if reason := `"` + string(why) + `" }}` + why.Words() + "{{"; !strings.Contains(r.Annotations["evidence"], reason) {
				t.Errorf("%s: the alert does not say %s", why, reason)
			}
		}
		for _, why := range []gdr.Reason{gdr.IBDisabled, gdr.NetChosen, gdr.NoVerbs} {
			if remedy := "}}" + sentence(why.Remedy()) + "{{"; !strings.Contains(r.Annotations["action"], remedy) {
				t.Errorf("%s: the alert does not say %s", why, remedy)
			}
		}
	}
}

// sentence is a remedy as the action of an alert has it.
func sentence(remedy string) string { return strings.ToUpper(remedy[:1]) + remedy[1:] + "." }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
