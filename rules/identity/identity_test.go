package identity

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	plabels "github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/template"
)

// labelsOf returns the labels of an alert on an object.
func labelsOf(o Object) map[string]string {
	out := map[string]string{"alertname": "RDMAX", "severity": "warning", "first": "no label of an object"}
	for _, l := range o.levels {
		for _, name := range l.labels {
			out[name] = name + `-"1`
		}
	}
	return out
}

// TestSameQuestions: the evidence has the same queries as check, for each object, and they are valid PromQL with the
// listed labels.
func TestSameQuestions(t *testing.T) {
	for _, o := range Objects {
		labels := labelsOf(o)
		// labels of a host mean a host, except in rules that specify otherwise.
		if got := Of(labels); got.Name != o.Name && o.Name != "fabric" {
			t.Errorf("the labels of %s are those of %s", o.Name, got.Name)
		}
		var asked []string
		query := func(_ context.Context, q string, _ time.Time) (promql.Vector, error) {
			asked = append(asked, q)
			return nil, nil
		}
		data := template.AlertTemplateData(labels, nil, "", promql.Sample{})
		text := "{{$labels := .Labels}}" + strings.Join(o.Lines("RDMAX"), "\n")
		out, err := template.NewTemplateExpander(t.Context(), text, "x", data, model.Now(), template.QueryFunc(query),
			&url.URL{}, nil).Expand()
		if err != nil {
			t.Fatalf("%s: %v", o.Name, err)
		}
		if strings.Contains(out, "\n\n") || strings.Contains(out, "<no value>") ||
			o.OfHost() && !strings.HasPrefix(strings.TrimSpace(out), `Host: instance-"1.`) {
			t.Errorf("%s: %q", o.Name, out)
		}
		p := parser.NewParser(parser.Options{})
		if len(asked) == 0 {
			t.Fatalf("%s: not even since when", o.Name)
		}
		if _, err := p.ParseExpr(asked[0]); err != nil || !strings.Contains(asked[0], "alertname='RDMAX'") {
			t.Errorf("%s: since: %v", o.Name, err)
		}
		var want []string
		for i, q := range Questions(labels) {
			if o.Name == "fabric" {
				break
			}
			if !Of(labels).facts[i].quiet {
				want = append(want, q.Query)
			}
			expr, err := p.ParseExpr(q.Query)
			if err != nil {
				t.Fatalf("%s: %v", q.Name, err)
			}
			if b, ok := expr.(*parser.BinaryExpr); ok {
				expr = b.LHS
			}
			if a, ok := expr.(*parser.AggregateExpr); !ok || !slices.Equal(a.Grouping, q.Fields) {
				t.Errorf("%s: %s does not have the labels %v", q.Name, q.Query, q.Fields)
			}
		}
		if !slices.Equal(asked[1:], want) {
			t.Errorf("%s: evidence asks\n%s\ncheck asks\n%s", o.Name, strings.Join(asked[1:], "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestImpact: the jobs of a port in words, with their GPUs, and with names where they are exported.
func TestImpact(t *testing.T) {
	for _, c := range []struct {
		job  map[string]string
		gpus []string
		name string
		want string
	}{
		{map[string]string{"scheduler": "slurm", "job_id": "77"}, []string{"0", "1"}, "", "Impact: Slurm job 77 uses this port, with GPU 0, 1."},
		{map[string]string{"scheduler": "slurm", "job_id": "77"}, nil, "llama", "Impact: Slurm job 77 (llama) of user 1001 uses this port."},
		{map[string]string{"scheduler": "kubernetes", "job_id": "0a1b", "namespace": "a", "pod": "b-0"}, []string{"3"}, "", "Impact: pod a/b-0 uses this port, with GPU 3."},
		{map[string]string{"scheduler": "kubernetes", "job_id": "0a1b"}, nil, "", "Impact: pod 0a1b uses this port."},
		{map[string]string{"scheduler": "container", "job_id": "0123456789ab"}, nil, "", "Impact: container 0123456789ab uses this port."},
		{map[string]string{"scheduler": "systemd", "job_id": "weka.service"}, nil, "", "Impact: service weka.service uses this port."},
		{map[string]string{"scheduler": "session", "job_id": "session-3"}, nil, "", "Impact: login session session-3 uses this port."},
		{map[string]string{"scheduler": "unknown"}, nil, "", "Impact: a process that is not visible uses this port."},
		{map[string]string{"scheduler": "none"}, nil, "", "Impact: a process without a job uses this port."},
	} {
		query := func(_ context.Context, q string, _ time.Time) (promql.Vector, error) {
			switch {
			case strings.Contains(q, "rdma_port_job_info{"):
				return promql.Vector{{Metric: labelsFrom(c.job), F: 1}}, nil
			case strings.Contains(q, "rdma_gpu_job_info{"):
				var v promql.Vector
				for _, g := range c.gpus {
					v = append(v, promql.Sample{Metric: labelsFrom(map[string]string{"gpu": g}), F: 1})
				}
				return v, nil
			case strings.Contains(q, "rdma_job_info{") && c.name != "":
				return promql.Vector{{Metric: labelsFrom(map[string]string{"name": c.name, "user": "1001"}), F: 1}}, nil
			}
			return nil, nil
		}
		labels := map[string]string{"instance": "h", "job": "j", "device": "a", "port": "1"}
		data := template.AlertTemplateData(labels, nil, "", promql.Sample{})
		out, err := template.NewTemplateExpander(t.Context(),
			"{{$labels := .Labels}}"+strings.Join(Of(labels).Lines("RDMAX"), "\n"), "x", data, model.Now(),
			template.QueryFunc(query), &url.URL{}, nil).Expand()
		if err != nil || !strings.HasSuffix(strings.TrimSpace(out), c.want) || strings.Contains(out, "no value") {
			t.Errorf("%v %q, want %s", err, out, c.want)
		}
	}
}

func labelsFrom(of map[string]string) plabels.Labels { return plabels.FromMap(of) }

// TestOf: the narrowest object with these labels.
func TestOf(t *testing.T) {
	for want, labels := range map[string]map[string]string{
		"gpu":    {"instance": "h", "gpu": "3", "UUID": ""},
		"netdev": {"instance": "h", "device": "a", "port": "1", "netdev": "eth0", "lane": "2"},
		"port":   {"instance": "h", "device": "a", "port": "1", "netdev": ""},
		"device": {"instance": "h", "device": "a"},
		"host":   {"instance": "h", "job": "j"},
		"switch": {"job": "j", "system": "leaf-1"},
		"fleet":  {"job": "j"},
	} {
		if got := Of(labels); got.Name != want {
			t.Errorf("%v: %s, want %s", labels, got.Name, want)
		}
	}
}
