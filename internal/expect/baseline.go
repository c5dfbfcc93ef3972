package expect

import (
	"maps"
	"strings"
	"time"
)

const (
	// BaselineSettle is how long a link is ACTIVE without interruption before its readings count.
	BaselineSettle = time.Hour
	// BaselineForm is the time that a baseline covers. It is fixed from then on.
	BaselineForm = 4 * time.Hour
)

// Baseline is what a link or a lane had when its transceiver was new here: the mean over the first BaselineForm of
// settled time.
type Baseline struct {
	Device string    `json:"device"` // name when last read
	Port   int       `json:"port"`
	Serial string    `json:"serial,omitempty"` // of the transceiver; empty: not readable
	Since  time.Time `json:"since"`            // when it began to form
	// Sum and Weight are the mean: errors and bits, or readings and their number.
	Sum     float64 `json:"sum"`
	Weight  float64 `json:"weight"`
	Seconds float64 `json:"seconds"` // covered so far
}

// Reading is what a link has had for Took.
type Reading struct {
	Serial      string // empty: unknown, which is no change
	Sum, Weight float64
	Took        time.Duration
}

// Formed reports whether the baseline is complete.
func (b *Baseline) Formed() bool { return b.Seconds >= BaselineForm.Seconds() && b.Weight > 0 }

// Mean returns the baseline of readings.
func (b *Baseline) Mean() float64 { return b.Sum / b.Weight }

// Ratio returns the baseline of errors per bit. Without an error it is the rate of one error: the time resolves no
// less.
func (b *Baseline) Ratio() float64 { return max(b.Sum, 1) / b.Weight }

// Add adds a reading to a baseline that forms. Another serial number begins a new one.
func (b Baseline) Add(now time.Time, r Reading) Baseline {
	if b.Since.IsZero() || b.Serial != "" && r.Serial != "" && b.Serial != r.Serial {
		b = Baseline{Device: b.Device, Port: b.Port, Since: now.UTC().Truncate(time.Second)}
	}
	if r.Serial != "" {
		b.Serial = r.Serial
	}
	if !b.Formed() {
		b.Sum, b.Weight, b.Seconds = b.Sum+r.Sum, b.Weight+r.Weight, b.Seconds+r.Took.Seconds()
	}
	return b
}

// Baseline returns the baseline with an ID, formed or not.
func (m *Memory) Baseline(id string) (Baseline, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.data.Baselines[id]
	return b, ok
}

// SetBaseline records a baseline. It is saved if it began or is complete, and with the next change otherwise: each save
// is a write to disk.
func (m *Memory) SetBaseline(id string, b Baseline) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.data.Baselines[id]
	if before == b {
		return
	}
	m.data.Baselines[id] = b
	if !known || before.Serial != b.Serial || before.Since != b.Since || before.Formed() != b.Formed() {
		m.Touch()
	}
}

// ForgetBaselines discards the baselines of a link, or of one of its ends or lanes: they begin anew.
func (m *Memory) ForgetBaselines(link string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.data.Baselines)
	maps.DeleteFunc(m.data.Baselines, func(id string, _ Baseline) bool { return strings.HasPrefix(id, link+"#") })
	if len(m.data.Baselines) != n {
		m.Touch()
	}
}
