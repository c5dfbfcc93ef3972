// Package evidence says what a fault is, in words and figures: the measured value, its limit, what it means for jobs,
// how to look at it and what to do. It is made in Go from the series of a host, at each evaluation at which the
// condition of an alert is met; rules decide what a fault is, and nothing else.
package evidence

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/words"
	"rdma_exporter/rules"
)

// Sample is a series with its value.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// Query evaluates a PromQL expression on the samples of a host, at the time of the last evaluation. An expression that
// fails has no result.
type Query func(expr string) []Sample

// Text is what is said of a fault. Each part is without the name of the host where its name is the subject.
type Text struct {
	Summary     string // a headline
	Description string // what is measured, and what it does to jobs
	Evidence    []Line
	Measured    string // value that is compared, with its unit; empty: none
	Limit       string // its limit, with the same unit; empty: none
	Diagnose    string // read-only commands
	Action      string
	DrainReason string // why jobs are to leave the host, or need not
	Elsewhere   bool   // the action is not on the part: where several have the fault, nothing that they share comes first
}

// Line is a line of evidence: "Rate: 200 Gb/s on 4 lanes.".
type Line struct{ Name, Text string }

// Fault is an alert on an object of a host, and the series of that host.
type Fault struct {
	Labels map[string]string // of the alert
	Value  float64           // of its expression
	query  Query
}

// writers make the texts, by symptom and reason of a fault.
var writers = merge(linkTexts, errorsTexts, opticsTexts, deviceTexts, roceTexts, hostTexts, fabricTexts)

func merge(tables ...map[string]func(*Fault) Text) map[string]func(*Fault) Text {
	out := map[string]func(*Fault) Text{}
	for _, table := range tables {
		for fault, write := range table {
			if out[fault] != nil {
				panic("two texts of " + fault)
			}
			out[fault] = write
		}
	}
	return out
}

// Faults lists the faults that have texts here, by symptom and reason: "exporter_degraded/state".
func Faults() []string { return slices.Sorted(maps.Keys(writers)) }

// Annotations are the texts of an alert on a fault, by annotation: those of its part, or of the first of several, with
// all of them named. nil: there are none. labels are those of the alert (rules/node/faults.rules.yml).
func Annotations(labels map[string]string, value float64, query Query) map[string]string {
	key := labels["symptom"] + "/" + labels["reason"]
	write := writers[key]
	if write == nil {
		return nil
	}
	whole := &Fault{labels, value, query}
	parts := whole.parts()
	var t Text
	switch {
	case ofHost[key]:
		whole.Value = float64(len(parts))
		t = write(whole)
	case len(parts) > 1:
		t = whole.several(write, key, parts)
	default:
		t = write(parts[0].measured(key))
	}
	out := map[string]string{
		"summary": t.Summary, "description": t.Description, "evidence": text(t.Evidence), "measured": t.Measured,
		"limit": t.Limit, "diagnose": t.Diagnose, "action": t.Action, "drain_reason": t.DrainReason,
	}
	maps.DeleteFunc(out, func(_, text string) bool { return text == "" })
	for name, text := range out {
		out[name] = whole.limits(text)
	}
	return out
}

// ofHost are the faults whose text is about the host: it names all parts, and its value is their number.
var ofHost = map[string]bool{
	"host_misconfigured/acs": true, "host_misconfigured/iommu": true, "host_misconfigured/numa": true,
	"host_misconfigured/renamed": true, "host_misconfigured/subnet_manager": true, "port_misconfigured/job_gid": true,
	"subnet_manager_unstable/changing": true, "gpu_direct_unavailable/no_mechanism": true,
	"no_subnet_manager/port": true, "retries_exceeded/requests": true,
	"gpu_direct_staging/staging": true, "gpu_direct_staging/sockets": true,
}

// measures are the series of a fault's measurement where they have more labels than its part: netdev, direction,
// priority. Of several the first counts.
var measures = map[string]string{
	"transceiver_fault/fault":            `port:rdma_transceiver_state:fault{$port}`,
	"transceiver_fault/unreadable":       `port:rdma_transceiver_state:unreadable{$port}`,
	"transceiver_out_of_range/cold":      `port:rdma_transceiver_cold:warning{$port} or port:rdma_transceiver_cold:info{$port}`,
	"transceiver_out_of_range/voltage":   `port:rdma_transceiver_voltage:alarm{$port} or port:rdma_transceiver_voltage:warning{$port}`,
	"transceiver_out_of_range/bias":      `max without (direction) (port:rdma_transceiver_bias:alarm{$port}) or port:rdma_transceiver_bias:info{$port}`,
	"transceiver_out_of_range/power_low": `port:rdma_transceiver_power_low:warning{$port} or port:rdma_transceiver_power_low:info{$port}`,
	"transceiver_out_of_range/power_high": `port:rdma_transceiver_power_high:warning{$port} ` +
		`or port:rdma_transceiver_power_high:info{$port}`,
	"transceiver_out_of_range/lane_imbalance": `port:rdma_transceiver_lane_imbalance:info{$port}`,
	"link_wearing/optics":                     `port:rdma_optics_drift:info{$port}`,
	"transceiver_out_of_range/lane_dark":      `port:rdma_transceiver_lane_dark:warning{$port}`,
	"transceiver_hot/errors":                  `port:rdma_transceiver_temperature:errors{$port} or port:rdma_transceiver_temperature:alarm{$port}`,
	"transceiver_hot/alarm":                   `port:rdma_transceiver_hot:warning{$port}`,
	"transceiver_hot/no_limit":                `max by (netdev) (rdma_transceiver_temperature_celsius{$port}) > {transceiver-hot-celsius}`,
	"device_missing/gone":                     `rdma_gpu_lost_info{$gpu}`,
	"port_down/bond_member":                   `max by (netdev) (rdma_bond_member_up{$port}) == 0`,
	"link_degraded/bond_member": `max by (netdev) (rdma_bond_member_rate_bytes_per_second{$port}) ` +
		`/ max by (netdev) (rdma_bond_member_expected_rate_bytes_per_second{$port}) < 0.99`,
	"link_errors/lane":                   `max by (lane) (port:rdma_link_lane_raw_ber:high{$port})`,
	"pfc_storm_source/storm":             `port:rdma_pfc_storm_source:critical{$port}`,
	"pfc_storm_source/watchdog":          `port:rdma_pfc_watchdog_fired:critical{$port}`,
	"pfc_storm_source/short_storms":      `port:rdma_pfc_short_storms:warning{$port}`,
	"pfc_storm_victim/paused":            `port:rdma_pfc_storm_victim:critical{$port}`,
	"pfc_storm_victim/slowed":            `port:rdma_pfc_storm_victim:info{$port}`,
	"slow_receiver/pauses":               `port:rdma_slow_receiver:warning{$port}`,
	"discards/lossless_priority":         `port:rdma_lossless_priority_discards:warning{$port}`,
	"traffic_on_lossy_priority/priority": `port:rdma_traffic_on_lossy_priority:warning{$port}`,
	"port_miscabled/neighbour":           `port:rdma_port_miscabled:warning{$port}`,
	"port_misconfigured/global_pause": `port:rdma_global_pause_instead_of_pfc:warning{$port} ` +
		`or port:rdma_global_pause_instead_of_pfc:info{$port}`,
	"port_misconfigured/congestion_notification": `port:rdma_congestion_notification_off:warning{$port} ` +
		`or port:rdma_congestion_notification_off:info{$port}`,
}

// measured is a part with all labels of its measurement.
func (f *Fault) measured(key string) *Fault {
	if measures[key] == "" {
		return f
	}
	rows := f.rows(measures[key], "netdev", "direction", "priority", "lane")
	if len(rows) == 0 {
		return f
	}
	l := maps.Clone(f.Labels)
	maps.Copy(l, rows[0].Labels)
	for _, name := range []string{"severity", "reason", "symptom"} {
		l[name] = f.Labels[name]
	}
	return &Fault{l, rows[0].Value, f.query}
}

func text(evidence []Line) string {
	var b strings.Builder
	for _, l := range evidence {
		b.WriteString(l.Name + ": " + l.Text + "\n")
	}
	return b.String()
}

// parts are the parts of a fault that have its symptom now, each with the value of that; at least one.
func (f *Fault) parts() (out []*Fault) {
	kind := fmt.Sprintf("symptom=%q,reason=%q,severity=%q,$host",
		f.Labels["symptom"], f.Labels["reason"], cmp.Or(f.Labels["default_severity"], f.Labels["severity"]))
	members := map[string]bool{}
	for _, p := range f.rows("rdma:part{scope=\"host\"," + kind + "}") {
		if among(p.Labels, f.Labels, "card", "pcie_switch") {
			members[partOf(p.Labels)] = true
		}
	}
	alone := f.Labels["scope"] == "port" || f.Labels["scope"] == "device" || len(members) == 0
	for _, s := range f.rows("rdma:symptom{"+kind+"}", "device", "port", "gpu") {
		if alone && partOf(s.Labels) == partOf(f.Labels) || !alone && members[partOf(s.Labels)] {
			out = append(out, &Fault{s.Labels, s.Value, f.query})
		}
	}
	if len(out) == 0 { // the series ended in this moment
		out = []*Fault{f}
	}
	return out
}

// partOf is what is a part of its host.
func partOf(labels map[string]string) string {
	return labels["device"] + "/" + labels["port"] + "/" + labels["gpu"]
}

// among reports whether labels have the values that others have.
func among(labels, others map[string]string, names ...string) bool {
	return !slices.ContainsFunc(names, func(l string) bool { return others[l] != "" && labels[l] != others[l] })
}

// several is the text of a fault of several parts: that of the first of them, and what each has as evidence.
func (f *Fault) several(write func(*Fault) Text, key string, parts []*Fault) Text {
	var t Text
	var each lines
	alike := true
	for i, p := range parts[:min(len(parts), shownParts)] {
		of := write(p.measured(key))
		_, what, found := strings.Cut(of.Summary, ": ")
		if !found {
			what = of.Summary
		}
		if i == 0 {
			t, t.Summary = of, what
		}
		alike = alike && what == t.Summary
		each.add(p.name(), what+".")
	}
	if more := len(parts) - shownParts; more > 0 {
		each.add("More", words.Count(more, "part")+".")
	}
	first := when(!alike, parts[0].name()+": ")
	ofParts := !t.Elsewhere && !slices.Contains(settings, f.Labels["symptom"])
	if shared := sharedBy[f.Labels["scope"]]; shared != "" && ofParts {
		t.Action = shared + " " + t.Action
	}
	t.Summary = fmt.Sprintf("%s: %s, %s", f.Labels["where"], words.Count(len(parts), parts[0].noun()), first+t.Summary)
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

// shownParts is how many parts of a fault have a line of their own.
const shownParts = 16

// name is the name of a part: mlx5_0/1, mlx5_0, GPU 3.
func (f *Fault) name() string {
	switch {
	case f.Labels["gpu"] != "":
		return "GPU " + f.Labels["gpu"]
	case f.Labels["port"] != "":
		return f.Labels["device"] + "/" + f.Labels["port"]
	}
	return f.Labels["device"]
}

func (f *Fault) noun() string {
	switch {
	case f.Labels["gpu"] != "":
		return "GPU"
	case f.Labels["port"] != "":
		return "port"
	}
	return "device"
}

// selectors are the matchers that an expression may name: those of the object and what it is a part of.
var selectors = []struct {
	name   string
	labels []string
}{
	{"$host", []string{"cluster", "instance", "job"}},
	{"$device", []string{"cluster", "instance", "job", "device"}},
	{"$port", []string{"cluster", "instance", "job", "device", "port"}},
	{"$netdev", []string{"cluster", "instance", "job", "device", "port", "netdev"}},
	{"$link", []string{"cluster", "instance", "job", "node_guid", "port"}},
	{"$switch", []string{"cluster", "instance", "job", "node_guid"}},
	{"$gpu", []string{"cluster", "instance", "job", "gpu", "UUID"}},
}

// limit is a threshold, if there is one of that name: the value that the site records, or the default.
func (f *Fault) limit(name string) (float64, bool) {
	all := rules.Thresholds()
	i := slices.IndexFunc(all, func(t rules.Threshold) bool { return t.Name == name })
	if i < 0 {
		return 0, false
	}
	if r := f.query("max(" + rules.ThresholdMetric + "{name=" + strconv.Quote(name) + "})"); len(r) > 0 {
		return r[0].Value, true
	}
	return all[i].Default, true
}

// threshold is a threshold in a text: {flaps-per-hour}, {paused-ratio%} as a percentage, {flaps-per-hour-1} less one: a
// limit that is reached, not exceeded.
var threshold = regexp.MustCompile(`\{([a-z]+(?:-[a-z]+)+)(%|-1)?\}`)

// limits replaces the thresholds in a text or an expression. Braces of others, in the name of a device, stay.
func (f *Fault) limits(text string) string {
	return threshold.ReplaceAllStringFunc(text, func(s string) string {
		m := threshold.FindStringSubmatch(s)
		v, ok := f.limit(m[1])
		switch {
		case !ok:
			return s
		case m[2] == "%":
			return strconv.FormatFloat(v*100, 'g', 6, 64) + "%"
		case m[2] == "-1":
			return strconv.FormatFloat(v-1, 'g', 6, 64)
		default:
			return strconv.FormatFloat(v, 'g', 6, 64)
		}
	})
}

// expand replaces thresholds in an expression, and $host, $device, $port, $netdev and $gpu by the matchers of the
// object.
func (f *Fault) expand(expr string) string {
	expr = f.limits(expr)
	for _, s := range selectors {
		if !strings.Contains(expr, s.name) {
			continue
		}
		var matchers []string
		for _, l := range s.labels {
			matchers = append(matchers, l+"="+strconv.Quote(f.Labels[l]))
		}
		expr = strings.ReplaceAll(expr, s.name, strings.Join(matchers, ","))
	}
	return expr
}

// of is the fault with the labels of a part of the host, for expressions with $device, $port or $gpu.
func (f *Fault) of(part Sample) *Fault {
	l := maps.Clone(f.Labels)
	maps.Copy(l, part.Labels)
	return &Fault{l, f.Value, f.query}
}

// rows are the results of an expression, sorted by labels, the first one foremost.
func (f *Fault) rows(expr string, by ...string) []Sample {
	out := f.query(f.expand(expr))
	slices.SortStableFunc(out, func(a, b Sample) int {
		for _, l := range by {
			if c := cmp.Compare(a.Labels[l], b.Labels[l]); c != 0 {
				return c
			}
		}
		return 0
	})
	return out
}

// has reports whether an expression has a result.
func (f *Fault) has(expr string) bool { return len(f.rows(expr)) > 0 }

// number is the value of the first result of an expression; false: there is none.
func (f *Fault) number(expr string) (float64, bool) {
	if r := f.rows(expr); len(r) > 0 {
		return r[0].Value, true
	}
	return 0, false
}

// text is the value of the first result of an expression, in a format; without a result the other text.
func (f *Fault) text(expr, format, otherwise string) string {
	if v, ok := f.number(expr); ok {
		return fmt.Sprintf(format, v)
	}
	return otherwise
}

// label is a label of the first result of an expression, sorted by that label; empty: there is none.
func (f *Fault) label(expr, name string) string {
	if r := f.rows(expr, name); len(r) > 0 {
		return r[0].Labels[name]
	}
	return ""
}

// labels are a label of all results of an expression, sorted.
func (f *Fault) labels(expr, name string) (out []string) {
	for _, r := range f.rows(expr, name) {
		out = append(out, r.Labels[name])
	}
	return out
}
