package alerting_test

import (
	"bufio"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/rules"
)

// sets are the rule files and the labels that their alerts may have.
var sets = []struct {
	folder string
	load   func() (fs.FS, []string, error)
	labels []string
}{
	{"node", rules.Node, strings.Fields("cluster instance job device port netdev gpu UUID pci_bus_id lane priority direction kind on_host scheduler job_id namespace pod")},
	{"central", rules.Central, strings.Fields(
		"cluster instance job system node_guid device port kind node neighbour neighbour_port scheduler job_id namespace pod switch switch_port priority scope")},
}

// ofAlerts is the file that reads alerts, of which it learns at most one evaluation later. In another rule the result
// would depend on the order of evaluation.
const ofAlerts = "node/verdict.rules.yml"

// TestRuleStyle checks the conventions that Alertmanager, old servers and the person on call rely on.
func TestRuleStyle(t *testing.T) {
	recorded := map[string][]string{} // central rules read records of node rules
	for _, set := range sets {
		t.Run(set.folder, func(t *testing.T) {
			files, names, err := set.load()
			if err != nil {
				t.Fatal(err)
			}
			onDisk, err := filepath.Glob("../../rules/" + set.folder + "/*.yml")
			if err != nil || len(onDisk) != len(names) {
				t.Errorf("embedded %v, on disk %v (%v)", names, onDisk, err)
			}
			for _, name := range names {
				for _, line := range linesOf(t, files, name) {
					// The longest that rules are made for.
					if s := strings.TrimSpace(line); strings.HasPrefix(s, "interval:") && s != "interval: 1m" {
						t.Errorf("%s: %s", name, s)
					}
					if strings.Contains(line, "else with") {
						t.Errorf("%s: {{ else with }}: templates of Prometheus 2.42, which is built with Go 1.19, do not know it", name)
					}
				}
			}
			e := shipped(t, set.load)
			addRecorded(t, e, recorded)
			if len(e.RecordingRules()) == 0 || len(e.Rules()) == 0 {
				t.Errorf("%d records, %d alerts", len(e.RecordingRules()), len(e.Rules()))
			}
			for _, r := range e.RecordingRules() {
				checkPromQL(t, r.Name, parse(t, r.Expr))
				if r.File != ofAlerts && readsAlerts(parse(t, r.Expr)) {
					t.Errorf("%s of %s reads ALERTS", r.Name, r.File)
				}
			}
			for _, r := range e.Rules() {
				checkAlert(t, r, recorded, set.labels)
				for _, m := range r.Metrics {
					if strings.Contains(m, ":") &&
						(set.folder == "node" || recorded[m] == nil) {
						t.Errorf("%s reads %s, which no rule records", r.Name, m)
					}
				}
				if readsAlerts(parse(t, r.Expr)) {
					t.Errorf("%s of %s reads ALERTS", r.Name, r.File)
				}
			}
		})
	}
}

// addRecorded adds the labels of recording rules. Rules of one name record together. A rule may read a later rule, or
// its own earlier record: the loop ends when no label is new.
func addRecorded(t *testing.T, e *alerting.Engine, recorded map[string][]string) {
	t.Helper()
	for _, r := range e.RecordingRules() {
		if _, ok := recorded[r.Name]; !ok {
			recorded[r.Name] = nil
		}
	}
	for changed := true; changed; {
		changed = false
		for _, r := range e.RecordingRules() {
			for _, l := range resultLabels(parse(t, r.Expr), recorded) {
				if !slices.Contains(recorded[r.Name], l) {
					recorded[r.Name], changed = append(recorded[r.Name], l), true
				}
			}
		}
	}
}

// readsAlerts reports whether an expression selects series of alerts, by name or by a matching pattern.
func readsAlerts(expr parser.Expr) bool {
	found := false
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			for _, m := range s.LabelMatchers {
				found = found || m.Name == "__name__" && (m.Matches("ALERTS") || m.Matches("ALERTS_FOR_STATE"))
			}
		}
		return nil
	})
	return found
}

// shipped returns an engine with a set of the rule files in the binary.
func shipped(t *testing.T, load func() (fs.FS, []string, error)) *alerting.Engine {
	t.Helper()
	files, names, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return opened(t, alerting.Options{Dir: t.TempDir(), Instance: instance, Rules: files, Files: names})
}

// opened returns an engine that the test closes at its end.
func opened(t *testing.T, o alerting.Options) *alerting.Engine {
	t.Helper()
	e, err := alerting.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func parse(t *testing.T, text string) parser.Expr {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Fatal(err)
	}
	return expr
}

// ofFault reports whether an alert is on placed faults: internal/evidence has its texts.
func ofFault(r alerting.Rule) bool { return r.Labels["symptom"] != "" && r.Labels["where"] == "" }

func checkAlert(t *testing.T, r alerting.Rule, recorded map[string][]string, allowed []string) {
	t.Helper()
	expr := parse(t, r.Expr)
	checkPromQL(t, r.Name, expr)
	names := resultLabels(expr, recorded)
	for _, label := range names {
		if !slices.Contains(allowed, label) {
			t.Errorf("%s: label %q may come out of %s", r.Name, label, r.Expr)
		}
	}
	want := []string{"drain", "severity"}
	if ofFault(r) {
		want = []string{"drain", "reason", "severity", "symptom"}
		names = append(names, "reason", "scope", "symptom", "where")
	} else {
		for _, l := range []string{"reason", "symptom"} { // symptom: of a job, which has no place
			if r.Labels[l] != "" {
				want = append(want, l)
			}
		}
		notifies := r.Labels["severity"] == "critical" || r.Labels["severity"] == "warning"
		if notifies || r.Labels["where"] != "" { // Alertmanager groups by it
			want = append(want, "where")
		}
		slices.Sort(want)
	}
	if !slices.Equal(slices.Sorted(maps.Keys(r.Labels)), want) ||
		!slices.Contains([]string{"critical", "warning", "info", "none"}, r.Labels["severity"]) ||
		!slices.Contains([]string{"no", "cordon", "evict"}, r.Labels["drain"]) {
		t.Errorf("%s: labels %v, want %v", r.Name, r.Labels, want)
	}
	if quiet := r.Labels["severity"] == "info" || r.Labels["severity"] == "none"; quiet && r.Labels["drain"] != "no" {
		t.Errorf("%s: severity %s drains a host", r.Name, r.Labels["severity"])
	}
	if !strings.HasPrefix(r.Name, "RDMA") || r.KeepFiringFor == 0 {
		t.Errorf("%s: keep_firing_for %s", r.Name, r.KeepFiringFor)
	}
	if r.Labels["severity"] == "critical" && r.KeepFiringFor < 5*time.Minute {
		t.Errorf("%s: a page is kept for %s, less than Alertmanager may be away", r.Name, r.KeepFiringFor)
	}
	checkRunbook(t, r)
	checkText(t, r, append(names, "severity", "drain"))
}

func checkRunbook(t *testing.T, r alerting.Rule) {
	t.Helper()
	runbook := r.Annotations["runbook_url"]
	page, err := os.ReadFile(filepath.Join("../..", filepath.FromSlash(runbook)))
	if err != nil || runbook != "docs/runbooks/"+r.Name+".md" {
		t.Errorf("%s: runbook %q: %v", r.Name, runbook, err)
	}
	for _, section := range []string{"# " + r.Name, "## Meaning", "## Impact", "## Diagnosis", "## Mitigation"} {
		if !strings.Contains(string(page), section+"\n") {
			t.Errorf("%s lacks %q", runbook, section)
		}
	}
}

var labelInText = regexp.MustCompile(`\$labels\.([A-Za-z_]+)`)

// checkText requires the habits of monitoring mixins: a headline, what is measured, what to do first, the runbook; each
// with at most one query, and no label that the alert lacks, which would be empty. Evidence is that of the exporter.
func checkText(t *testing.T, r alerting.Rule, names []string) {
	t.Helper()
	want := []string{"action", "description", "runbook_url", "summary"}
	if r.Labels["severity"] == "none" {
		want = want[1:]
	}
	if got := slices.Sorted(maps.Keys(r.Annotations)); !slices.Equal(got, want) {
		t.Errorf("%s: annotations %v", r.Name, got)
	}
	if ofFault(r) && !strings.Contains(r.Annotations["summary"], "{{ $labels.where }}") {
		t.Errorf("%s: the summary does not say where", r.Name)
	}
	size, queries := 0, 0
	for name, text := range r.Annotations {
		size, queries = size+len(text), queries+strings.Count(text, "query (")
		if strings.Contains(text, `query (printf "rdma_`) || strings.Contains(text, `query "rdma_`) {
			t.Errorf("%s: annotation %s queries series of the exporter, which --tune.selector does not reach", r.Name, name)
		}
		for _, m := range labelInText.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(names, m[1]) {
				t.Errorf("%s: annotation %s has $labels.%s, the alert has %v", r.Name, name, m[1], names)
			}
		}
	}
	if size > 1300 || queries > 1 {
		t.Errorf("%s: texts of %d bytes with %d queries", r.Name, size, queries)
	}
	checkPasted(t, r)
}

// TestExplained: each row of the order of explanation names symptoms that there are.
func TestExplained(t *testing.T) {
	var rows []alerting.Recording
	for _, set := range sets {
		for _, r := range shipped(t, set.load).RecordingRules() {
			if r.Name == "rdma:finding" {
				rows = append(rows, r)
			}
		}
	}
	found := false
	for _, r := range shipped(t, rules.Node).RecordingRules() {
		if r.Name != "rdma:explained" {
			continue
		}
		found = true
		parser.Inspect(parse(t, r.Expr), func(node parser.Node, _ []parser.Node) error {
			s, ok := node.(*parser.VectorSelector)
			if ok && s.Name == "rdma:symptom" && !slices.ContainsFunc(rows, func(row alerting.Recording) bool {
				return !slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool {
					v := row.Labels[m.Name]
					return v != "" && !m.Matches(v)
				})
			}) {
				t.Errorf("no symptom matches %s", s)
			}
			return nil
		})
	}
	if !found {
		t.Error("no rule rdma:explained")
	}
}

func linesOf(t *testing.T, files fs.FS, name string) []string {
	t.Helper()
	f, err := files.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []string
	for s := bufio.NewScanner(f); s.Scan(); {
		out = append(out, s.Text())
	}
	return out
}

// onlyOne are the records that take one of several series by topk(1), of series that are the same or of which any will
// do.
var onlyOne = []string{
	"rdma:placed", "rdma:common:ports", "instance:rdma_setting:changed", "instance:rdma_setting:unlike",
	"link:rdma_fabric_finding:common", "port:rdma_port_address:info", "rdma:loss:end",
}

// checkPromQL allows the functions of Prometheus 2.42, and ranges that tolerate a few missed rounds at any scrape
// interval.
func checkPromQL(t *testing.T, rule string, expr parser.Expr) {
	t.Helper()
	functions := strings.Fields(`abs absent absent_over_time avg_over_time ceil changes clamp clamp_max clamp_min
		count_over_time delta deriv floor histogram_quantile increase label_join label_replace last_over_time max_over_time
		min_over_time quantile_over_time rate resets round scalar stddev_over_time sum_over_time time timestamp vector`)
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.Call:
			if !slices.Contains(functions, n.Func.Name) {
				t.Errorf("%s uses %s()", rule, n.Func.Name)
			}
		case *parser.MatrixSelector:
			ofFaults := strings.HasPrefix(metricOf(n.VectorSelector), "rdma:") // each evaluation has them
			if n.Range < 5*time.Minute && !ofFaults {
				t.Errorf("%s: range %s", rule, n.Range)
			}
		case *parser.AggregateExpr:
			one := n.Param != nil && n.Param.String() == "1" && slices.Contains(onlyOne, rule)
			if (n.Op == parser.TOPK || n.Op == parser.BOTTOMK) && !one {
				t.Errorf("%s uses topk: its series come and go", rule)
			}
		}
		return nil
	})
}

// metricOf returns the name in a selector.
func metricOf(e parser.Expr) string {
	if s, ok := e.(*parser.VectorSelector); ok {
		return s.Name
	}
	return ""
}

// resultLabels returns the labels that an expression's result can have; "*" if they depend on the data.
func resultLabels(expr parser.Expr, recorded map[string][]string) []string {
	switch e := expr.(type) {
	case *parser.AggregateExpr:
		if e.Without {
			return without(resultLabels(e.Expr, recorded), e.Grouping)
		}
		return e.Grouping
	case *parser.BinaryExpr:
		switch {
		case e.LHS.Type() == parser.ValueTypeScalar:
			return resultLabels(e.RHS, recorded)
		case e.Op == parser.LOR:
			return append(slices.Clone(resultLabels(e.LHS, recorded)), resultLabels(e.RHS, recorded)...)
		case e.RHS.Type() == parser.ValueTypeVector && e.VectorMatching.Card == parser.CardManyToOne:
			return append(slices.Clone(resultLabels(e.LHS, recorded)), e.VectorMatching.Include...)
		case e.RHS.Type() == parser.ValueTypeVector && !e.Op.IsSetOperator() && e.VectorMatching.On:
			return append(slices.Clone(e.VectorMatching.MatchingLabels), e.VectorMatching.Include...)
		case e.RHS.Type() == parser.ValueTypeVector && !e.Op.IsSetOperator():
			return without(resultLabels(e.LHS, recorded), e.VectorMatching.MatchingLabels)
		default:
			return resultLabels(e.LHS, recorded)
		}
	case *parser.VectorSelector:
		if names, ok := recorded[e.Name]; ok {
			return names
		}
	case *parser.Call:
		switch {
		case e.Func.Name == "vector":
			return nil
		case e.Func.Name == "label_replace" || e.Func.Name == "label_join":
			return append(slices.Clone(resultLabels(e.Args[0], recorded)), e.Args[1].(*parser.StringLiteral).Val)
		case len(e.Args) > 0:
			return resultLabels(e.Args[0], recorded)
		}
	}
	if inner := alerting.Operand(expr); inner != nil {
		return resultLabels(inner, recorded)
	}
	return []string{"*"}
}

// without are labels less others.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(l string) bool { return slices.Contains(others, l) })
}

// namedByOthers are labels chosen by others: a container owner names its netdev, a node of a subnet itself.
var namedByOthers = regexp.MustCompile(`\{\{-? (?:\$labels|\$?\w*\.Labels)\.(?:netdev|device|system|node|neighbour|workload|kind|detail) |label "(?:netdev|device|system|node|neighbour|workload)" -?\}\}`)

// checkPasted requires escaping of names that are pasted into a root shell: $(reboot) is a valid netdev name.
func checkPasted(t *testing.T, r alerting.Rule) {
	t.Helper()
	for _, name := range []string{"diagnose", "action"} {
		if m := namedByOthers.FindString(r.Annotations[name]); m != "" {
			t.Errorf("%s: %s has %s without urlquery", r.Name, name, m)
		}
	}
}
