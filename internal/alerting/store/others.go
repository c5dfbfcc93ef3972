package store

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

// Target are the labels of the exporter in each of its series. Samples stored under others are of an exporter with
// another name or address, earlier on this host: its alerts would go on beside those of this one.
type Target struct{ Job, Instance string }

// Has reports whether a series is of the exporter. Results of rules may lack the labels.
func (t Target) Has(s labels.Labels) bool {
	job, instance := s.Get("job"), s.Get("instance")
	return (job == "" || job == t.Job) && (instance == "" || instance == t.Instance)
}

// others lists what other exporters have stored: the values of job and instance that are not those of the target.
func (t Target) others(db *tsdb.DB) (out []string, err error) {
	q, err := db.Querier(math.MinInt64, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	for name, own := range map[string]string{"job": t.Job, "instance": t.Instance} {
		values, _, err := q.LabelValues(context.Background(), name, nil)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			if v != own {
				out = append(out, name+"="+strings.Clone(v)) // the data may be mapped from a file
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// exclude leaves out the samples of other exporters, which expire with the retention. A fleet's history is of others.
func (s *Store) exclude(db *tsdb.DB) error {
	own := s.opts.Own
	if s.opts.Fleet {
		s.own = nil
		return nil
	}
	others, err := own.others(db)
	if err != nil {
		return err
	}
	s.own = nil
	if len(others) > 0 {
		s.own = &own
	}
	if len(others) > 0 && !slices.Equal(others, s.others) {
		s.opts.Logger.Info("the alerting store has samples of another job or instance, which are not evaluated",
			"stored", others, "job", own.Job, "instance", own.Instance, "expire", s.opts.Retention)
	}
	s.others = others
	return nil
}

// ownQuerier leaves out the series of other exporters.
type ownQuerier struct{ *heldQuerier }

func (q ownQuerier) Select(
	ctx context.Context, sorted bool, hints *storage.SelectHints, matchers ...*labels.Matcher,
) storage.SeriesSet {
	return ownSeries{q.heldQuerier.Select(ctx, sorted, hints, matchers...), q.own}
}

// ownSeries are the series of a target.
type ownSeries struct {
	storage.SeriesSet
	target *Target
}

func (s ownSeries) Next() bool {
	for s.SeriesSet.Next() {
		if s.target.Has(s.At().Labels()) {
			return true
		}
	}
	return false
}
