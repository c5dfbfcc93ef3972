package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/state"
)

const (
	// incidentFolder is the directory of incident captures below the state directory.
	incidentFolder = "incidents"
	incidentsKept  = 10
	// incidentSame: an alert that fires again within this time is the same incident, also after a restart.
	incidentSame = time.Hour
	// incidentNoted is the interval of saving that alerts are still firing.
	incidentNoted = 10 * time.Minute
	// incidentRounds is the number of rounds in a capture: the last ones, at least incidentEvery apart.
	incidentRounds = 8
	incidentEvery  = 10 * time.Second
	// incidentMax limits a capture in bytes: those of the largest known machines have 1 MiB.
	incidentMax = 16 << 20
	// incidentHistory is the range of the samples in a capture, historyMax the size of their text in bytes: an entry has 1 MiB at most.
	incidentHistory = 10 * time.Minute
	historyMax      = 900 << 10
)

// Entries of a capture of an incident.
const (
	incidentEntry = "exporter/incident.json"
	historyEntry  = "exporter/history.txt"
)

// flightRecorder keeps a capture of the host when an alert that drains it starts firing: after a reboot that is the evidence. It has its own
// collectors and host access, and runs in the background, one capture at a time: neither rounds nor scrapes wait for it. While such an alert
// is pending it reads a round after each one of the daemon, so that the capture has the rounds before the alert fired.
type flightRecorder struct {
	dir     string
	store   *state.Store
	begin   func(ctx context.Context) (*captureRun, error)
	history func(ctx context.Context, to time.Time) ([]byte, error)
	site    func(*capture.Archive) error // adds the configuration
	end     func() error                 // of what begin has opened
	log     *slog.Logger
	wake    chan struct{}
	done    chan struct{} // closed when run has ended; nil until it starts

	session *captureRun   // the following are of the goroutine that runs step
	first   time.Time     // its first round
	last    time.Time     // its last round
	moved   time.Duration // by rounds that it has dropped
	noted   time.Time     // when the file was written last
	unsaved bool          // it could not be

	mu     sync.Mutex
	at     time.Time             // of the last round of the daemon
	armed  bool                  // an alert is pending
	due    []alerting.Alert      // that have fired and are in no capture
	firing map[string]seenFiring // by labels
	kept   []page.Incident       // the newest first
	state  rounds.FileState
	tried  bool
}

// seenFiring is an alert with the last time that it was firing.
type seenFiring struct {
	Labels map[string]string `json:"labels"`
	Seen   time.Time         `json:"seen"`
}

// flightKept is the content of the state file beside the captures.
type flightKept struct {
	Incidents []page.Incident `json:"incidents"`
	Firing    []seenFiring    `json:"firing"`
}

// flightRecorder is nil for a replay, and without a usable directory.
func (c *config) flightRecorder(m *machine, memory *expect.Memory, d *daemon, log *slog.Logger) *flightRecorder {
	if m.player != nil {
		return nil
	}
	f, err := openFlight(filepath.Join(c.stateDir, incidentFolder), log)
	if err != nil {
		log.Warn("cannot use the incident directory, no incident captures are kept", "err", err)
		return nil
	}
	f.history, f.site = d.history, func(a *capture.Archive) error { return c.site.record(a, false) }
	var own *machine // opened once: the next capture must know a read that does not return
	f.end = func() error {
		if own == nil {
			return nil
		}
		return own.close()
	}
	f.begin = func(ctx context.Context) (*captureRun, error) {
		if own == nil {
			live, err := host.OpenLive(c.paths)
			if err != nil {
				return nil, err
			}
			own = &machine{Host: &live.Host, close: live.Close}
			own.GPUs, own.RTNL = m.GPUs, m.RTNL // shared: they serialize requests and can be released
		}
		known := memory.Data()
		o := c.options(own, expect.NewMemory(known))
		o.SampleInterval, o.ModuleInterval, o.GPUInterval, o.ListenLLDP = 0, 0, 0, false
		on, err := c.enabled(collector.All(o))
		if err != nil {
			return nil, err
		}
		return c.record(ctx, own, on, known, slog.New(slog.DiscardHandler)), nil
	}
	return f
}

// openFlight locks the directory and reads its captures.
func openFlight(dir string, log *slog.Logger) (*flightRecorder, error) {
	store, err := state.Open(dir)
	if err != nil {
		return nil, err
	}
	f := &flightRecorder{dir: dir, store: store, log: log, wake: make(chan struct{}, 1), firing: map[string]seenFiring{}, end: func() error { return nil }}
	var known flightKept
	if err := store.Read(&known); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("could not restore the alerts of earlier incidents, they may be captured again", "err", err)
	}
	for _, s := range known.Firing {
		f.firing[labelsKey(s.Labels)] = s
	}
	left, err := filepath.Glob(filepath.Join(dir, unfinished+"*"))
	for _, name := range left { // of a process that was killed
		err = errors.Join(err, os.Remove(name))
	}
	if err == nil {
		f.kept, err = f.list(known.Incidents)
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return f, nil
}

// list returns the captures in the directory, with their alerts.
func (f *flightRecorder) list(known []page.Incident) ([]page.Incident, error) {
	files, err := filepath.Glob(filepath.Join(f.dir, "*.txtar"))
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
	slices.SortFunc(out, func(a, b page.Incident) int { return cmp.Or(b.Time.Compare(a.Time), strings.Compare(b.File, a.File)) })
	return out, nil
}

// drains reports whether an alert takes the host out of service.
func drains(a *alerting.Alert) bool {
	return a.Labels["drain"] == "cordon" || a.Labels["drain"] == "evict"
}

func labelsKey(labels map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&b, "%q=%q,", name, labels[name])
	}
	return b.String()
}

// note takes the result of a round of the daemon. It does not block.
func (f *flightRecorder) note(at time.Time, alerts []alerting.Alert) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at, f.armed = at, false
	for i := range alerts {
		a := &alerts[i]
		if !drains(a) {
			continue
		}
		key := labelsKey(a.Labels)
		before, known := f.firing[key]
		fresh := !known || at.Sub(before.Seen).Abs() >= incidentSame
		switch {
		case a.State == alerting.StatePending:
			f.armed = f.armed || fresh
		default:
			if fresh {
				f.due = append(f.due, *a)
			}
			f.firing[key] = seenFiring{a.Labels, at.UTC()}
		}
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// start captures until ctx ends.
func (f *flightRecorder) start(ctx context.Context) {
	if f == nil {
		return
	}
	f.done = make(chan struct{})
	go func() {
		defer close(f.done)
		for {
			select {
			case <-f.wake:
			case <-ctx.Done():
				return
			}
			f.step(ctx)
		}
	}()
}

// step reads a round if an alert is pending or firing, and keeps the capture if one fires.
func (f *flightRecorder) step(ctx context.Context) {
	f.mu.Lock()
	at, armed, due := f.at, f.armed, f.due
	f.mu.Unlock()
	if !armed && len(due) == 0 {
		f.session = nil
		if f.isFiring() && at.Sub(f.noted).Abs() >= incidentNoted {
			f.save(at)
		}
		return
	}
	if len(due) == 0 && f.session != nil && time.Since(f.last) < f.pace() {
		return
	}
	var file string
	err := host.Guard(func() (err error) {
		if err := f.round(ctx); err != nil || len(due) == 0 {
			return err
		}
		file, err = f.keep(ctx, at, due)
		return err
	})
	if err != nil {
		f.session = nil
	}
	if ctx.Err() == nil && len(due) > 0 {
		f.finish(at, file, due, err)
	}
}

// pace is the interval of the rounds of a session: an alert may be pending for hours.
func (f *flightRecorder) pace() time.Duration {
	if f.last.Sub(f.first) >= incidentRounds*incidentEvery {
		return time.Minute
	}
	return incidentEvery
}

// round reads a round of the session, and starts one if needed.
func (f *flightRecorder) round(ctx context.Context) (err error) {
	now := time.Now()
	if f.session == nil {
		if f.session, err = f.begin(ctx); err != nil {
			return err
		}
		f.first, f.moved = now, 0
	}
	f.last = now
	if err := f.session.round(ctx, now.Sub(f.first).Truncate(time.Millisecond)-f.moved); err != nil {
		return err
	}
	moved := f.session.rec.Keep(incidentRounds)
	f.moved += moved
	f.session.meta.Time = f.session.meta.Time.Add(moved)
	return nil
}

// keep ends the session and writes the capture.
func (f *flightRecorder) keep(ctx context.Context, at time.Time, due []alerting.Alert) (string, error) {
	s := f.session
	f.session = nil
	text, err := f.text(ctx, s, at, due)
	if err == nil && len(text) > incidentMax {
		s.meta.Time = s.meta.Time.Add(s.rec.Keep(1))
		text, err = f.text(ctx, s, at, due)
	}
	switch {
	case err != nil:
		return "", err
	case len(text) > incidentMax:
		return "", fmt.Errorf("capture of %d bytes exceeds the limit of %d", len(text), incidentMax)
	}
	name := f.name(at, due[0].Name)
	return name, write(name, text, nil)
}

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

func (f *flightRecorder) text(ctx context.Context, s *captureRun, at time.Time, due []alerting.Alert) ([]byte, error) {
	a := s.rec.Archive(s.meta)
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
	discard(f.log, "cannot read the samples of the rules, they are missing in the incident capture", err)
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
	stem := filepath.Join(f.dir, at.UTC().Format(incidentStamp)+"-"+alert[:min(len(alert), 64)])
	name := stem + ".txtar"
	for i := 2; ; i++ {
		if _, err := os.Lstat(name); err != nil {
			return name
		}
		name = fmt.Sprintf("%s-%d.txtar", stem, i)
	}
}

// finish records the result, and removes the oldest captures.
func (f *flightRecorder) finish(at time.Time, file string, due []alerting.Alert, err error) {
	i := page.Incident{Time: at.UTC(), File: file}
	for _, a := range due {
		i.Alerts = append(i.Alerts, strings.TrimSuffix(a.Name+" "+check.Where(a.Labels), " host"))
	}
	f.mu.Lock()
	f.due = f.due[len(due):]
	f.tried, f.state.Failed = true, err != nil
	var old []page.Incident
	if err == nil {
		f.state.At = at
		f.kept = slices.Insert(f.kept, 0, i)
		n := min(len(f.kept), incidentsKept)
		f.kept, old = f.kept[:n:n], f.kept[n:]
	}
	f.mu.Unlock()
	if err != nil {
		f.log.Warn("incident capture failed", "alerts", i.Alerts, "err", oneLine(err))
		return
	}
	f.log.Info("incident captured", "alerts", i.Alerts, "file", file)
	for _, o := range old {
		discard(f.log, "cannot remove an old incident capture", os.Remove(o.File))
	}
	f.save(at)
}

func (f *flightRecorder) isFiring() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.firing) > 0
}

// save writes the captures, and the firing alerts that are in a capture.
func (f *flightRecorder) save(at time.Time) {
	f.mu.Lock()
	maps.DeleteFunc(f.firing, func(_ string, s seenFiring) bool { return at.Sub(s.Seen).Abs() >= incidentSame })
	known := flightKept{Incidents: slices.Clone(f.kept)}
	for _, key := range slices.Sorted(maps.Keys(f.firing)) {
		if !slices.ContainsFunc(f.due, func(a alerting.Alert) bool { return labelsKey(a.Labels) == key }) {
			known.Firing = append(known.Firing, f.firing[key])
		}
	}
	failed := f.unsaved || f.state.Failed // already logged
	f.noted = at
	f.mu.Unlock()
	err := f.store.Write(known)
	if err != nil && !failed {
		f.log.Warn("cannot save the alerts of incidents, a restart may capture them again", "err", err)
	}
	f.unsaved = err != nil
}

// incidents are the captures that are kept, the newest first.
func (f *flightRecorder) incidents() []page.Incident {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.kept)
}

// incident is the result of the last capture; false before the first.
func (d *daemon) incident() (rounds.FileState, bool) {
	if d == nil || d.flight == nil {
		return rounds.FileState{}, false
	}
	d.flight.mu.Lock()
	defer d.flight.mu.Unlock()
	return d.flight.state, d.flight.tried
}

// close unlocks the directory. The context of start has ended.
func (f *flightRecorder) close() {
	if f == nil {
		return
	}
	if f.done != nil {
		<-f.done
	}
	if f.isFiring() {
		f.save(f.at)
	}
	discard(f.log, "cannot close the incident directory", errors.Join(f.end(), f.store.Close()))
}

// history are the samples of the rules that changed in the time before to, a line for each series.
func (d *daemon) history(ctx context.Context, to time.Time) ([]byte, error) {
	step := d.config.interval
	series, err := d.engine.Range(ctx, `{__name__=~"rdma_.+|ALERTS"}`, to.Add(-incidentHistory), to, step)
	if err != nil {
		return nil, err
	}
	return historyText(series, to.Add(-incidentHistory), to, step), nil
}

// historyText has the values of each series at the times from, from+step, …, to: "-" for no sample.
func historyText(series []alerting.Series, from, to time.Time, step time.Duration) []byte {
	b := fmt.Appendf(nil, "# Samples of the rules that changed, from %s to %s, every %s; - is no sample.\n", from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339), step)
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
