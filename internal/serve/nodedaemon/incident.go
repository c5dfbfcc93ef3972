package nodedaemon

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/page/nodepage"
)

// Entries of a capture of an incident.
const (
	incidentEntry = "exporter/incident.json"
	historyEntry  = "exporter/history.txt"
)

// incidentJSON is the reason of a capture.
type incidentJSON struct {
	Time   time.Time       `json:"time"`
	Alerts []incidentAlert `json:"alerts"`
}

// incidentAlert is an alert that caused a capture.
type incidentAlert struct {
	Labels  map[string]string `json:"labels"`
	Summary string            `json:"summary"`
	Since   time.Time         `json:"since"`
}

// formatCapture returns the capture of an incident: a session, with its reason, the samples of the rules and the site
// configuration.
func (f *flightRecorder) formatCapture(
	ctx context.Context, s *machine.Recording, at time.Time, due []alerting.Alert,
) ([]byte, error) {
	a := s.Recorder.Archive(s.Meta)
	incident := incidentJSON{Time: at.UTC()}
	for _, d := range due {
		incident.Alerts = append(incident.Alerts, incidentAlert{d.Labels, d.Annotations["summary"], d.ActiveAt.UTC()})
	}
	b, err := json.MarshalIndent(incident, "", "  ")
	if err != nil {
		return nil, err
	}
	a.Put(incidentEntry, append(b, '\n'))
	past, err := f.history(ctx, at)
	command.LogError(f.log, "cannot read the samples of the rules, they are missing in the incident capture", err)
	a.Put(historyEntry, past)
	if err := f.site(a); err != nil {
		return nil, err
	}
	return capture.Format(a)
}

// incidentStamp is the format of the time in the name of a file.
const incidentStamp = "20060102T150405Z"

// notInNames matches what is replaced in the name of a file.
var notInNames = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// unusedName returns an unused file name: the time and the first alert.
func (f *flightRecorder) unusedName(at time.Time, alert string) string {
	alert = notInNames.ReplaceAllString(alert, "_")
	stem := filepath.Join(f.file.Dir, at.UTC().Format(incidentStamp)+"-"+alert[:min(len(alert), 64)])
	name := stem + ".txtar"
	for i := 2; ; i++ {
		if _, err := os.Lstat(name); err != nil {
			return name
		}
		name = fmt.Sprintf("%s-%d.txtar", stem, i)
	}
}

// listCaptures returns the captures in the directory, with their alerts.
func (f *flightRecorder) listCaptures(known []nodepage.Incident) ([]nodepage.Incident, error) {
	files, err := filepath.Glob(filepath.Join(f.file.Dir, "*.txtar"))
	if err != nil {
		return nil, err
	}
	var out []nodepage.Incident
	for _, file := range files {
		i := slices.IndexFunc(known, func(k nodepage.Incident) bool { return k.File == file })
		if i >= 0 {
			out = append(out, known[i])
			continue
		}
		stamp, alert, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".txtar"), "-")
		at, err := time.Parse(incidentStamp, stamp)
		if err != nil {
			continue // not an incident capture
		}
		out = append(out, nodepage.Incident{Time: at, File: file, Alerts: []string{alert}})
	}
	slices.SortFunc(out,
		func(a, b nodepage.Incident) int {
			return cmp.Or(b.Time.Compare(a.Time), strings.Compare(b.File, a.File))
		})
	return out, nil
}

// readHistory returns the samples of the rules that changed in the time before to, a line for each series.
func readHistory(ctx context.Context, engine *alerting.Engine, to time.Time, step time.Duration) ([]byte, error) {
	series, err := engine.Range(ctx, `{__name__=~"rdma_.+|ALERTS"}`, to.Add(-incidentHistory), to, step)
	if err != nil {
		return nil, err
	}
	return formatHistory(series, to.Add(-incidentHistory), to, step), nil
}

// formatHistory returns the values of each series at the times from, from+step, …, to: "-" for no sample.
func formatHistory(series []alerting.Series, from, to time.Time, step time.Duration) []byte {
	b := fmt.Appendf(nil, "# Samples of the rules that changed, from %s to %s, every %s; - is no sample.\n",
		from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339), step)
	n := int(to.Sub(from)/step) + 1
	for _, s := range series {
		values := make([]string, n)
		for i := range values {
			values[i] = "-"
		}
		for _, p := range s.Points {
			if i := int(p.At.Sub(from) / step); i >= 0 && i < n {
				values[i] = fmt.Sprint(p.Value)
			}
		}
		if !slices.ContainsFunc(values, func(v string) bool { return v != values[0] }) {
			continue
		}
		line := s.Labels["__name__"] + "{"
		for i, name := range slices.Sorted(maps.Keys(s.Labels)) {
			if name != "__name__" && name != "instance" && name != "job" {
				if i > 0 && !strings.HasSuffix(line, "{") {
					line += ","
				}
				line += fmt.Sprintf("%s=%q", name, s.Labels[name])
			}
		}
		line += "} " + strings.Join(values, " ") + "\n"
		if len(b)+len(line) > historyMax {
			return append(b, "# truncated\n"...)
		}
		b = append(b, line...)
	}
	return b
}
