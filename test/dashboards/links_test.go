//go:build e2e

package dashboards

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// followed are hosts that links are followed of: a host without readable transceivers has nothing on the dashboard of
// optics.
var followed = []string{dcgmHost, "optics-ageing"}

// picked returns a replacer of Grafana's variables by the labels of a row or series, on a host and in a fabric of this
// test.
func picked(host string) *strings.Replacer {
	return strings.NewReplacer(
		"${__data.fields.Job}", "rdma_exporter", "${__field.labels.job}", "rdma_exporter", "{{job}}", "rdma_exporter",
		"var-fabric=${__data.fields.Target}", "var-fabric=subnet", "${__data.fields.Target}", host,
		"${__data.fields.ID}", "48121", "${__field.labels.instance}", host, "{{instance}}", host, "${host}", host,
		"${__field.labels.node}", "leaf1", "${fabric}", "subnet",
	)
}

// follow follows each link between dashboards as Grafana does. What it chooses is
// among the values of the target's variable, and panels of the target have data with it.
func follow(p prometheus) {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, "dashboards/*.json"))
	must(p.t, err)
	all, addresses := map[string]landing{}, map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		must(p.t, err)
		var d landing
		must(p.t, json.Unmarshal(b, &d))
		all[d.UID] = d
		for _, m := range regexp.MustCompile(`"url": ?"/(d/[^"]+)"|href=\\"(d/[^"\\]+)`).
			FindAllStringSubmatch(strings.ReplaceAll(string(b), `\u0026`, "&"), -1) {
			addresses[m[1]+m[2]] = d.UID
		}
	}
	if len(addresses) < 15 {
		p.t.Fatalf("%d links, want those of all dashboards", len(addresses))
	}
	for address, from := range addresses {
		path, query, _ := strings.Cut(address, "?")
		to := all[strings.TrimPrefix(path, "d/")]
		var faults []string
		for _, host := range followed {
			if fault := p.land(to, chosenBy(query, host)); fault != "" {
				faults = append(faults, host+": "+fault)
			}
		}
		if len(faults) == len(followed) {
			p.t.Errorf("link of %s to %s: %v", from, address, faults)
		}
	}
}

// chosenBy returns the values of variables that a link sets, for a host.
func chosenBy(query, host string) map[string]string {
	// That the link is on.
	cells := map[string]string{
		"host": host, "fabric": "subnet", "device": "mlx5_0", "switch": "leaf1", "workload": "48121",
	}
	chosen := map[string]string{}
	for _, param := range strings.Split(picked(host).Replace(query), "&") {
		name, value, ok := strings.Cut(strings.TrimPrefix(param, "var-"), "=")
		if ok && value == "${__value.raw}" {
			value = cells[name]
		}
		if ok {
			chosen[name] = value
		}
	}
	return chosen
}

// landing is a dashboard that a link leads to.
type landing struct {
	UID        string
	Panels     []panel
	Templating struct {
		List []struct {
			Name, Definition, Regex, AllValue string
			IncludeAll                        bool
		}
	}
}

// land chooses as a link does, what it leaves open as Grafana does, and says what is wrong with what is there then.
func (p prometheus) land(d landing, chosen map[string]string) string {
	var vars []string
	for _, v := range d.Templating.List {
		if v.Name == "datasource" {
			continue
		}
		known := strings.NewReplacer(append(slices.Clone(vars), "$__range", "1h")...)
		options := p.options(known.Replace(v.Definition), v.Regex)
		value, set := chosen[v.Name]
		switch {
		case set && !slices.Contains(options, value):
			return fmt.Sprintf("%s=%s is not one of %v", v.Name, value, options)
		case set:
		case v.AllValue != "":
			value = v.AllValue
		case v.IncludeAll:
			value = "(" + strings.Join(options, "|") + ")"
		case len(options) > 0:
			value = options[0]
		default:
			return v.Name + " has no value"
		}
		vars = append(vars, "$"+v.Name, value)
	}
	with := 0
	for _, row := range d.Panels {
		for _, q := range row.Targets {
			expr := strings.NewReplacer(append(slices.Clone(vars), "$__rate_interval", "15s", "$__range", "10s", "$$__all",
				"all", orUnknown, "")...).Replace(q.Expr)
			if p.query("/api/v1/query", url.Values{"query": {expr}, "time": {seconds(time.Now())}}) {
				with++
				break
			}
		}
	}
	if with < 3 {
		return fmt.Sprintf("%d panels have data", with)
	}
	return ""
}

// options returns the values of a variable.
func (p prometheus) options(definition, regex string) (out []string) {
	p.t.Helper()
	series, label := "", ""
	if q, ok := strings.CutPrefix(definition, "label_values("); ok {
		series, label, _ = cutLast(strings.TrimSuffix(q, ")"), ", ")
		series = fmt.Sprintf("count by (%s) (%s)", label, series)
	} else if q, ok := strings.CutPrefix(definition, "query_result("); ok {
		series = strings.TrimSuffix(q, ")")
		label = regexp.MustCompile(`^/(\w+)=`).FindStringSubmatch(regex)[1]
	}
	for _, labels := range p.series("/api/v1/query", url.Values{"query": {series}}) {
		if v := labels[label]; v != "" {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}
