// Package slack_test renders the template for Slack with Alertmanager.
package slack_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/alertmanager/template"
)

// notice returns a notification of alerts with one summary each, and an action.
func notice(status, cluster string, summaries ...string) *template.Data {
	d := &template.Data{
		Status:       status,
		CommonLabels: template.KV{"alertname": "RDMAPortDown", "severity": "critical"},
	}
	if cluster != "" {
		d.CommonLabels["cluster"] = cluster
	}
	for _, s := range summaries {
		d.Alerts = append(d.Alerts, template.Alert{
			Status: status, Annotations: template.KV{"summary": s, "action": "Reseat the cable."},
		})
	}
	return d
}

// from has all alerts of a notification on the exporter of one host.
func from(d *template.Data, instance string) *template.Data {
	for i := range d.Alerts {
		d.Alerts[i].Labels = template.KV{"instance": instance}
	}
	return d
}

// TestSlack: Slack mentions nobody and links nothing because of a name that is in an alert, and gets other texts as
// they are.
func TestSlack(t *testing.T) {
	tmpl, err := template.New()
	if err == nil {
		err = tmpl.FromGlob("../../alertmanager/slack.tmpl")
	}
	if err != nil {
		t.Fatal(err)
	}
	tmpl.ExternalURL = &url.URL{}
	for _, c := range []struct {
		data        *template.Data
		title, text string
	}{
		{
			notice("firing", "", "gpu-1 mlx5_0/1: port state DOWN, receiving < 1% of line rate"),
			"Critical: RDMAPortDown",
			"gpu-1 mlx5_0/1: port state DOWN, receiving &lt; 1% of line rate\n    Reseat the cable.",
		},
		{
			notice("firing", "a & b", "job <!channel>: *x*", "leaf <https://example.com|gpu-2> &lt;@U1>"),
			"Critical: RDMAPortDown on 2 objects (a &amp; b)",
			"job &lt;!channel&gt;: *x*\n    Reseat the cable.\n" +
				"leaf &lt;https://example.com|gpu-2&gt; &amp;lt;@U1&gt;\n    Reseat the cable.",
		},
		{
			from(notice("firing", "", "gpu-1: x"), "gpu-1:10879"), "Critical: RDMAPortDown",
			"gpu-1: x\n    Reseat the cable.\n    Evidence: http://gpu-1:10879/",
		},
		{notice("resolved", "", "gpu-1: x"), "Resolved: RDMAPortDown", "gpu-1: x"},
		{
			notice("resolved", "", strings.Split(strings.Repeat("s ", 12), " ")[:12]...),
			"Resolved: RDMAPortDown on 12 objects", strings.Repeat("s\n", 10) + "and 2 more",
		},
	} {
		for name, want := range map[string]string{"title": c.title, "text": c.text} {
			got, err := tmpl.ExecuteTextString(`{{ template "rdma.slack.`+name+`" . }}`, c.data)
			if err != nil || got != want {
				t.Errorf("%s: %v\n%q\nwant\n%q", name, err, got, want)
			}
		}
	}
}
