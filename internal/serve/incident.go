package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
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
	"rdma_exporter/internal/page"
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

type incidentAlert struct {
	Labels  map[string]string `json:"labels"`
	Summary string            `json:"summary"`
	Since   time.Time         `json:"since"`
}

// text is the capture of an incident: a session, with its reason, the samples of the rules and the site configuration.
func (f *flightRecorder) text(
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

// incidentStamp is the time in the name of a file.
const incidentStamp = "20060102T150405Z"

var notInNames = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// name is an unused file name: the time and the first alert.
func (f *flightRecorder) name(at time.Time, alert string) string {
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

// list returns the captures in the directory, with their alerts.
func (f *flightRecorder) list(known []page.Incident) ([]page.Incident, error) {
	files, err := filepath.Glob(filepath.Join(f.file.Dir, "*.txtar"))
	if err != nil {
		return nil, err
	}
	var out []page.Incident
	for _, file := range files {
		i := slices.IndexFunc(known, func(k page.Incident) bool { return k.File == file })
		if i >= 0 {
			out = append(out, known[i])
			continue
		}
		stamp, alert, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".txtar"), "-")
		at, err := time.Parse(incidentStamp, stamp)
		if err != nil {
			continue // not an incident capture
		}
		out = append(out, page.Incident{Time: at, File: file, Alerts: []string{alert}})
	}
	slices.SortFunc(out,
		func(a, b page.Incident) int { return cmp.Or(b.Time.Compare(a.Time), strings.Compare(b.File, a.File)) })
	return out, nil
}
