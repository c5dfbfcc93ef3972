package check

import (
	"cmp"
	"slices"

	"rdma_exporter/internal/alerting"
)

// Symptoms are the symptoms of parts of the host, as label sets with symptom, reason and severity.
type Symptoms struct {
	Faulty    []map[string]string // of faults, which have alerts (rdma:part; links of a switch with a fault)
	Explained []map[string]string // without an alert: a worse fault explains them (rdma:explained)
}

// Explained is a symptom without an alert, because a finding explains it.
type Explained struct {
	Alert  string            `json:"alert"`  // which it would have
	Reason string            `json:"reason"` // label reason of that alert
	Labels map[string]string `json:"labels"` // of its object
}

// elsewhere are the symptoms caused by a fault of another device of the same host.
var elsewhere = map[string]string{"pfc_storm_victim": "pfc_storm_source"}

// alertsOf returns the names of alerts by symptom.
func alertsOf(rules []alerting.Rule) map[string]string {
	out := map[string]string{}
	for _, r := range rules {
		if s := r.Labels["symptom"]; s != "" {
			out[s] = r.Name
		}
	}
	return out
}

// explain adds each explained symptom to the worst finding on its object. A symptom whose object has no finding is left
// out: its cause is over, or its alert is pending.
func (r *Report) explain(in Input) {
	names := alertsOf(in.Rules)
	for _, labels := range in.Symptoms.Explained {
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Severity != severityInfo && f.explains(labels) })
		if i < 0 {
			continue
		}
		r.Findings[i].Explains = append(r.Findings[i].Explains,
			Explained{names[labels["symptom"]], labels["reason"], objectOf(labels)})
	}
	for _, f := range r.Findings {
		slices.SortFunc(f.Explains, func(a, b Explained) int {
			return cmp.Or(cmp.Compare(a.Alert, b.Alert), slices.Compare(listPairs(a.Labels), listPairs(b.Labels)))
		})
	}
}

// objectOf returns the labels of a symptom that name its object.
func objectOf(symptom map[string]string) map[string]string {
	out := map[string]string{}
	for _, name := range []string{"device", "port", "gpu", "UUID"} {
		if v := symptom[name]; v != "" {
			out[name] = v
		}
	}
	return out
}

// explains reports whether a finding is on the object of a symptom, on its device, or on the whole host.
func (f Finding) explains(symptom map[string]string) bool {
	if cause := elsewhere[symptom["symptom"]]; cause != "" && cause == f.Labels["symptom"] {
		return true
	}
	for _, name := range []string{"device", "port", "gpu"} {
		if f.Labels[name] != "" && symptom[name] != "" && f.Labels[name] != symptom[name] {
			return false
		}
	}
	// A GPU is not part of an RDMA device, and vice versa.
	return f.Labels["gpu"] == "" || symptom["gpu"] != ""
}
