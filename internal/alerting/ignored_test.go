package alerting_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/rules"
)

// guard is which ignored objects cannot be in a result.
// ports of an ignored device are ignored: a result without ignored ports has no ignored devices.
type guard struct{ ports, devices, gpus bool }

func (g guard) or(o guard) guard {
	return guard{g.ports || o.ports, g.devices || o.devices, g.gpus || o.gpus}
}

func (g guard) and(o guard) guard {
	return guard{g.ports && o.ports, g.devices && o.devices, g.gpus && o.gpus}
}

// ignoring are the metrics that mark ignored objects, with the labels to match and what an unless with them removes.
var ignoring = map[string]struct {
	on    []string
	takes guard
}{
	"rdma_port_ignored":   {[]string{"cluster", "device", "instance", "job", "port"}, guard{ports: true, devices: true}},
	"rdma_device_ignored": {[]string{"cluster", "device", "instance", "job"}, guard{devices: true}},
	"rdma_gpu_ignored":    {[]string{"UUID", "cluster", "gpu", "instance", "job"}, guard{gpus: true}},

	// Their records.
	"port:rdma_port:ignored":     {[]string{"cluster", "device", "instance", "job", "port"}, guard{ports: true, devices: true}},
	"device:rdma_device:ignored": {[]string{"cluster", "device", "instance", "job"}, guard{devices: true}},
	"gpu:rdma_gpu:ignored":       {[]string{"UUID", "cluster", "gpu", "instance", "job"}, guard{gpus: true}},
}

// TestAlertsLeaveOutWhatIsIgnored: an alert on a port, device or GPU has an unless with the mark of ignored ones, that
// of rdma:symptom if it is on faults, else itself or in a recording rule that it reads; an alert on a host counts none
// of them. Alerts on the exporter itself are exempt.
func TestAlertsLeaveOutWhatIsIgnored(t *testing.T) {
	e := shipped(t, rules.Node)
	pql := parser.NewParser(parser.Options{})
	names, guards := map[string][]string{}, map[string]guard{}
	for _, r := range e.RecordingRules() {
		expr, err := pql.ParseExpr(r.Expr)
		if err != nil {
			t.Fatal(err)
		}
		g := guarded(expr, guards)
		if before, ok := guards[r.Name]; ok {
			g = g.and(before)
		}
		names[r.Name], guards[r.Name] = resultLabels(expr, names), g
	}
	ofSymptoms := guards["rdma:symptom"]
	if ofSymptoms != (guard{true, true, true}) {
		t.Errorf("rdma:symptom leaves out %+v", ofSymptoms)
	}
	for _, r := range e.Rules() {
		expr, err := pql.ParseExpr(r.Expr)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range alternatives(expr) {
			g, result := guarded(part, guards), resultLabels(part, names)
			if ofFault(r) && (slices.Contains(result, "device") || slices.Contains(result, "gpu")) {
				g = g.or(ofSymptoms)
			}
			leavesOut(t, r, g, result)
		}
	}
}

// alternatives returns the operands of an or.
func alternatives(expr parser.Expr) []parser.Expr {
	if or, ok := expr.(*parser.BinaryExpr); ok && or.Op == parser.LOR {
		return append(alternatives(or.LHS), alternatives(or.RHS)...)
	}
	return []parser.Expr{expr}
}

func leavesOut(t *testing.T, r alerting.Rule, g guard, result []string) {
	t.Helper()
	switch {
	case slices.Contains(result, "port"):
		if !g.ports {
			t.Errorf("%s: ignored ports may come out of it; its last line has to be: unless on (cluster, instance, job, device, port) rdma_port_ignored\n%s", r.Name, r.Expr)
		}
	case slices.Contains(result, "device"):
		if !g.ports && !g.devices {
			t.Errorf("%s: ignored devices may come out of it; its last line has to be: unless on (cluster, instance, job, device) rdma_device_ignored\n%s", r.Name, r.Expr)
		}
	case slices.Contains(result, "gpu"):
		if !g.gpus {
			t.Errorf("%s: ignored GPUs may come out of it; its last line has to be: unless on (cluster, instance, job, gpu, UUID) rdma_gpu_ignored\n%s", r.Name, r.Expr)
		}
	case slices.ContainsFunc(r.Metrics, func(m string) bool { return !ofHost(m) }):
		if !g.ports && !g.devices {
			t.Errorf("%s: counts ignored ports or devices; what it counts has to leave them out\n%s", r.Name, r.Expr)
		}
	}
}

// ofHost reports whether a metric is about the exporter, a driver, the kernel or a GPU, and not about a device that can
// be ignored.
func ofHost(metric string) bool {
	return metric == "rdma_gdr_locked_memory_limit_bytes" || // of processes
		// Rows of the setup leave out ignored devices.
		metric == "rdma_setup_info" || metric == "rdma_host_address_conflicts" ||
		slices.ContainsFunc(ofHostPrefixes, func(p string) bool { return strings.HasPrefix(metric, p) })
}

var ofHostPrefixes = []string{
	"rdma_scrape_", "rdma_alerting_", "rdma_config_", "rdma_exporter_", "rdma_state_", "rdma_host_maintenance",
	"rdma_driver_", "rdma_stack_", "rdma_gpu_",
}

// guarded returns the ignored objects that cannot be in the result of an expression at its evaluation time. A range
// function is no guard: an object that is ignored now may not have been at the start of the range.
func guarded(expr parser.Expr, recorded map[string]guard) guard {
	switch e := expr.(type) {
	case *parser.VectorSelector:
		return recorded[e.Name]
	case *parser.ParenExpr:
		return guarded(e.Expr, recorded)
	case *parser.AggregateExpr:
		return guarded(e.Expr, recorded)
	case *parser.Call:
		for _, arg := range e.Args {
			if arg.Type() == parser.ValueTypeVector {
				return guarded(arg, recorded)
			}
		}
	case *parser.BinaryExpr:
		return guardedBinary(e, recorded)
	}
	return guard{}
}

func guardedBinary(e *parser.BinaryExpr, recorded map[string]guard) guard {
	left, right := guarded(e.LHS, recorded), guarded(e.RHS, recorded)
	switch {
	case e.LHS.Type() == parser.ValueTypeScalar:
		return right
	case e.RHS.Type() == parser.ValueTypeScalar:
		return left
	case e.Op == parser.LOR:
		return left.and(right)
	case e.Op == parser.LUNLESS:
		s, ok := e.RHS.(*parser.VectorSelector)
		if !ok {
			return left
		}
		mark := ignoring[s.Name]
		if on := slices.Sorted(slices.Values(e.VectorMatching.MatchingLabels)); !e.VectorMatching.On ||
			len(s.LabelMatchers) != 1 || !slices.Equal(on, mark.on) {
			return left
		}
		return left.or(mark.takes)
	}
	return left.or(guard{
		ports:   right.ports && matched(e.VectorMatching, "device", "port"),
		devices: right.devices && matched(e.VectorMatching, "device"),
		gpus:    right.gpus && matched(e.VectorMatching, "gpu", "UUID"),
	})
}

// matched reports whether both sides of an operator match on these labels.
func matched(m *parser.VectorMatching, names ...string) bool {
	for _, l := range names {
		if slices.Contains(m.MatchingLabels, l) != m.On {
			return false
		}
	}
	return true
}

func TestGuarded(t *testing.T) {
	pql := parser.NewParser(parser.Options{})
	const ports, devices = "unless on (cluster, instance, job, device, port) rdma_port_ignored",
		"unless on (cluster, instance, job, device) rdma_device_ignored"
	const gpus = "unless on (cluster, instance, job, gpu, UUID) rdma_gpu_ignored"
	for text, want := range map[string]guard{
		"a":          {},
		"a " + ports: {ports: true, devices: true},
		"a > 2 unless b " + ports + " and c == 4": {ports: true, devices: true},
		"a " + devices: {devices: true},
		"a and clean":  {ports: true, devices: true},
		"a and on (cluster, instance, job, device, port) clean": {ports: true, devices: true},
		"a and on (cluster, instance, job, device) clean":       {devices: true},
		"a and on (cluster, instance, job) clean":               {},
		"a and ignoring (port) clean":                           {devices: true},
		"clean / a":                                             {ports: true, devices: true},
		"2 < clean":                                             {ports: true, devices: true},
		"a or clean":                                            {},
		"clean or (a " + devices + ")":                          {devices: true},
		"a or b " + ports:                                       {},
		"max by (instance) (a " + ports + ")":                   {ports: true, devices: true},
		"floor(clean)":                                          {ports: true, devices: true},
		"changes(clean[1h])":                                    {},
		"a " + gpus:                                             {gpus: true},
		"(a or b) " + gpus:                                      {gpus: true},
		"a or b " + gpus:                                        {},
		"a unless on (cluster, instance, job, gpu) rdma_gpu_ignored":                     {},
		"a unless rdma_port_ignored":                                                     {},
		"a unless on (device, port) rdma_port_ignored":                                   {},
		`a unless on (cluster, instance, job, device, port) rdma_port_ignored{port="1"}`: {},
		"a unless on (cluster, instance, job, device) rdma_port_ignored":                 {},
	} {
		t.Run(text, func(t *testing.T) {
			expr, err := pql.ParseExpr(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := guarded(expr, map[string]guard{"clean": {ports: true, devices: true}}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}
