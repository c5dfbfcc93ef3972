package app

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/rules"
)

type rulesConfig struct {
	set   string
	dir   string // empty: standard output
	force bool
	books runbookURL

	tune   tuneConfig
	format string
	labels []string // of the objects, NAME=VALUE
}

// Output formats: files of Prometheus, or objects of prometheus-operator.
const (
	formatPrometheus     = "prometheus"
	formatPrometheusRule = "prometheusrule"
)

func (r *rulesConfig) flags(a *kingpin.CmdClause) {
	a.Flag("set", "Rule set: node (rules on the metrics of one host), central (rules across hosts, in addition to node), or compat (recording rules with the metric names of node_exporter).").Required().PlaceHolder("node|central|compat").EnumVar(&r.set, "node", "central", "compat")
	a.Flag("output", "Output directory, one file per rule file. Default: standard output, as one file.").Short('o').PlaceHolder("DIR").StringVar(&r.dir)
	a.Flag("force", "Overwrite files that differ.").BoolVar(&r.force)
	r.books.flag(a, "Runbooks for the annotation runbook_url. Default: no such annotation.")
	r.tune.flags(a)
	a.Flag("format", "Output format: prometheus (files for rule_files), or prometheusrule (objects of prometheus-operator, one per file).").Default(formatPrometheus).PlaceHolder("prometheus|prometheusrule").EnumVar(&r.format, formatPrometheus, formatPrometheusRule)
	a.Flag("object-label", "Label of each PrometheusRule, for the ruleSelector of the Prometheus, such as release=kube-prometheus-stack. Repeatable.").PlaceHolder("NAME=VALUE").StringsVar(&r.labels)
}

func runRules(r *rulesConfig, stdout io.Writer) (int, error) {
	if err := r.books.check(); err != nil {
		return usage(err)
	}
	set := map[string]func() (fs.FS, []string, error){"node": rules.Node, "central": rules.Central, "compat": rules.Compat}[r.set]
	fsys, names, err := set()
	if err != nil {
		return exitUsage, err
	}
	files, err := readEmbedded(fsys, names)
	if err != nil {
		return exitUsage, err
	}
	for i := range files {
		files[i].text = r.books.inRules(files[i].text)
	}
	if files, err = r.tune.apply(files); err != nil {
		return usage(err)
	}
	joined := oneFile
	if r.format == formatPrometheusRule {
		labels, err := pairs("object-label", r.labels)
		if err != nil {
			return usage(err)
		}
		files, joined = objects(r.set, labels, files), manyDocuments
	} else if len(r.labels) > 0 {
		return usage(fmt.Errorf("--object-label: has no effect without --format=%s", formatPrometheusRule))
	}
	if r.dir == "" || r.dir == "-" {
		if _, err := stdout.Write(joined(files)); err != nil {
			return exitUsage, fmt.Errorf("cannot print the rules: %w", err)
		}
		return exitOK, nil
	}
	if err := writeEmbedded(r.dir, r.force, files); err != nil {
		return usage(fmt.Errorf("--output=%s: %w", r.dir, err))
	}
	return exitOK, nil
}

// oneFile joins files into one that Prometheus loads: all groups below one key, each file's comments before its groups.
func oneFile(files []embedded) []byte {
	const key = "groups:\n"
	b := bytes.NewBufferString(key)
	for _, f := range files {
		head, groups, _ := strings.Cut(string(f.text), "\n"+key)
		fmt.Fprintf(b, "\n  # %s\n  #\n", f.name)
		for line := range strings.Lines(head + "\n") {
			b.WriteString("  " + line)
		}
		b.WriteString(groups)
	}
	return b.Bytes()
}

// objects makes a PrometheusRule of each file that has rules.
func objects(set string, labels map[string]string, files []embedded) (out []embedded) {
	for _, f := range files {
		if !bytes.Contains(f.text, []byte("\n  - name: ")) {
			continue
		}
		var b bytes.Buffer
		base := strings.ReplaceAll(strings.TrimSuffix(f.name, ".rules.yml"), "_", "-")
		fmt.Fprintf(&b, "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: rdma-exporter-%s-%s\n", set, base)
		if len(labels) > 0 {
			b.WriteString("  labels:\n")
		}
		for _, name := range slices.Sorted(maps.Keys(labels)) {
			fmt.Fprintf(&b, "    %s: %q\n", name, labels[name])
		}
		b.WriteString("spec:\n")
		for line := range bytes.Lines(f.text) {
			if len(bytes.TrimSpace(line)) > 0 {
				b.WriteString("  ")
			}
			b.Write(line)
		}
		out = append(out, embedded{f.name, b.Bytes()})
	}
	return out
}

// manyDocuments joins objects into one file.
func manyDocuments(files []embedded) []byte {
	var b bytes.Buffer
	for _, f := range files {
		b.WriteString("---\n")
		b.Write(f.text)
	}
	return b.Bytes()
}
