package expect

import (
	"maps"
	"strings"
	"time"
)

const (
	// BaselineSettle is the time for which a link has to be ACTIVE without interruption before its readings count.
	BaselineSettle = time.Hour
	// BaselineForm is the time that a baseline covers. Once complete, it is not changed.
	BaselineForm = 4 * time.Hour
)

// Baseline is the mean of a value of a link or a lane over the first BaselineForm of settled time with its transceiver.
type Baseline struct {
	Device string    `json:"device"` // name when last read
	Port   int       `json:"port"`
	Serial string    `json:"serial,omitempty"` // of the transceiver; empty: not readable
	Since  time.Time `json:"since"`            // when it began to form
	// Sum and Weight give the mean: errors and bits, or the sum of readings and their number.
	Sum     float64 `json:"sum"`
	Weight  float64 `json:"weight"`
	Seconds float64 `json:"seconds"` // covered so far
}

// Reading is a value of a link over the time Took.
type Reading struct {
	Serial      string // empty: unknown, which is no change
	Sum, Weight float64
	Took        time.Duration
}

// Formed reports whether the baseline is complete.
func (b *Baseline) Formed() bool { return b.Seconds >= BaselineForm.Seconds() && b.Weight > 0 }

// Mean returns the mean of the readings.
func (b *Baseline) Mean() float64 { return b.Sum / b.Weight }

// Ratio returns the errors per bit. Without an error it is the ratio of one error, the lowest that the time can
// resolve.
func (b *Baseline) Ratio() float64 { return max(b.Sum, 1) / b.Weight }

// Add returns the baseline with a reading added, if it is not complete. Another serial number begins a new baseline.
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
