package alerting_test

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

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
	{"node", rules.Node, strings.Fields("cluster instance job device port netdev gpu UUID lane priority direction")},
	{"central", rules.Central, strings.Fields("cluster instance job system node_guid port")},
}

// TestRuleStyle holds the rule files to what Alertmanager, old servers and the person on call rely on.
func TestRuleStyle(t *testing.T) {
	recorded := map[string][]string{} // central rules read what those of nodes record
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
				for _, line := range lines(t, files, name) {
					if strings.HasPrefix(strings.TrimSpace(line), "interval:") {
						t.Errorf("%s sets an interval", name)
					}
					if strings.Contains(line, "else with") {
						t.Errorf("%s: {{ else with }}: templates of Prometheus 2.42, which is built with Go 1.19, do not know it", name)
					}
				}
			}
			e, err := alerting.New(alerting.Options{Dir: t.TempDir(), Instance: instance, Rules: files, Files: names})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			for _, r := range e.RecordingRules() {
				// Rules of one name record together.
				recorded[r.Name] = append(recorded[r.Name], resultLabels(parse(t, r.Expr), recorded)...)
				checkPromQL(t, r.Name, parse(t, r.Expr))
			}
			for _, r := range e.Rules() {
				checkAlert(t, r, recorded, set.labels)
			}
		})
	}
}

func parse(t *testing.T, text string) parser.Expr {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Fatal(err)
	}
	return expr
}

func checkAlert(t *testing.T, r alerting.Rule, recorded map[string][]string, allowed []string) {
	t.Helper()
	expr := parse(t, r.Expr)
	checkPromQL(t, r.Name, expr)
	labels := resultLabels(expr, recorded)
	for _, label := range labels {
		if !slices.Contains(allowed, label) {
			t.Errorf("%s: label %q may come out of %s", r.Name, label, r.Expr)
		}
	}
	if len(r.Labels) != 2 || !slices.Contains([]string{"critical", "warning", "info", "none"}, r.Labels["severity"]) || !slices.Contains([]string{"no", "cordon", "evict"}, r.Labels["drain"]) {
		t.Errorf("%s: labels %v, want severity and drain", r.Name, r.Labels)
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
	if r.Annotations["summary"] == "" || len(r.Annotations) != 3 {
		t.Errorf("%s: annotations %v", r.Name, r.Annotations)
	}
	checkText(t, r, append(labels, "severity", "drain"))
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

// checkText wants what a person asks at night: since when, a command that shows it, the first thing to do, whether draining is safe, what was
// not judged; and no label that the alert does not have, which would be an empty word.
func checkText(t *testing.T, r alerting.Rule, labels []string) {
	t.Helper()
	text := r.Annotations["description"]
	if r.Labels["severity"] != "none" {
		for _, part := range []string{"\nLook: ", "Do: ", "\nDrain: ", "\nNot judged: "} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: the description lacks %q", r.Name, part)
			}
		}
		if since := "ALERTS_FOR_STATE{alertname='" + r.Name + "'"; !strings.Contains(text, since) {
			t.Errorf("%s: the description does not say since when: it lacks %s", r.Name, since)
		}
	}
	for _, m := range labelInText.FindAllStringSubmatch(text+r.Annotations["summary"], -1) {
		if !slices.Contains(labels, m[1]) {
			t.Errorf("%s: the text has $labels.%s, the alert has %v", r.Name, m[1], labels)
		}
	}
}

// noHostAlert in the comment of an alert says that many cases of it are many things to do.
const noHostAlert = "# No alert for the whole host:"

// single are the alerts on a port or device whose comment says so, by name.
func single(t *testing.T, files fs.FS, names []string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, name := range names {
		said := false
		for _, line := range lines(t, files, name) {
			line = strings.TrimSpace(line)
			if alert, ok := strings.CutPrefix(line, "- alert: "); ok && said {
				out[alert] = true
			}
			said = strings.HasPrefix(line, noHostAlert) || said && strings.HasPrefix(line, "#")
		}
	}
	return out
}

var many = regexp.MustCompile(`unless on \(cluster, instance, job\) (host:rdma_[a-z_]+:many)`)

// TestOneAlertForManyPorts: above five ports or devices of a host there is one alert, that of the host, and none of each.
func TestOneAlertForManyPorts(t *testing.T) {
	files, names, err := rules.Node()
	if err != nil {
		t.Fatal(err)
	}
	e, err := alerting.New(alerting.Options{Dir: t.TempDir(), Instance: instance, Rules: files, Files: names})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	recorded, counted := map[string][]string{}, map[string]bool{}
	for _, r := range e.RecordingRules() {
		recorded[r.Name] = append(recorded[r.Name], resultLabels(parse(t, r.Expr), recorded)...)
		counted[r.Name] = strings.HasPrefix(r.Expr, "count by (cluster, instance, job) (count by (cluster, instance, job, device") && strings.HasSuffix(r.Expr, ") > 5")
	}
	single := single(t, files, names)
	ofHost := map[string]bool{} // alert and record
	for _, r := range e.Rules() {
		if record, _, _ := strings.Cut(r.Expr, " "); strings.HasSuffix(record, ":many") {
			ofHost[r.Name+" "+record] = true
		}
	}
	for _, r := range e.Rules() {
		loud := r.Labels["severity"] == "critical" || r.Labels["severity"] == "warning"
		if !loud || !slices.Contains(resultLabels(parse(t, r.Expr), recorded), "device") || single[r.Name] {
			continue
		}
		m := many.FindStringSubmatch(r.Expr)
		switch {
		case r.Name == "RDMADeviceFirmwareError" && r.Labels["severity"] == "warning": // each recovered by itself
		case m == nil:
			t.Errorf("%s, %s: is silenced by no host:…:many, and its comment does not say %q", r.Name, r.Labels["severity"], noHostAlert)
		case !counted[m[1]] || !ofHost[r.Name+" "+m[1]]:
			t.Errorf("%s: %s does not count above 5, or has no alert of the host", r.Name, m[1])
		}
	}
}

func lines(t *testing.T, files fs.FS, name string) []string {
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

// checkPromQL allows what Prometheus 2.42 knows, and ranges that survive a few missed rounds at any scrape interval.
func checkPromQL(t *testing.T, rule string, expr parser.Expr) {
	t.Helper()
	functions := strings.Fields(`abs absent absent_over_time avg_over_time ceil changes clamp clamp_max clamp_min
		count_over_time delta deriv floor histogram_quantile increase label_replace last_over_time max_over_time
		min_over_time quantile_over_time rate resets round scalar stddev_over_time sum_over_time time timestamp vector`)
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.Call:
			if !slices.Contains(functions, n.Func.Name) {
				t.Errorf("%s uses %s()", rule, n.Func.Name)
			}
		case *parser.MatrixSelector:
			if n.Range < 5*time.Minute {
				t.Errorf("%s: range %s", rule, n.Range)
			}
		case *parser.AggregateExpr:
			if n.Op == parser.TOPK || n.Op == parser.BOTTOMK {
				t.Errorf("%s uses topk: its series come and go", rule)
			}
		}
		return nil
	})
}

// resultLabels gives the labels that an expression's result can have; "*" for those that only the data tells.
func resultLabels(expr parser.Expr, recorded map[string][]string) []string {
	switch e := expr.(type) {
	case *parser.AggregateExpr:
		if e.Without {
			return []string{"*"}
		}
		return e.Grouping
	case *parser.ParenExpr:
		return resultLabels(e.Expr, recorded)
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
		default:
			return resultLabels(e.LHS, recorded)
		}
	case *parser.VectorSelector:
		if names, ok := recorded[e.Name]; ok {
			return names
		}
	case *parser.Call:
		if e.Func.Name == "vector" {
			return nil
		}
	}
	return []string{"*"}
}
