// Package identity defines what identifies each kind of object that an alert is on: the part to replace, the far end,
// the job on it. rules/gen writes it into the annotation evidence of the rules, and check uses the same queries for its
// JSON.
package identity

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Object is a kind of object that alerts are on, determined by the labels of the alert.
type Object struct {
	Name   string
	levels []level
	fixed  []string // lines of evidence without a query
	facts  []Fact
}

// level is a set of labels and the template variable with its matchers.
type level struct {
	name   string
	labels []string
	key    string // the label that the object requires
}

// Fact is the data of an info metric about an object: one line of evidence per series, and a JSON object.
type Fact struct {
	Name   string // key in JSON
	word   string // first word of the line
	metric string
	level  string   // the narrowest level at which its series differ; a wider object has the series of all its parts
	first  string   // label of the object that the series have under the name first
	where  string   // further matchers
	last   string   // otherwise as of this range before: the fault may have ended the series
	quiet  bool     // for JSON only: no line
	counts bool     // the value is a count
	times  bool     // the value is a time, within the last hour
	Fields []string // identifying labels, in order
	text   string   // template of the line over .Labels and .Value
}

var (
	host   = level{"host", []string{"cluster", "instance", "job"}, "instance"}
	device = level{"device", []string{"device"}, "device"}
	port   = level{"port", []string{"port"}, "port"}
	netdev = level{"netdev", []string{"netdev"}, "netdev"}
	gpu    = level{"gpu", []string{"gpu", "UUID"}, "gpu"}
	node   = level{"node", []string{"node_guid"}, "node_guid"}
	system = level{"switch", []string{"cluster", "job", "system"}, "system"}
	remote = level{"system", []string{"system"}, "system"}
	load   = level{"workload", []string{"cluster", "job", "scheduler", "job_id", "namespace", "pod"}, "job_id"}
	fleet  = level{"fleet", []string{"cluster", "job"}, "job"}
)

// or returns a template for a label, with a text for an unknown value.
func or(label, unknown string) string { return fmt.Sprintf("{{ or .Labels.%s %q }}", label, unknown) }

// with returns a template for a label with a prefix, empty without the label.
func with(word, label string) string {
	return fmt.Sprintf("{{ with .Labels.%s }}%s{{ . }}{{ end }}", label, word)
}

// Names of facts from which check makes the jobs of a finding. The data is at most a minute old; a job that the fault
// has ended is named for some minutes more.
const (
	Workloads     = "workloads"
	WorkloadGPUs  = "workload_gpus"
	WorkloadNames = "workload_names"
)

// workload are the labels that identify a workload.
var workload = []string{"scheduler", "job_id", "namespace", "pod"}

// who is a workload in words, with its name and user where they are exported.
const who = `{{ if eq .Labels.scheduler "slurm" }}Slurm job {{ .Labels.job_id }}{{ else if eq .Labels.scheduler "kubernetes" }}pod ` +
	`{{ if .Labels.pod }}{{ .Labels.namespace }}/{{ .Labels.pod }}{{ else }}{{ .Labels.job_id }}{{ end }}` +
	`{{ else if eq .Labels.scheduler "container" }}container {{ .Labels.job_id }}{{ else if eq .Labels.scheduler "systemd" }}service {{ .Labels.job_id }}` +
	`{{ else if eq .Labels.scheduler "session" }}login session {{ .Labels.job_id }}{{ else if eq .Labels.scheduler "unknown" }}a process that is not visible` +
	`{{ else }}a process without a job{{ end }}` +
	`{{ range query (printf "max by (name, user) (rdma_job_info{%s,scheduler=%q,job_id=%q})" $host .Labels.scheduler .Labels.job_id) }}` +
	`{{ with .Labels.name }} ({{ . }}){{ end }}{{ with .Labels.user }} of user {{ . }}{{ end }}{{ end }}`

// onGPUs are the GPUs of a workload.
const onGPUs = `{{ with query (printf "max by (gpu) (rdma_gpu_job_info{%s,scheduler=%q,job_id=%q})" $host .Labels.scheduler .Labels.job_id) | sortByLabel "gpu" }}` +
	`, with GPU{{ range $i, $g := . }}{{ if $i }},{{ end }} {{ $g.Labels.gpu }}{{ end }}{{ end }}`

var facts = []Fact{
	{
		Name: "port", word: "Port",
		metric: "rdma_port_info", level: "netdev", Fields: []string{"device", "port", "netdev", "link_layer", "role"},
		text: "{{ .Labels.device }}/{{ .Labels.port }}" + with(", netdev ", "netdev") + ", link layer " +
			or("link_layer", "unknown") + ", role " + or("role", "unknown") + ".",
	},
	{
		Name: "same_link", word: "Same link", metric: "rdma_wire_duplicate_info", level: "host", first: "device",
		Fields: []string{"device", "port"},
		text:   "{{ .Labels.device }}/{{ .Labels.port }}.",
	},
	{
		Name: "device", word: "Device", metric: "rdma_device_info", level: "device", last: "1h",
		Fields: []string{"device", "pci_address", "node_guid", "board_id", "firmware_version", "driver"},
		text: "{{ .Labels.device }}, PCI " + or("pci_address", "unknown") + ", GUID " + or("node_guid", "unknown") +
			", board " + or("board_id", "unknown") +
			", firmware " + or("firmware_version", "unknown") + ", driver " + or("driver", "unknown") + ".",
	},
	{
		Name: "missing_device", word: "Missing device", metric: "rdma_device_missing_info", level: "device",
		Fields: []string{"device", "pci_address", "node_guid"},
		text:   "{{ .Labels.device }}, PCI " + or("pci_address", "unknown") + ", GUID " + or("node_guid", "unknown") + ".",
	},
	{
		Name: "neighbour", word: "Neighbour", metric: "rdma_port_neighbour_info", level: "netdev", last: "1h",
		Fields: []string{"netdev", "system", "port_id", "source"},
		text:   "{{ .Labels.system }}" + with(" port ", "port_id") + with(", at ", "netdev") + " ({{ .Labels.source }}).",
	},
	{
		Name: "module", word: "Transceiver", metric: "rdma_transceiver_info", level: "netdev",
		Fields: []string{"netdev", "form_factor", "vendor", "part_number", "serial_number", "media"},
		text: or("form_factor", "unknown form") + ", " + or("vendor", "unknown vendor") + with(" ", "part_number") +
			", serial number " + or("serial_number", "unknown") +
			"{{ with .Labels.media }}, {{ reReplaceAll \"_\" \" \" . }}{{ end }}" + with(", in ", "netdev") + ".",
	},
	{
		Name: "same_module", word: "Same transceiver", metric: "rdma_transceiver_duplicate_info", level: "host",
		first: "netdev", Fields: []string{"device", "port", "netdev"},
		text: "{{ .Labels.device }}/{{ .Labels.port }}, netdev {{ .Labels.netdev }}.",
	},
	{
		Name: "gpu", word: "GPU",
		metric: "rdma_gpu_info", level: "gpu", last: "1h",
		Fields: []string{"gpu", "UUID", "pci_bus_id", "model", "serial_number"},
		text: "{{ .Labels.gpu }}, " + or("UUID", "UUID unknown") + ", PCI " + or("pci_bus_id", "unknown") + ", " +
			or("model", "model unknown") + ", serial number " + or("serial_number", "unknown") + ".",
	},
	{
		Name: "gpus", word: "GPU", metric: "rdma_gdr_gpu_info", level: "device", last: "1h", Fields: []string{"gpu", "UUID"},
		text: "{{ .Labels.gpu }}" + "{{ with .Labels.UUID }} ({{ . }}){{ end }}, whose nearest NIC this is.",
	},
	{
		Name: "jobs", metric: "rdma_gdr_gpu_transport_info", level: "host", where: "workload!=''", quiet: true, counts: true,
		Fields: []string{"workload"},
	},
	{
		Name: Workloads, word: "Impact", metric: "rdma_port_job_info", level: "port", last: "15m", Fields: workload,
		text: who + " uses this port" + onGPUs + ".",
	},
	{
		Name: Workloads, word: "Impact", metric: "rdma_port_job_info", level: "device", last: "15m", Fields: workload,
		text: who + " uses this device" + onGPUs + ".",
	},
	{
		Name: Workloads, word: "Impact", metric: "rdma_gpu_job_info", level: "gpu", last: "15m", Fields: workload,
		text: who + " uses this GPU.",
	},
	{
		Name: Workloads, word: "Impact", level: "host", where: "__name__=~'rdma_(port|gpu)_job_info'",
		last: "15m", Fields: workload,
		text: who + " runs on this host" + onGPUs + ".",
	},
	{Name: WorkloadGPUs, metric: "rdma_gpu_job_info", level: "host", last: "15m", quiet: true, Fields: slices.Concat([]string{"gpu", "UUID"}, workload[:2])},
	{Name: WorkloadNames, metric: "rdma_job_info", level: "host", last: "15m", quiet: true, Fields: []string{"scheduler", "job_id", "name", "user"}},
	{
		Name: "kernel_log", word: "Kernel log", metric: "rdma_kernel_log_last_event_timestamp_seconds",
		level: "device", times: true,
		Fields: []string{"kind", "driver", "pci_address", "detail"},
		text: `{{ (.Value | toTime).Format "15:04:05 MST" }}` + with(" ", "driver") + with(" ", "pci_address") +
			": {{ reReplaceAll \"_\" \" \" .Labels.kind }}" + with(", ", "detail") + ".",
	},
	{
		Name: "fabric_link", word: "Link", metric: "rdma_fabric_link_info", level: "port",
		Fields: []string{"node", "node_guid", "port", "neighbour", "neighbour_guid", "neighbour_port"},
		text:   "{{ .Labels.node }} ({{ .Labels.node_guid }}) port {{ .Labels.port }} to {{ .Labels.neighbour }} ({{ .Labels.neighbour_guid }}) port {{ .Labels.neighbour_port }}.",
	},
	{
		Name: "fabric_node", word: "Node", metric: "rdma_fabric_node_info", level: "node",
		Fields: []string{"node", "node_guid", "node_type"},
		text:   "{{ .Labels.node }} ({{ .Labels.node_guid }}), {{ .Labels.node_type }}.",
	},
}

const (
	hostLine   = "Host: {{ stripPort $labels.instance }}."
	fabricLine = "Fabric: swept from {{ stripPort $labels.instance }}."
)

// Objects lists the objects; those with more labels precede those with a subset.
var Objects = []Object{
	{"gpu", []level{host, gpu}, []string{hostLine}, slices.Concat(pick("gpu", "jobs"), workloads("gpu"))},
	{"netdev", []level{host, device, port, netdev}, []string{hostLine}, slices.Concat(pick("port", "same_link", "device", "neighbour", "module", "same_module", "gpus", "jobs", "kernel_log"), workloads("port"))},
	{"port", []level{host, device, port}, []string{hostLine}, slices.Concat(pick("port", "same_link", "device", "neighbour", "module", "gpus", "jobs", "kernel_log"), workloads("port"))},
	{"device", []level{host, device}, []string{hostLine}, slices.Concat(pick("device", "missing_device", "port", "gpus", "jobs", "kernel_log"), workloads("device"))},
	{"fabric_port", []level{host, node, port}, []string{fabricLine}, pick("fabric_link")},
	{"fabric_node", []level{host, node}, []string{fabricLine}, pick("fabric_node")},
	{"fabric_host", []level{host, remote}, []string{fabricLine, "Host: {{ $labels.system }}."}, nil},
	{"switch", []level{system}, []string{"Switch: {{ $labels.system }}."}, nil},
	{"host", []level{host}, []string{hostLine}, slices.Concat(pick("jobs"), workloads("host"))},
	{"fabric", []level{host}, []string{fabricLine}, nil}, // same labels as host: its rules specify it
	{"workload", []level{load}, []string{`Job: {{ if $labels.pod }}pod {{ $labels.namespace }}/{{ $labels.pod }}, UID {{ $labels.job_id }}{{ else }}{{ $labels.scheduler }} {{ $labels.job_id }}{{ end }}{{ with $labels.cluster }}, cluster {{ . }}{{ end }}.`}, nil},
	{"fleet", []level{fleet}, []string{"Prometheus job: {{ $labels.job }}{{ with $labels.cluster }}, cluster {{ . }}{{ end }}."}, nil},
}

func pick(names ...string) (out []Fact) {
	for _, n := range names {
		out = append(out, facts[slices.IndexFunc(facts, func(f Fact) bool { return f.Name == n })])
	}
	return out
}

// workloads returns the facts on the workloads of a level.
func workloads(of string) (out []Fact) {
	for _, f := range facts {
		if f.Name == Workloads && f.level == of || f.Name == WorkloadGPUs || f.Name == WorkloadNames {
			out = append(out, f)
		}
	}
	return out
}

// Of returns the object of an alert with these labels.
func Of(labels map[string]string) Object {
	for _, o := range Objects {
		if !slices.ContainsFunc(o.levels, func(l level) bool { return labels[l.key] == "" }) {
			return o
		}
	}
	return Objects[len(Objects)-1]
}

// OfHost reports whether the object is a host or a part of one.
func (o Object) OfHost() bool { return len(o.fixed) > 0 && o.fixed[0] == hostLine }

// Question is a PromQL query for a fact about one object. Each result is a series with the labels Fields.
type Question struct {
	Name, Query string
	Fields      []string
	Times       bool // the value is a time, in seconds since 1970
}

// Questions returns the queries for the object of an alert with these labels.
func Questions(labels map[string]string) (out []Question) {
	o := Of(labels)
	for _, f := range o.facts {
		var matchers []string
		for _, l := range o.upTo(f.level) {
			for _, name := range l.labels {
				matchers = append(matchers, name+"="+strconv.Quote(labels[name]))
			}
		}
		if f.first != "" {
			matchers = append(matchers, "first="+strconv.Quote(labels[f.first]))
		}
		out = append(out, Question{f.Name, f.query(strings.Join(matchers, ",")), f.Fields, f.times})
	}
	return out
}

// upTo returns the levels of an object down to the named one, or all.
func (o Object) upTo(name string) []level {
	if i := slices.IndexFunc(o.levels, func(l level) bool { return l.name == name }); i >= 0 {
		return o.levels[:i+1]
	}
	return o.levels
}

func (f Fact) query(matchers string) string {
	if f.where != "" {
		matchers = f.where + "," + matchers
	}
	by := "max"
	if f.counts {
		by = "count"
	}
	by += " by (" + strings.Join(f.Fields, ", ") + ") "
	series := f.metric + "{" + matchers + "}"
	if f.times {
		return by + "(" + series + ") > time() - 60 * 60"
	}
	if f.last == "" {
		return by + "(" + series + ")"
	}
	return by + "(" + series + ") or on () " + by + "(last_over_time(" + series + "[" + f.last + "]))"
}

// Lines returns the identity of an object as lines of an annotation.
func (o Object) Lines(alert string) (out []string) {
	wider := ""
	for _, l := range o.levels {
		var matchers, args []string
		if wider != "" {
			matchers, args = []string{"%s"}, []string{"$" + wider}
		}
		for _, name := range l.labels {
			matchers, args = append(matchers, name+"=%q"), append(args, "$labels."+name)
		}
		out = append(out, fmt.Sprintf("{{- $%s := printf %q %s -}}",
			l.name, strings.Join(matchers, ","), strings.Join(args, " ")))
		wider = l.name
	}
	out = append(out, o.fixed...)
	of := "%s"
	switch o.Name { // the same alert may be on its parts
	case "host":
		of = "device='',gpu='',%s"
	case "fabric":
		of = "node_guid='',system='',%s"
	case "fabric_node":
		of = "port='',%s"
	}
	out = append(out,
		fmt.Sprintf("{{- with query (printf %q $%s) }}", "max(ALERTS_FOR_STATE{alertname='"+alert+"',"+of+"})", wider),
		`Since: {{ (. | first | value | toTime).Format "2006-01-02 15:04:05 MST" }}.`, "{{- end }}")
	for _, f := range o.facts {
		if f.quiet {
			continue
		}
		levels := o.upTo(f.level)
		matchers, args := "%s", "$"+levels[len(levels)-1].name
		if f.first != "" {
			matchers, args = "%s,first=%q", args+" $labels."+f.first
		}
		sorted := ""
		for _, name := range slices.Backward(f.Fields[:min(3, len(f.Fields))]) {
			sorted += fmt.Sprintf(" | sortByLabel %q", name)
		}
		query := f.query(matchers)
		if f.last != "" {
			args += " " + args
		}
		out = append(out, fmt.Sprintf("{{- range query (printf %q %s)%s }}", query, args, sorted),
			f.word+": "+f.text, "{{- end }}")
	}
	return out
}

// LinkEnds are lines of an annotation that name both ends of the link of a port. Before them the annotation sets $port,
// the matchers of the port, and $own and $far: whether this end and the far end receive errors. They set $here and
// $there, the ends; $tx and $rx, the ends that transmit and receive the errors; and $end, the receiving end as a label.
var LinkEnds = []string{
	`{{- $here := printf "%s %s/%s" (stripPort $labels.instance) $labels.device $labels.port -}}`,
	`{{- $there := "the far end" -}}`,
	`{{- with query (printf "max by (system, port_id) (rdma_port_neighbour_info{%s})" $port) | sortByLabel "port_id" | sortByLabel "system" }}{{ $there = . | first | label "system" | urlquery }}{{ with . | first | label "port_id" }}{{ $there = printf "%s port %s" $there (urlquery .) }}{{ end }}{{ end -}}`,
	`{{- $tx := $there }}{{ $rx := $here }}{{ $end := "own" }}{{ if and $far (not $own) }}{{ $tx = $here }}{{ $rx = $there }}{{ $end = "neighbour" }}{{ end -}}`,
}
