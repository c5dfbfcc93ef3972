package store

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Appender returns one of the open database. The engine evaluates rules only while there is one.
func (s *Store) Appender(ctx context.Context) storage.Appender { return s.db.Appender(ctx) }

// Querier prevents the replacement of the database until it is closed: its data is mapped from files.
func (s *Store) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := s.querier(mint, maxt)
	if err != nil || q.own == nil {
		return q, err
	}
	return ownQuerier{q}, nil
}

// querier is Querier, which also has the samples of other exporters.
func (s *Store) querier(mint, maxt int64) (*heldQuerier, error) {
	s.mu.RLock()
	if s.db == nil {
		s.mu.RUnlock()
		return nil, ErrUnavailable
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
	own     *Target // whose samples are evaluated; nil: there are no others
	release func()
}

func (q *heldQuerier) Close() error {
	defer q.release()
	return q.Querier.Close()
}

// State returns whether samples are stored in a fallback, and the number of series.
func (s *Store) State() (degraded bool, series uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.db != nil {
		series = s.db.Head().NumSeries()
	}
	return s.db == nil || s.place == inMemory && s.opts.Dir != "", series
}

// Has reports whether the store has a series with a label; true if unknown. Only the engine calls it.
func (s *Store) Has(l labels.Label) bool {
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

// IsOpen reports whether there is a database. Only the engine calls it.
func (s *Store) IsOpen() bool { return s.db != nil }

// Newest returns the time of the last sample; zero if there is none. Only the engine calls it.
func (s *Store) Newest() time.Time {
	if s.db == nil {
		return time.Time{}
	}
	_, last := s.bounds()
	if last == math.MinInt64 {
		return time.Time{}
	}
	return time.UnixMilli(last)
}

// Live lists the series with a sample after from, until to, that have not ended.
func (s *Store) Live(from, to time.Time) (out []labels.Labels, err error) {
	q, err := s.Querier(from.UnixMilli()+1, to.UnixMilli())
	if err != nil {
		return nil, err
	}
	defer q.Close()
	set := q.Select(context.Background(), false, nil,
		labels.MustNewMatcher(labels.MatchNotEqual, model.MetricNameLabel, ""))
	var it chunkenc.Iterator
	for set.Next() {
		it = set.At().Iterator(it)
		ended := true
		for it.Next() == chunkenc.ValFloat {
			_, v := it.At()
			ended = value.IsStaleNaN(v)
		}
		if err := it.Err(); err != nil {
			return nil, err
		}
		if !ended {
			out = append(out, set.At().Labels().Copy()) // the data may be mapped from a file
		}
	}
	return out, set.Err()
}

// Last returns the value of a series at a time, of any instance.
func (s *Store) Last(at time.Time, matchers ...*labels.Matcher) (v float64, ok bool) {
	q, err := s.querier(at.UnixMilli(), at.UnixMilli())
	if err != nil {
		return 0, false
	}
	defer q.Close()
	set := q.Select(context.Background(), false, nil, matchers...)
	for set.Next() {
		it := set.At().Iterator(nil)
		for it.Next() == chunkenc.ValFloat {
			_, v = it.At()
			ok = !math.IsNaN(v)
		}
	}
	return v, ok && set.Err() == nil
}
