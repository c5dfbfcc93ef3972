package alerting

import (
	"context"
	"math"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// storedSpan returns the time span of rounds without a pause in the store; zero for an empty one.
func (e *Engine) storedSpan() (from, to time.Time) {
	if to = e.store.Newest(); to.IsZero() {
		return from, to
	}
	return e.since(to), to
}

// since returns the start of the rounds without a pause before a time; the time itself if unknown.
func (e *Engine) since(to time.Time) time.Time {
	q, err := e.store.Querier(math.MinInt64, to.UnixMilli())
	if err != nil {
		return to
	}
	defer q.Close()
	set := q.Select(context.Background(), false, nil,
		labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, upMetric), // each round has one
		labels.MustNewMatcher(labels.MatchEqual, "job", e.opts.Job),
		labels.MustNewMatcher(labels.MatchEqual, "instance", e.opts.Instance))
	first, before := to, time.Time{}
	for set.Next() {
		it := set.At().Iterator(nil)
		for it.Next() != chunkenc.ValNone {
			ts := time.UnixMilli(it.AtT())
			if ts.Sub(before) > lookback {
				first = ts
			}
			before = ts
		}
		if it.Err() != nil {
			return to
		}
	}
	if set.Err() != nil || to.Sub(before) > lookback {
		return to
	}
	return first
}
