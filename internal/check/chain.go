package check

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/words"
)

// Suspects are the recorded conditions of alerts in cause chains, including those that a worse fault explains, and the
// parts of faults (rdma:part).
type Suspects struct {
	Records []string            // names of the recording rules
	Series  []map[string]string // with __name__
}

// Suspect is a fault whose alert is suppressed because a worse fault of the same object explains it.
type Suspect struct {
	Alert  string            `json:"alert"`
	Labels map[string]string `json:"labels"` // of its object
}

// alertOf is the alert whose condition a recording rule has: port:rdma_port_down:suspect is that of RDMAPortDown. It is
// "" for other rules.
func alertOf(record string, alerts []string) string {
	_, rest, _ := strings.Cut(record, ":")
	name, ok := strings.CutSuffix(rest, ":suspect")
	if !ok {
		return ""
	}
	name = strings.ReplaceAll(name, "_", "")
	if i := slices.IndexFunc(alerts, func(a string) bool { return strings.ToLower(a) == name }); i >= 0 {
		return alerts[i]
	}
	return ""
}

// elsewhere are the faults caused by a fault of another device of the same host.
var elsewhere = map[string][]string{
	"RDMAPFCStormSource": {"RDMAPFCStormVictim"},
}

// besides are the faults of a port that are explained by an alert outside of the chains.
var besides = map[string][]string{
	"RDMATransceiverHot": {"RDMALinkErrors"},
}

// fold adds each suspect to the worst finding that explains it. Suspects that are findings themselves, and those that
// nothing explains (their alert is pending), are left out.
func (r *Report) fold(in Input) {
	names := words.Of(in.Rules, func(r alerting.Rule) string { return r.Name })
	chained := map[string]bool{}
	for _, record := range in.Suspects.Records {
		chained[alertOf(record, names)] = true
	}
	for i := range r.Findings {
		r.Findings[i].chained = chained[r.Findings[i].Alert]
	}
	var suspects []Suspect
	for _, labels := range in.Suspects.Series {
		if alert := alertOf(labels["__name__"], names); alert != "" {
			labels = maps.Clone(labels)
			delete(labels, "__name__")
			suspects = append(suspects, Suspect{alert, labels})
		}
	}
	slices.SortFunc(suspects, func(a, b Suspect) int {
		return cmp.Or(cmp.Compare(a.Alert, b.Alert), slices.Compare(pairs(a.Labels), pairs(b.Labels)))
	})
	for _, s := range suspects {
		reported := func(f Finding) bool { return f.Alert == s.Alert && (f.covers(s) || maps.Equal(f.Labels, s.Labels)) }
		if slices.ContainsFunc(r.Findings, reported) || slices.ContainsFunc(r.Pending, reported) {
			continue
		}
		// Worst first.
		if i := slices.IndexFunc(r.Findings, func(f Finding) bool {
			return f.Severity != severityInfo && f.covers(s)
		}); i >= 0 {
			r.Findings[i].Suspects = append(r.Findings[i].Suspects, s)
		}
	}
}

// covers reports whether a finding is on the object of a suspect, on its device, or on the whole host.
func (f Finding) covers(s Suspect) bool {
	device, port := f.Labels["device"], f.Labels["port"]
	chained := f.chained || slices.Contains(besides[f.Alert], s.Alert)
	switch {
	case slices.Contains(elsewhere[f.Alert], s.Alert):
		return true
	case f.Labels["gpu"] != "":
		return false
	case device == "" || s.Labels["device"] == "":
		return chained
	case device != s.Labels["device"] || !chained:
		return false
	}
	return port == "" || s.Labels["port"] == "" || port == s.Labels["port"]
}
