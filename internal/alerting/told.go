package alerting

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/template"

	"rdma_exporter/internal/evidence"
	"rdma_exporter/internal/evidence/fault"
	"rdma_exporter/rules/identity"
)

// told are the texts of an alert on a fault, made from the series of the host. They replace the annotations of its
// rule, which a central Prometheus has. As annotations, they are of the last time when the condition held.
type told struct {
	at    time.Time
	texts map[string]string
}

// annotations returns the annotations of an alert, with the texts made in Go. e.mu is held.
func (e *Engine) annotations(a *rules.Alert) labels.Labels {
	texts := e.told[a.Labels.Hash()].texts
	if len(texts) == 0 {
		return a.Annotations
	}
	b := labels.NewBuilder(a.Annotations)
	for name, text := range texts {
		b.Set(name, text)
	}
	return b.Labels()
}

// tell makes the texts of an alert, if it is on a fault and they are of an earlier round.
func (e *Engine) tell(ctx context.Context, a *rules.Alert) {
	key := a.Labels.Hash()
	if a.Labels.Get("symptom") == "" || !a.KeepFiringSince.IsZero() || a.State == rules.StateInactive ||
		e.told[key].at.Equal(e.lastEval) || e.opts.Fleet {
		return
	}
	l := a.Labels.Map()
	texts := evidence.Annotations(l, a.Value, func(expr string) (out []fault.Sample) {
		found, err := e.Query(ctx, expr, e.lastEval)
		if err != nil {
			e.logger.Warn("Evidence not read", "err", err)
		}
		for _, s := range found {
			out = append(out, fault.Sample(s))
		}
		return out
	})
	if texts != nil {
		texts["evidence"] = strings.TrimSpace(e.identify(ctx, l, a.Value) + "\n" + texts["evidence"])
	}
	e.told[key] = told{e.lastEval, texts}
}

// identify has the lines that identify the object of an alert.
func (e *Engine) identify(ctx context.Context, l map[string]string, value float64) string {
	text := `{{- $labels := .Labels -}}{{- $value := .Value -}}` +
		strings.Join(identity.Of(l).Lines(l[model.AlertNameLabel]), "\n")
	out, err := template.NewTemplateExpander(ctx, text, "identity",
		template.AlertTemplateData(l, e.opts.ExternalLabels, e.opts.ExternalURL, promql.Sample{F: value}),
		model.Time(timestamp.FromTime(e.lastEval)),
		template.QueryFunc(rules.EngineQueryFunc(e.engine, e.store)), &url.URL{}, nil).Expand()
	if err != nil {
		e.logger.Warn("Object of an alert not identified", "err", err)
	}
	return out
}

// notifyTold adds the texts to alerts that are sent. Eval calls it.
func (e *Engine) notifyTold(send rules.NotifyFunc) rules.NotifyFunc {
	return func(ctx context.Context, expr string, alerts ...*rules.Alert) {
		for _, a := range alerts {
			e.tell(ctx, a)
			a.Annotations = e.annotations(a)
		}
		send(ctx, expr, alerts...)
	}
}

// tellAll makes the texts of all active alerts on faults, and forgets those of others.
func (e *Engine) tellAll(ctx context.Context) {
	kept := map[uint64]told{}
	for r := range e.alertingRules() {
		for _, a := range r.ActiveAlerts() {
			e.tell(ctx, a)
			if t, ok := e.told[a.Labels.Hash()]; ok {
				kept[a.Labels.Hash()] = t
			}
		}
	}
	e.told = kept
}
