// Package author has the commands for those who write rules, dashboards and configuration: rules, backtest, runbook,
// dashboards, check-config.
package author

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/alerting/rollup"
	"rdma_exporter/internal/alerting/switches"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rulefiles"
	"rdma_exporter/internal/tune"
	"rdma_exporter/rules"
)

// Rules is the command rules, with its flags.
type Rules struct {
	set  string
	list bool
	// switches is the file with the names of counters of switches; empty: none.
	switches string
	dir      string // empty: standard output
	force    bool
	books    rulefiles.RunbookURL

	tune   tuneFlags
	format string
	labels []string // of the objects, NAME=VALUE
}

// Output formats: files of Prometheus, or objects of prometheus-operator.
const (
	formatPrometheus     = "prometheus"
	formatPrometheusRule = "prometheusrule"
)

// sets are the files of each rule set.
var sets = map[string]func() (fs.FS, []string, error){
	setNode: rules.Node, setCentral: rules.Central, setLeaf: rules.Both, setGlobal: rules.Both, setCompat: rules.Compat,
}

const (
	setNode    = "node"
	setCentral = "central"
	setLeaf    = "leaf"
	setGlobal  = "global"
	setCompat  = "compat"
)

var setNames = []string{setNode, setCentral, setLeaf, setGlobal, setCompat}

// Flags adds the flags.
func (r *Rules) Flags(a *kingpin.CmdClause) {
	a.Flag("set", "Rule set: node (rules on the metrics of one host), central (rules across hosts, in addition to node), or compat (recording rules with the metric names of node_exporter). Of several Prometheus servers: leaf (node and central of a server that scrapes hosts), or global (of the server that the leaves write to).").
		PlaceHolder(strings.Join(setNames, "|")).EnumVar(&r.set, setNames...)
	a.Flag("remote-write-list", "Print the remote_write configuration of a leaf: the series that the global rules read.").
		BoolVar(&r.list)
	a.Flag("switch-metrics", "File with the names that another exporter gives to the counters of switches, YAML (docs/neighbours.md): the set then records them for its rules. Sets central and leaf.").
		PlaceHolder("FILE").StringVar(&r.switches)
	a.Flag("output", "Output directory, one file per rule file. Default: standard output, as one file.").
		Short('o').PlaceHolder("DIR").StringVar(&r.dir)
	a.Flag("force", "Overwrite files that differ.").BoolVar(&r.force)
	a.Flag("runbook-url", "Runbooks for the annotation runbook_url. Default: no such annotation."+
		rulefiles.RunbookURLHelp).PlaceHolder("URL").StringVar((*string)(&r.books))
	a.Flag("format", "Output format: prometheus (files for rule_files), or prometheusrule (objects of prometheus-operator, one per file).").Default(formatPrometheus).
		PlaceHolder("prometheus|prometheusrule").EnumVar(&r.format, formatPrometheus, formatPrometheusRule)
	a.Flag("object-label",
		"Label of each PrometheusRule, for the ruleSelector of the Prometheus, such as release=kube-prometheus-stack. Repeatable.").
		PlaceHolder("NAME=VALUE").StringsVar(&r.labels)
	r.tune.add(a)
}

// Run runs the command.
func (r *Rules) Run(_ context.Context, _ *machine.Config, std command.Streams) (int, error) {
	if err := r.books.Check(); err != nil {
		return command.Usage(err)
	}
	if r.list {
		return r.printList(std)
	}
	set := sets[r.set]
	if set == nil {
		return command.Usage(fmt.Errorf("--set=%s is required", strings.Join(setNames, "|")))
	}
	fsys, names, err := set()
	if err != nil {
		return command.UsageError, err
	}
	files, err := command.ReadEmbedded(fsys, names)
	if err != nil {
		return command.UsageError, err
	}
	for i := range files {
		files[i].Text = r.books.InRules(files[i].Text)
	}
	if files, err = r.tune.apply(files); err != nil {
		return command.Usage(err)
	}
	switch r.set {
	case setNode: // whose rules central needs
	case setLeaf, setGlobal:
		if files, err = r.half(files); err != nil {
			return command.UsageError, err
		}
	default:
		files = slices.DeleteFunc(files, func(f command.File) bool { return f.Name == tune.ThresholdsFile })
	}
	if r.switches != "" {
		if files, err = r.withSwitches(files); err != nil {
			return command.Usage(fmt.Errorf("--switch-metrics=%s: %w", r.switches, err))
		}
	}
	joined := oneFile
	if r.format == formatPrometheusRule {
		labels, err := pairs("object-label", r.labels)
		if err != nil {
			return command.Usage(err)
		}
		files, joined = objects(r.set, labels, files), manyDocuments
	} else if len(r.labels) > 0 {
		return command.Usage(fmt.Errorf("--object-label: has no effect without --format=%s", formatPrometheusRule))
	}
	if r.dir == "" || r.dir == "-" {
		_, err := std.Out.Write(joined(files))
		return command.OK, err
	}
	if err := command.WriteFiles(r.dir, r.force, files); err != nil {
		return command.Usage(fmt.Errorf("--output=%s: %w", r.dir, err))
	}
	return command.OK, nil
}

// half returns the files of a leaf, or of the global Prometheus.
func (r *Rules) half(files []command.File) (out []command.File, _ error) {
	if r.set == setGlobal {
		travel, err := rollup.Travelling(textsOf(files))
		if err != nil {
			return nil, err
		}
		out = append(out, command.File{Name: "merge.rules.yml", Text: rollup.Merge(travel)})
	}
	for _, f := range files {
		if f.Name != tune.ThresholdsFile { // which both need
			f.Text = rollup.Groups(f.Text, func(g string) bool { return rollup.IsGlobal(g) == (r.set == setGlobal) })
		}
		if f.Text != nil {
			out = append(out, f)
		}
	}
	return out, nil
}

// withSwitches adds the file that records counters of switches.
func (r *Rules) withSwitches(files []command.File) ([]command.File, error) {
	if r.set != setCentral && r.set != setLeaf {
		return nil, fmt.Errorf("no rule of --set=%s reads counters of switches: use %s or %s", r.set, setCentral, setLeaf)
	}
	mapping, err := command.ReadSmall(r.switches, maxTuneFile)
	if err != nil {
		return nil, err
	}
	text, err := switches.Rules(mapping)
	if err != nil {
		return nil, err
	}
	return append(files, command.File{Name: switches.FileName, Text: text}), nil
}

func (r *Rules) printList(std command.Streams) (int, error) {
	fsys, names, err := rules.Both()
	if err != nil {
		return command.UsageError, err
	}
	files, err := command.ReadEmbedded(fsys, names)
	if err != nil {
		return command.UsageError, err
	}
	travel, err := rollup.Travelling(textsOf(files))
	if err != nil {
		return command.UsageError, err
	}
	_, err = std.Out.Write(rollup.RemoteWrite(travel))
	return command.OK, err
}

func textsOf(files []command.File) (out [][]byte) {
	for _, f := range files {
		out = append(out, f.Text)
	}
	return out
}

// oneFile joins files into one that Prometheus loads: all groups below one key, each file's comments before its groups.
func oneFile(files []command.File) []byte {
	const key = "groups:\n"
	b := bytes.NewBufferString(key)
	for _, f := range files {
		head, groups, _ := strings.Cut(string(f.Text), "\n"+key)
		fmt.Fprintf(b, "\n# %s\n#\n%s\n%s", f.Name, head, groups)
	}
	return b.Bytes()
}

// objects makes a PrometheusRule of each file that has rules.
func objects(set string, labels map[string]string, files []command.File) (out []command.File) {
	for _, f := range files {
		if !bytes.Contains(f.Text, []byte("\n- name: ")) {
			continue
		}
		var b bytes.Buffer
		base := strings.ReplaceAll(strings.TrimSuffix(f.Name, ".rules.yml"), "_", "-")
		fmt.Fprintf(&b,
			"apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: rdma-exporter-%s-%s\n", set, base)
		if len(labels) > 0 {
			b.WriteString("  labels:\n")
		}
		for _, name := range slices.Sorted(maps.Keys(labels)) {
			fmt.Fprintf(&b, "    %s: %q\n", name, labels[name])
		}
		b.WriteString("spec:\n")
		for line := range bytes.Lines(f.Text) {
			if len(bytes.TrimSpace(line)) > 0 {
				b.WriteString("  ")
			}
			b.Write(line)
		}
		out = append(out, command.File{Name: f.Name, Text: b.Bytes()})
	}
	return out
}

// manyDocuments joins objects into one file.
func manyDocuments(files []command.File) []byte {
	var b bytes.Buffer
	for _, f := range files {
		b.WriteString("---\n")
		b.Write(f.Text)
	}
	return b.Bytes()
}
