// Package evidence says what a fault is, in words and figures: the measured value, its limit, what it means for jobs,
// how to look at it and what to do. It is made in Go from the series of a host, at each evaluation at which the
// condition of an alert is met; rules decide what a fault is, and nothing else.
package evidence

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rdma_exporter/internal/evidence/fabric"
	"rdma_exporter/internal/evidence/fault"
	"rdma_exporter/internal/evidence/host"
	"rdma_exporter/internal/evidence/link"
	"rdma_exporter/internal/evidence/port"
	"rdma_exporter/internal/words"
)

// kinds are those of all faults that have texts here.
var kinds = fault.Merge(link.Faults, port.Faults, host.Faults, fabric.Faults)

// Faults lists the faults that have texts here, by symptom and reason: "exporter_degraded/state".
func Faults() []string { return slices.Sorted(maps.Keys(kinds)) }

// Annotations returns the texts of an alert on a fault, by annotation: those of its part, or of the first of several,
// with all of them named. nil: there are none. labels are those of the alert (rules/node/faults.rules.yml).
func Annotations(labels map[string]string, value float64, query fault.Query) map[string]string {
	kind, known := kinds[labels["symptom"]+"/"+labels["reason"]]
	if !known {
		return nil
	}
	whole := fault.New(labels, value, query)
	parts := partsOf(whole)
	var t fault.Text
	switch {
	case kind.OfHost:
		whole.Value = float64(len(parts))
		t = kind.Write(whole)
	case len(parts) > 1:
		t = several(whole, kind, parts)
	default:
		t = write(kind, parts[0])
	}
	out := map[string]string{
		"summary": t.Summary, "description": t.Description, "evidence": linesText(t.Evidence), "measured": t.Measured,
		"limit": t.Limit, "diagnose": t.Diagnose, "action": t.Action, "drain_reason": t.DrainReason,
	}
	maps.DeleteFunc(out, func(_, text string) bool { return text == "" })
	for name, text := range out {
		out[name] = whole.Limits(text)
	}
	return out
}

// write returns the text of a part, with what the kernel log reports on it.
func write(kind fault.Kind, part *fault.Fault) fault.Text {
	f := measured(part, kind.Measure)
	t := kind.Write(f)
	t.Evidence = append(kernelLines(f), t.Evidence...)
	return t
}

// measured returns a part with all labels of its measurement.
func measured(part *fault.Fault, measure string) *fault.Fault {
	if measure == "" {
		return part
	}
	rows := part.Rows(measure, "netdev", "direction", "priority", "lane")
	if len(rows) == 0 {
		return part
	}
	l := maps.Clone(part.Labels)
	maps.Copy(l, rows[0].Labels)
	for _, name := range []string{"severity", "reason", "symptom"} {
		l[name] = part.Labels[name]
	}
	return part.With(l, rows[0].Value)
}

// linesText returns evidence as it is in an annotation, a line each.
func linesText(evidence []fault.Line) string {
	var b strings.Builder
	for _, l := range evidence {
		b.WriteString(l.Name + ": " + l.Text + "\n")
	}
	return b.String()
}

// partsOf returns the parts of a fault that have its symptom now, each with the value of that; at least one.
func partsOf(f *fault.Fault) (out []*fault.Fault) {
	kind := fmt.Sprintf("symptom=%q,reason=%q,severity=%q,$host",
		f.Labels["symptom"], f.Labels["reason"], cmp.Or(f.Labels["default_severity"], f.Labels["severity"]))
	members := map[string]bool{}
	for _, p := range f.Rows("rdma:part{scope=\"host\"," + kind + "}") {
		if among(p.Labels, f.Labels, "card", "pcie_switch") {
			members[partOf(p.Labels)] = true
		}
	}
	alone := f.Labels["scope"] == "port" || f.Labels["scope"] == "device" || len(members) == 0
	for _, s := range f.Rows("rdma:symptom{"+kind+"}", "device", "port", "gpu") {
		if alone && partOf(s.Labels) == partOf(f.Labels) || !alone && members[partOf(s.Labels)] {
			out = append(out, f.With(s.Labels, s.Value))
		}
	}
	if len(out) == 0 { // the series ended in this moment
		out = []*fault.Fault{f}
	}
	return out
}

// partOf names what is a part of its host.
func partOf(labels map[string]string) string {
	return labels["device"] + "/" + labels["port"] + "/" + labels["gpu"]
}

// among reports whether labels have the values that others have.
func among(labels, others map[string]string, names ...string) bool {
	return !slices.ContainsFunc(names, func(l string) bool { return others[l] != "" && labels[l] != others[l] })
}

// several returns the text of a fault of several parts: that of the first of them, and what each has as evidence.
func several(f *fault.Fault, kind fault.Kind, parts []*fault.Fault) fault.Text {
	var t fault.Text
	var each fault.Lines
	alike := true
	for i, p := range parts[:min(len(parts), fault.ShownParts)] {
		of := write(kind, p)
		_, what, found := strings.Cut(of.Summary, ": ")
		if !found {
			what = of.Summary
		}
		if i == 0 {
			t, t.Summary = of, what
		}
		alike = alike && what == t.Summary
		each.Add(p.Name(), what+".")
	}
	if more := len(parts) - fault.ShownParts; more > 0 {
		each.Add("More", words.Count(more, "part")+".")
	}
	first := fault.When(!alike, parts[0].Name()+": ")
	ofParts := !t.Elsewhere && !slices.Contains(settings, f.Labels["symptom"])
	if shared := sharedBy[f.Labels["scope"]]; shared != "" && ofParts {
		t.Action = shared + " " + t.Action
	}
	t.Summary = fmt.Sprintf("%s: %s, %s", f.Labels["where"], words.Count(len(parts), parts[0].Noun()), first+t.Summary)
	t.Measured, t.Limit = "", ""
	t.Evidence = append(each, t.Evidence...)
	return t
}

// sharedBy is what to look at first, by what the parts of a fault have in common.
var sharedBy = map[string]string{
	"card":        "All are functions of one card: check the card, its slot and its riser first.",
	"pcie_switch": "All are below one PCIe switch: check that board and its riser first.",
	"host": "Look first for what they share, before you replace parts: the driver and firmware of the host (dmesg), power " +
		"and switches of the rack, the last change. If it is each for itself:",
}

// settings are the symptoms that no part causes.
var settings = []string{
	"port_misconfigured", "host_misconfigured", "traffic_on_lossy_priority", "gpu_direct_unavailable",
	"gpu_direct_staging", "retries_exceeded", "retransmissions", "pfc_storm_victim",
}
