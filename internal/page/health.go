package page

import (
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/account"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/snapshot"
)

// Health of a part of the node: its worst alert, else its state.
type Health string

// The healths, the worst first.
const (
	Critical     Health = "critical"
	Warning      Health = "warning"
	Watching     Health = "watching" // alerts of severity critical or warning are pending
	Info         Health = "info"     // also: less than expected, without an alert of its own
	NotEvaluated Health = "not_evaluated"
	Inactive     Health = "inactive" // a port without a link and without an alert of its own
	Ignored      Health = "ignored"  // by the configuration file
	OK           Health = "ok"
)

var healths = []Health{Critical, Warning, Watching, Info, NotEvaluated, Inactive, Ignored, OK}

// Word is the health for people.
func (h Health) Word() string {
	if h == NotEvaluated {
		return "not evaluated"
	}
	return string(h)
}

// Heading is the health for people, as the first word.
func (h Health) Heading() string {
	if h == OK {
		return "OK"
	}
	return strings.ToUpper(string(h[:1])) + h.Word()[1:]
}

func worst(all ...Health) Health {
	out := OK
	for _, h := range all {
		if slices.Index(healths, h) < slices.Index(healths, out) {
			out = h
		}
	}
	return out
}

// about reports whether a finding is of a part of the node, whose labels are given as names and values in turn.
func about(f check.Finding, labels ...string) bool {
	for i := 0; i < len(labels); i += 2 {
		if f.Labels[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}

// found is the worst severity of what is found of a part, and the alerts' names; what is pending is watched.
func found(r *check.Report, labels ...string) (h Health, alerts []string) {
	h = OK
	if r == nil {
		return h, nil
	}
	for _, f := range r.Pending {
		if about(f, labels...) && (Health(f.Severity) == Critical || Health(f.Severity) == Warning) {
			h = Watching
		}
	}
	for _, f := range r.Findings {
		if about(f, labels...) {
			h = worst(h, Health(f.Severity))
			if !slices.Contains(alerts, f.Alert) {
				alerts = append(alerts, f.Alert)
			}
		}
	}
	return h, alerts
}

// evaluated reports whether a part without a finding is ok: it is if only other objects are unknown.
func evaluated(r *check.Report) bool {
	return r != nil && (r.ExitCode != check.ExitUnknown || r.Error == "" && r.HasUnknown())
}

// isUnknown reports whether a port is a compute object that is unknown.
func isUnknown(r *check.Report, device, port string) bool {
	return r != nil && slices.ContainsFunc(account.Unknowns(r.Objects), func(o account.Object) bool {
		return o.Name == device || o.Name == device+"/"+port
	})
}

// healthOf is that of a port.
func healthOf(in Input, device string, p *snapshot.Port) (Health, []string) {
	number := strconv.Itoa(p.Number)
	h, alerts := found(in.Report, "device", device, "port", number)
	ofDevice, more := found(in.Report, "device", device, "port", "")
	h, alerts = worst(h, ofDevice), append(alerts, more...)
	switch {
	case h != OK:
		return h, alerts
	case in.Node.InfiniBand.IsIgnored(device, p.Number):
		return Ignored, nil
	case p.State == nil, isUnknown(in.Report, device, number), !evaluated(in.Report) && *p.State == snapshot.PortActive:
		return NotEvaluated, nil
	case *p.State != snapshot.PortActive:
		return Inactive, nil
	case p.Rate != nil && p.ExpectedRate != nil && *p.Rate < *p.ExpectedRate:
		return Info, nil
	}
	return OK, nil
}
