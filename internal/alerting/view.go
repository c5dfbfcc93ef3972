package alerting

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Appender is for rules. The engine evaluates them only while a database is open.
func (s *store) Appender(ctx context.Context) storage.Appender { return s.db.Appender(ctx) }

// Querier prevents the replacement of the database until it is closed: its data is mapped from files.
func (s *store) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := s.querier(mint, maxt)
	if err != nil || q.own == nil {
		return q, err
	}
	return ownQuerier{q}, nil
}

// querier is Querier with the samples of other exporters.
func (s *store) querier(mint, maxt int64) (*heldQuerier, error) {
	s.mu.RLock()
	if s.db == nil {
		s.mu.RUnlock()
		return nil, ErrNoStore
	}
	q, err := s.db.Querier(mint, maxt)
	if err != nil {
		s.mu.RUnlock()
		return nil, err
	}
	return &heldQuerier{Querier: q, own: s.own, release: sync.OnceFunc(s.mu.RUnlock)}, nil
}

type heldQuerier struct {
	storage.Querier
	own     *target // whose samples are evaluated; nil: there are no others
	release func()
}

func (q *heldQuerier) Close() error {
	defer q.release()
	return q.Querier.Close()
}

// state returns whether samples are stored in a fallback, and the number of series.
func (s *store) state() (degraded bool, series uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.db != nil {
		series = s.db.Head().NumSeries()
	}
	return s.db == nil || s.place == inMemory && s.opts.Dir != "", series
}

// has reports whether the store has a series with a label; true if unknown. Only the engine calls it.
func (s *store) has(l labels.Label) bool {
	if s.db == nil {
		return true
	}
	if blocks := s.db.Blocks(); s.inBlocks == nil || !slices.Equal(blocks, s.blocks) {
		s.blocks, s.inBlocks = slices.Clone(blocks), map[labels.Label]bool{}
	}
	old, known := s.inBlocks[l]
	if !known {
		old = slices.ContainsFunc(s.blocks, func(b *tsdb.Block) bool { return indexHas(b, l) })
		s.inBlocks[l] = old
	}
	return old || indexHas(s.db.Head(), l)
}

func indexHas(b tsdb.BlockReader, l labels.Label) bool {
	r, err := b.Index()
	if err != nil {
		return true
	}
	defer r.Close()
	p, err := r.Postings(context.Background(), l.Name, l.Value)
	return err != nil || p.Next() || p.Err() != nil
}

// span returns the time span of rounds without a pause in an existing store; zero for an empty one.
func (s *store) span() (from, to time.Time) {
	if s.db == nil {
		return from, to
	}
	_, last := s.bounds()
	if last == math.MinInt64 {
		return time.Time{}, time.Time{}
	}
	to = time.UnixMilli(last)
	return s.since(to), to
}

// since is the start of the rounds without a pause before a time; the time itself if unknown.
func (s *store) since(to time.Time) time.Time {
	q, err := s.Querier(math.MinInt64, to.UnixMilli())
	if err != nil {
		return to
	}
	defer q.Close()
	set := q.Select(context.Background(), false, nil,
		labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, upMetric), // each round has one
		labels.MustNewMatcher(labels.MatchEqual, "job", s.opts.Job),
		labels.MustNewMatcher(labels.MatchEqual, "instance", s.opts.Instance))
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
