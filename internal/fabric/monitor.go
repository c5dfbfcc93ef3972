package fabric

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/site"
)

// Monitor sweeps periodically and holds the metrics of the last sweep.
type Monitor struct {
	// Open opens the local port: before the first sweep, and again after a failed one.
	Open     func() (mad.Transport, error)
	Client   mad.Options
	Adapters bool          // Options.Adapters
	Interval time.Duration // between sweeps, kept by the schedule of Run; Options.Within unless below minWithin
	Full     time.Duration // between full sweeps, which take nothing from the previous one
	Forget   time.Duration // retention of nodes and links that are gone
	Memory   *Memory
	Site     *site.Config // expected uplinks of leaf switches; nil: none
	// Now is the clock. nil: that of this host.
	Now func() time.Time
	// Save stores the memory for the next start; nil: not stored.
	Save   func(Data) error
	Logger *slog.Logger

	turn   sync.Mutex // held by a sweep, Accept or Plan
	client *mad.Client
	last   *Fabric // nil after a failure
	full   time.Time
	began  time.Time // start of the last successful sweep
	failed error     // of the last sweep
	unkept bool      // Save has failed
	before mad.Stats // of closed clients

	readings readings
	picture  Picture // the next one

	mu       sync.Mutex
	sink     *exposition.Sink
	families []exposition.Family
	shown    *Picture
}

// minWithin is the minimum time for counters: large fabrics with a short interval need more than the interval.
const minWithin = 30 * time.Second

// Run sweeps whenever schedule calls, until it returns. The caller's schedule staggers the sweeps of several exporters.
func (m *Monitor) Run(ctx context.Context, schedule func(once func())) {
	defer func() {
		m.turn.Lock()
		defer m.turn.Unlock()
		m.drop()
	}()
	m.publish()
	schedule(func() { m.round(ctx) })
}

func (m *Monitor) round(ctx context.Context) {
	m.turn.Lock()
	defer m.turn.Unlock()
	err := access.Guard(func() error { return m.sweep(ctx) })
	if ctx.Err() != nil {
		return
	}
	switch {
	case err != nil && m.failed == nil:
		m.Logger.Error("fabric sweep failed", "err", err)
	case err == nil && m.failed != nil:
		m.Logger.Info("fabric sweep works again")
	}
	m.failed = err
	if err != nil {
		m.last = nil
		m.drop()
	}
	m.publish()
}

func (m *Monitor) sweep(ctx context.Context) error {
	if m.client == nil {
		t, err := m.Open()
		if err != nil {
			return err
		}
		m.client = mad.NewClient(t, m.Client)
	}
	known := m.last
	if m.now().Sub(m.full) >= m.Full {
		known = nil
	}
	f, err := Sweep(ctx, m.client, known,
		Options{Adapters: m.Adapters, Also: m.Memory.Had, Within: max(m.Interval, minWithin), Now: m.now})
	if err != nil {
		return err
	}
	if step := clockStep(m.began, f.At); step.Abs() > time.Minute {
		m.Memory.Move(step)
	}
	m.last, m.began = f, f.At
	if f.Full {
		m.full = f.At
	}
	if m.Memory.Note(f, f.At.Add(-m.Forget)) || m.unkept || f.Full {
		m.save()
	}
	m.picture.Fabric = f
	m.picture.Risen, m.picture.Since, m.picture.Traffic, m.picture.Waits = m.readings.note(f)
	m.picture.Loops = f.Loops(m.picture.Waits, m.picture.Traffic)
	m.picture.Leaves = m.Memory.leaves(f, m.Site)
	return nil
}

func (m *Monitor) now() time.Time {
	if m.Now == nil {
		return time.Now()
	}
	return m.Now()
}

// clockStep is by how much the wall clock was set between two times with monotonic readings; 0 if the earlier one is
// zero.
func clockStep(from, to time.Time) time.Duration {
	if from.IsZero() {
		return 0
	}
	return to.Round(0).Sub(from.Round(0)) - to.Sub(from)
}

// ErrNotKept: what was accepted could not be stored for the next start.
var ErrNotKept = errors.New("accepted until the exporter restarts: fabric memory could not be stored")

// Accept removes links and nodes that are gone from the memory, by name or all, and returns what it removed. It waits
// for the sweep in progress, and does nothing if ctx has ended by then.
func (m *Monitor) Accept(ctx context.Context, names []string, all bool) ([]string, error) {
	m.turn.Lock()
	defer m.turn.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	forgotten, err := m.Memory.accept(m.last, names, all)
	if err != nil {
		return nil, err
	}
	m.save()
	m.publish()
	if m.unkept {
		return forgotten, ErrNotKept
	}
	return forgotten, nil
}

// Plan returns what Accept would remove (everything if no name is given), and for names that cannot be accepted the
// reason. It changes nothing.
func (m *Monitor) Plan(ctx context.Context, names []string) (forgets []string, wrong map[string]string, err error) {
	m.turn.Lock()
	defer m.turn.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	known := m.Memory.Data()
	wrong = map[string]string{}
	var right []string
	for _, name := range names {
		if _, err := NewMemory(known).accept(m.last, []string{name}, false); err != nil {
			wrong[name] = err.Error()
		} else {
			right = append(right, name)
		}
	}
	if len(names) == 0 || len(right) > 0 {
		forgets, err = NewMemory(known).accept(m.last, right, len(names) == 0)
	}
	return forgets, wrong, err
}

// save logs a lasting failure once, and its end.
func (m *Monitor) save() {
	if m.Save == nil {
		return
	}
	err := m.Save(m.Memory.Data())
	switch {
	case err != nil && !m.unkept:
		m.Logger.Warn("could not store the fabric memory, a restart loses the missing links", "err", err)
	case err == nil && m.unkept:
		m.Logger.Info("storing the fabric memory works again")
	}
	m.unkept = err != nil
}

// drop closes the client, since its transport may have failed.
func (m *Monitor) drop() {
	if m.client == nil {
		return
	}
	stats := m.client.Stats()
	m.before.Sent += stats.Sent
	m.before.Timeouts += stats.Timeouts
	if err := m.client.Close(); err != nil {
		m.Logger.Debug("could not close the port", "err", err)
	}
	m.client = nil
}

// publish builds the metrics and the picture.
func (m *Monitor) publish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sink == nil {
		m.sink = exposition.NewSink(Descs())
	}
	m.sink.Begin()
	(&emitter{m.sink, m.last, m.Memory, &m.picture}).all()
	stats := m.before
	if m.client != nil {
		now := m.client.Stats()
		stats.Sent += now.Sent
		stats.Timeouts += now.Timeouts
	}
	m.sink.Emit(requestsSent, float64(stats.Sent))
	m.sink.Emit(timeouts, float64(stats.Timeouts))
	m.sink.Emit(every, m.Interval.Seconds())
	if !m.began.IsZero() {
		m.sink.Emit(began, float64(m.began.UnixMilli())/1000)
	}
	if m.failed != nil {
		m.sink.Emit(failed, 1)
	} else if !m.began.IsZero() {
		m.sink.Emit(failed, 0)
	}
	m.families = exposition.Merge(m.sink.End())
	m.picture.Failed, m.picture.Known, m.picture.Stats = m.failed, m.Memory.Data(), stats
	m.picture.Rewired = m.Memory.rewired()
	if m.last != nil {
		m.picture.Missing = m.Memory.missing(m.last)
	}
	shown := m.picture
	m.shown = &shown
}

// Picture returns the result of the last sweep; of the last successful one if that failed.
func (m *Monitor) Picture() *Picture {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shown == nil {
		return &Picture{}
	}
	return m.shown
}

// Families returns the metrics as of the last sweep.
func (m *Monitor) Families() []exposition.Family {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.families
}
