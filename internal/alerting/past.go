package alerting

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// PastSeries is a series of another Prometheus, with all its labels.
type PastSeries struct {
	labels labels.Labels
	ref    storage.SeriesRef
}

// NewPastSeries returns a series with all its labels, __name__ included.
func NewPastSeries(all map[string]string) *PastSeries {
	return &PastSeries{labels: labels.FromMap(all)}
}

// PastSample is the value of a series at a time. Gone: the series has ended.
type PastSample struct {
	Series *PastSeries
	Value  float64
	Gone   bool
}

// AppendPast stores samples of any hosts at ts. Eval evaluates them, as after Append.
func (e *Engine) AppendPast(ts time.Time, samples []PastSample) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.store.db == nil {
		return errStore
	}
	app := e.store.Appender(context.Background())
	for _, s := range samples {
		v := s.Value
		if s.Gone {
			v = stale()
		}
		if err := s.Series.append(app, ts.UnixMilli(), v); err != nil {
			return errors.Join(err, app.Rollback())
		}
	}
	if err := app.Commit(); err != nil {
		return fmt.Errorf("commit samples of %s: %w: %w", stamp(ts), errStore, err)
	}
	if e.to.IsZero() || ts.Sub(e.to) > max(lookback, 2*e.opts.Interval) {
		e.from = ts
	}
	e.to = ts
	return e.store.tidy(ts)
}
