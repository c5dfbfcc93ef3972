package page

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"
	"text/template"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/rules"
)

// fabricTexts are the annotations of the alerts on a fabric.
var fabricTexts = sync.OnceValues(func() (map[string]alerting.RuleTexts, error) {
	files, _, err := rules.Central()
	if err != nil {
		return nil, err
	}
	return alerting.Texts(files, []string{"central/fabric.rules.yml", "central/fabric_congestion.rules.yml"})
})

// adviceFuncs are those of Prometheus' templates that diagnose, action and drain_reason use.
var adviceFuncs = template.FuncMap{
	"stripPort": func(s string) string { return s }, // the page has a host name for the instance
	"reReplaceAll": func(pattern, to, s string) (string, error) {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return "", err
		}
		return re.ReplaceAllString(s, to), nil
	},
}

// noAlert is the advice for errors below the limits of the alerts.
var noAlert = alerting.RuleTexts{
	Labels: map[string]string{"drain": "no"},
	Annotations: map[string]string{
		"diagnose": `lid=$(ibnetdiscover | awk -v RS= '/-{{ reReplaceAll ":" "" $labels.node_guid }}"\t/'` +
			` | sed -nE 's/^(Switch|\[{{ $labels.port }}\]\().* lid ([0-9]+) lmc.*/\2/p') ; perfquery -x "$lid" {{ $labels.port }}`,
		"action":       "Watch whether the counters keep rising. Symbol errors: clean and reseat the cable. Transmit discards: check the far end for a slow receiver, and for a port that went down.",
		"drain_reason": "The link carries data, and jobs at its ends go on.",
	},
}

// advise adds what to do to a finding, from the rule of its alert.
func (f *Fabric) advise(x *finding, labels map[string]string) error {
	texts, err := fabricTexts()
	if err != nil {
		return err
	}
	text := noAlert
	if x.Alert != "" {
		text = texts[x.Alert]
	}
	values := map[string]string{"instance": f.Host}
	maps.Copy(values, labels)
	x.Drain = text.Labels["drain"]
	for name, to := range map[string]*string{
		"diagnose": &x.Diagnose, "action": &x.Action, "drain_reason": &x.DrainReason,
	} {
		t, err := template.New(name).Funcs(adviceFuncs).Parse("{{ $labels := . }}" + text.Annotations[name])
		if err != nil {
			return fmt.Errorf("%s of %s: %w", name, x.Alert, err)
		}
		var b bytes.Buffer
		if err := t.Execute(&b, values); err != nil {
			return fmt.Errorf("%s of %s: %w", name, x.Alert, err)
		}
		*to = short(strings.TrimSpace(b.String()), maxText)
	}
	return nil
}
