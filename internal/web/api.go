package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"rdma_exporter/internal/alerting"
)

// Alerting is the state of alerts and rules.
type Alerting interface {
	Alerts() []alerting.Alert
	Groups() []alerting.Group
}

// Responses have the schema of the Prometheus API (web/api/v1/api.go). Durations are in seconds.
type (
	apiAnswer struct {
		Status    string `json:"status"` // success, error
		Data      any    `json:"data,omitempty"`
		ErrorType string `json:"errorType,omitempty"`
		Error     string `json:"error,omitempty"`
	}
	apiAlert struct {
		Labels          map[string]string `json:"labels"`
		Annotations     map[string]string `json:"annotations"`
		State           string            `json:"state"`
		ActiveAt        time.Time         `json:"activeAt"`
		KeepFiringSince *time.Time        `json:"keepFiringSince,omitempty"`
		Value           string            `json:"value"`
	}
	apiGroup struct {
		Name           string    `json:"name"`
		File           string    `json:"file"`
		Rules          []any     `json:"rules"`
		Interval       float64   `json:"interval"`
		Limit          int       `json:"limit"`
		EvaluationTime float64   `json:"evaluationTime"`
		LastEvaluation time.Time `json:"lastEvaluation"`
	}
	apiRule struct {
		Name           string            `json:"name"`
		Query          string            `json:"query"`
		Labels         map[string]string `json:"labels"`
		Health         string            `json:"health"`
		LastError      string            `json:"lastError,omitempty"`
		EvaluationTime float64           `json:"evaluationTime"`
		LastEvaluation time.Time         `json:"lastEvaluation"`
		Type           string            `json:"type"` // alerting, recording
	}
	apiAlertingRule struct {
		apiRule
		State         string            `json:"state"`
		Duration      float64           `json:"duration"`
		KeepFiringFor float64           `json:"keepFiringFor"`
		Annotations   map[string]string `json:"annotations"`
		Alerts        []apiAlert        `json:"alerts"`
	}
)

func (h *Handler) alerts(w http.ResponseWriter, r *http.Request) {
	answer(w, r, http.StatusOK,
		apiAnswer{Status: "success", Data: map[string]any{"alerts": apiAlerts(h.Alerting.Alerts())}})
}

// rules takes type, rule_name[], rule_group[] and file[] as Prometheus does.
func (h *Handler) rules(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	kind := q.Get("type")
	if kind != "" && kind != "alert" && kind != "record" {
		answer(w, r, http.StatusBadRequest,
			apiAnswer{Status: "error", ErrorType: "bad_data", Error: fmt.Sprintf("type=%s: must be alert or record", kind)})
		return
	}
	chosen := func(key, value string) bool { return !q.Has(key) || slices.Contains(q[key], value) }
	groups := []apiGroup{}
	for _, g := range h.Alerting.Groups() {
		if !chosen("rule_group[]", g.Name) || !chosen("file[]", g.File) {
			continue
		}
		var rules []any
		for _, x := range g.Rules {
			if (kind == "" || (kind == "record") == x.Recording) && chosen("rule_name[]", x.Name) {
				rules = append(rules, ruleOf(x))
			}
		}
		if len(rules) > 0 {
			groups = append(groups, apiGroup{
				Name: g.Name, File: g.File, Rules: rules, Interval: g.Interval.Seconds(),
				EvaluationTime: g.EvaluationTime.Seconds(), LastEvaluation: g.LastEvaluation,
			})
		}
	}
	answer(w, r, http.StatusOK, apiAnswer{Status: "success", Data: map[string]any{"groups": groups}})
}

func ruleOf(x alerting.GroupRule) any {
	r := apiRule{
		Name: x.Name, Query: x.Query, Labels: x.Labels, Health: x.Health, LastError: x.LastError,
		EvaluationTime: x.EvaluationTime.Seconds(), LastEvaluation: x.LastEvaluation, Type: "recording",
	}
	if x.Recording {
		return r
	}
	r.Type = "alerting"
	return apiAlertingRule{
		apiRule: r, State: x.State, Duration: x.For.Seconds(), KeepFiringFor: x.KeepFiringFor.Seconds(),
		Annotations: x.Annotations, Alerts: apiAlerts(x.Alerts),
	}
}

func apiAlerts(alerts []alerting.Alert) []apiAlert {
	out := []apiAlert{}
	for _, a := range alerts {
		x := apiAlert{
			Labels: a.Labels, Annotations: a.Annotations, State: string(a.State), ActiveAt: a.ActiveAt,
			Value: strconv.FormatFloat(a.Value, 'e', -1, 64),
		}
		if !a.KeepFiringSince.IsZero() {
			x.KeepFiringSince = &a.KeepFiringSince
		}
		out = append(out, x)
	}
	return out
}

// answer writes JSON without HTML escapes.
func answer(w http.ResponseWriter, r *http.Request, status int, v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if status != http.StatusOK {
		w.WriteHeader(status)
		_, _ = w.Write(b.Bytes()) // the client may have disconnected
		return
	}
	compressed(w, r, b.Bytes())
}
