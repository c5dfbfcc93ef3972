package alerting_test

import (
	"bufio"
	"cmp"
	"io/fs"
	"maps"
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
	kinds "rdma_exporter/rules/identity"
)

// sets are the rule files and the labels that their alerts may have.
var sets = []struct {
	folder string
	load   func() (fs.FS, []string, error)
	labels []string
}{
	{"node", rules.Node, strings.Fields("cluster instance job device port netdev gpu UUID pci_bus_id lane priority direction kind")},
	{"central", rules.Central, strings.Fields("cluster instance job system node_guid device port kind scheduler job_id namespace pod")},
}

// ofCentral are records of central rules that node rules read: a node has no such series.
var ofCentral = []string{"port:rdma_port_down:switch", "instance:rdma_pfc_storm:elsewhere"}

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
				for _, line := range lines(t, files, name) {
					if strings.HasPrefix(strings.TrimSpace(line), "interval:") {
						t.Errorf("%s sets an interval", name)
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
						(set.folder == "central" && recorded[m] == nil || set.folder == "node" && !slices.Contains(ofCentral, m)) {
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

// shipped is an engine with a set of the rule files in the binary.
func shipped(t *testing.T, load func() (fs.FS, []string, error)) *alerting.Engine {
	t.Helper()
	files, names, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return opened(t, alerting.Options{Dir: t.TempDir(), Instance: instance, Rules: files, Files: names})
}

// opened is an engine that the test closes at its end.
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

// ofFault reports whether an alert is on faults: internal/evidence has its texts.
func ofFault(r alerting.Rule) bool { return r.Labels["symptom"] != "" }

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
	want := []string{"drain", "severity"}
	if ofFault(r) {
		want = []string{"drain", "reason", "severity", "symptom"}
		labels = append(labels, "reason", "scope", "symptom", "where")
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
	checkCommand(t, r)
	checkText(t, r, append(labels, "severity", "drain"))
}

// actions are those of templates.
var actions = regexp.MustCompile(`\{\{-? *(.*?) *-?\}\}`)

// written matches the actions of commands that a shell takes as one word, whatever a label holds. Labels without
// urlquery are numbers, or addresses that the readers have compared with pci.IsAddress (collector/pcie.go, device.go,
// device_inventory.go) or have written as a GUID (package fabric); promtool's queries are in single quotes.
var written = regexp.MustCompile(`^(?:urlquery \S+|\. \| first \| label "\w+" \| urlquery|"\{"|` +
	`(?:\$labels|\.Labels)\.(?:gpu|port|priority|pci_address|upstream)|\.|\. \| first \| label "(?:pci_address|port)"|` +
	`reReplaceAll ":" "" \$labels\.node_guid|reReplaceAll "\[\^0-9a-fA-F:\.\]" "" \$labels\.\w+|` +
	`printf "%q" \$labels\.\w+ \| reReplaceAll "'" "'\\\\''"|` +
	`(?:if|else|end|range|with|\$\w+ :?=).*)$`)

// checkCommand wants each label of a command for a shell quoted.
func checkCommand(t *testing.T, r alerting.Rule) {
	t.Helper()
	for _, a := range actions.FindAllStringSubmatch(r.Annotations["diagnose"], -1) {
		if !written.MatchString(a[1]) {
			t.Errorf("%s: a shell may execute what {{ %s }} writes", r.Name, a[1])
		}
	}
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

// annotations are those of every alert, for people and programs; measured and limit for a comparison with a limit.
var annotations = strings.Fields("summary description evidence diagnose action drain_reason runbook_url")

var identityOf = regexp.MustCompile(`(?m)^\{\{- /\* identity of (\w+) \*/ -\}\}$`)

// checkText requires what the person on call needs: the fault and its location, its start, its impact, a command that
// shows it, the remedy, whether to drain and why; and no label that the alert lacks, which would be empty.
func checkText(t *testing.T, r alerting.Rule, labels []string) {
	t.Helper()
	for name, text := range r.Annotations {
		if !slices.Contains(annotations, name) && name != "measured" && name != "limit" {
			t.Errorf("%s: annotation %s", r.Name, name)
		}
		for _, m := range labelInText.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(labels, m[1]) {
				t.Errorf("%s: annotation %s has $labels.%s, the alert has %v", r.Name, name, m[1], labels)
			}
		}
	}
	if (r.Annotations["measured"] == "") != (r.Annotations["limit"] == "") {
		t.Errorf("%s: measured and limit belong together", r.Name)
	}
	checkPasted(t, r)
	if r.Labels["severity"] == "none" {
		return
	}
	if ofFault(r) {
		checkFaultText(t, r)
		return
	}
	for _, name := range annotations {
		if r.Annotations[name] == "" {
			t.Errorf("%s: no annotation %s", r.Name, name)
		}
	}
	object := kinds.Of(map[string]string{})
	if m := identityOf.FindStringSubmatch(r.Annotations["evidence"]); m == nil {
		t.Errorf("%s: the evidence lacks the identity of its object", r.Name)
	} else if i := slices.IndexFunc(kinds.Objects, func(o kinds.Object) bool { return o.Name == m[1] }); i >= 0 {
		object = kinds.Objects[i]
	}
	if object.OfHost() && !summaryOfHost.MatchString(r.Annotations["summary"]) {
		t.Errorf("%s: the summary does not begin with {{ stripPort $labels.instance }}", r.Name)
	}
}

// checkFaultText requires short texts: what a central Prometheus can say. One query at most, and no evidence.
func checkFaultText(t *testing.T, r alerting.Rule) {
	t.Helper()
	want := []string{"action", "description", "runbook_url", "summary"}
	if got := slices.Sorted(maps.Keys(r.Annotations)); !slices.Equal(got, want) {
		t.Errorf("%s: annotations %v", r.Name, got)
	}
	if !strings.HasPrefix(r.Annotations["summary"], "{{ $labels.where }}") {
		t.Errorf("%s: the summary does not begin with {{ $labels.where }}", r.Name)
	}
	size := 0
	for name, text := range r.Annotations {
		size += len(text)
		if n := strings.Count(text, "query"); n > 1 {
			t.Errorf("%s: %d queries in %s", r.Name, n, name)
		}
	}
	if size > 1500 {
		t.Errorf("%s: texts of %d bytes", r.Name, size)
	}
}

// summaryOfHost begins with the host, after definitions.
var summaryOfHost = regexp.MustCompile(`^(\{\{- [^\n]* -?\}\}\s*)*\{\{ stripPort \$labels\.instance \}\}`)

// noHostAlert in the comment of an alert states that several of its alerts are separate tasks.
const noHostAlert = "# No alert for the whole host:"

// single are the alerts on a port or device with that comment, by name.
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

// The count of faulty ports or devices of a host, and its condition: more than half of the expected ones (ports per
// role), at least two.
const (
	countPorts   = "count by (cluster, instance, job) (count by (cluster, instance, job, device, port) (FAULT))"
	ofRole       = "count by (cluster, instance, job, role) (port:rdma_port:expected and on (cluster, instance, job, device, port) FAULT)"
	manyPorts    = countPorts + " and on (cluster, instance, job) (" + ofRole + " >= 2 > host:rdma_port:expected / 2)"
	countDevices = "count by (cluster, instance, job) (count by (cluster, instance, job, device) (FAULT))"
	manyDevices  = countDevices + " and on (cluster, instance, job) (" + countDevices +
		" >= 2 > host:rdma_device:expected / 2)"
)

// countsHalf reports whether an expression counts the ports or devices of a host with one fault, if more than half have
// it.
func countsHalf(t *testing.T, text string) bool {
	t.Helper()
	expr := parse(t, text)
	both, ok := expr.(*parser.BinaryExpr)
	if !ok {
		return false
	}
	host, ok := both.LHS.(*parser.AggregateExpr)
	if !ok {
		return false
	}
	each, ok := host.Expr.(*parser.AggregateExpr)
	if !ok {
		return false
	}
	want := manyDevices
	if slices.Contains(each.Grouping, "port") {
		want = manyPorts
	}
	return expr.String() == parse(t, strings.ReplaceAll(want, "FAULT", each.Expr.String())).String()
}

// TestOneAlertForManyPorts: if more than half of the ports of a role or of the devices of a host have a fault, there is
// one alert for the host and none for each.
func TestOneAlertForManyPorts(t *testing.T) {
	files, names, err := rules.Node()
	if err != nil {
		t.Fatal(err)
	}
	e := shipped(t, rules.Node)
	recorded, counted := map[string][]string{}, map[string]bool{}
	addRecorded(t, e, recorded)
	for _, r := range e.RecordingRules() {
		if strings.HasSuffix(r.Name, ":many") {
			counted[r.Name] = countsHalf(t, r.Expr)
		}
	}
	single := single(t, files, names)
	ofHost := map[string]bool{} // alert and record
	for _, r := range e.Rules() {
		if record := strings.Fields(r.Expr)[0]; strings.HasSuffix(record, ":many") {
			ofHost[r.Name+" "+record] = true
		}
	}
	for _, r := range e.Rules() {
		loud := r.Labels["severity"] == "critical" || r.Labels["severity"] == "warning"
		if !loud || ofFault(r) || !slices.Contains(resultLabels(parse(t, r.Expr), recorded), "device") || single[r.Name] {
			continue
		}
		m := many.FindStringSubmatch(r.Expr)
		switch {
		case r.Name == "RDMADeviceFirmwareError" && r.Labels["severity"] == "warning": // each recovered automatically
		case m == nil:
			t.Errorf("%s, %s: is silenced by no host:…:many, and its comment does not say %q",
				r.Name, r.Labels["severity"], noHostAlert)
		case !counted[m[1]] || !ofHost[cmp.Or(hostAlerts[r.Name], r.Name)+" "+m[1]]:
			t.Errorf("%s: %s does not count above half, or has no alert of the host", r.Name, m[1])
		}
	}
}

// hostAlerts are the alerts of a host that stand for those of another name.
var hostAlerts = map[string]string{"RDMALinkSymbolErrors": "RDMALinkErrors"}

func TestCountsHalf(t *testing.T) {
	for _, c := range []struct {
		text string
		want bool
	}{
		{strings.ReplaceAll(manyPorts, "FAULT", "a"), true},
		{strings.ReplaceAll(manyPorts, "FAULT", "(a and b)"), true},
		{strings.ReplaceAll(manyDevices, "FAULT", "a"), true},
		{strings.ReplaceAll(countPorts, "FAULT", "a") + " > 5", false},
		{strings.ReplaceAll(strings.Replace(manyPorts, "FAULT", "a", 1), "FAULT", "b"), false},
		{strings.ReplaceAll(strings.Replace(manyPorts, ">= 2 ", "", 1), "FAULT", "a"), false},
		{strings.ReplaceAll(strings.Replace(manyPorts, ", role", "", 1), "FAULT", "a"), false},
		{strings.ReplaceAll(strings.Replace(manyPorts, "/ 2", "/ 4", 1), "FAULT", "a"), false},
		{"a", false},
	} {
		if got := countsHalf(t, c.text); got != c.want {
			t.Errorf("%s: %t", c.text, got)
		}
	}
}

// TestSuspects: each suspect in a cause chain has an alert of its name, explained or not, and each fault that an alert
// omits because it is explained is a suspect.
func TestSuspects(t *testing.T) {
	e := shipped(t, rules.Node)
	alerts, suspects := map[string]bool{}, map[string]bool{}
	for _, r := range e.Rules() {
		if r.File == "node/chains.rules.yml" {
			alerts[strings.ToLower(r.Name)] = true
		}
	}
	for _, r := range e.RecordingRules() {
		fault, ok := strings.CutSuffix(r.Name, ":suspect")
		if !ok {
			continue
		}
		_, fault, _ = strings.Cut(fault, ":")
		suspects[strings.ReplaceAll(fault, "_", "")] = true
		if !alerts[strings.ReplaceAll(fault, "_", "")] {
			t.Errorf("%s of %s: the chains have no alert of that name", r.Name, r.File)
		}
	}
	delete(alerts, "rdmalinkunstable") // past flaps
	for a := range alerts {
		if !suspects[a] {
			t.Errorf("%s: nothing of that name is suspected", a)
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
			one := n.Param != nil && n.Param.String() == "1" && rule == "rdma:placed" // of series that are the same
			if (n.Op == parser.TOPK || n.Op == parser.BOTTOMK) && !one {
				t.Errorf("%s uses topk: its series come and go", rule)
			}
		}
		return nil
	})
}

// metricOf is the name in a selector.
func metricOf(e parser.Expr) string {
	if s, ok := e.(*parser.VectorSelector); ok {
		return s.Name
	}
	return ""
}

// resultLabels are the labels that an expression's result can have; "*" for those that depend on the data.
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
