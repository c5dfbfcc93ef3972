package alerting

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/storage"
)

// Appender is for rules, which the engine evaluates when there is a database.
func (s *store) Appender(ctx context.Context) storage.Appender { return s.db.Appender(ctx) }

// Querier keeps the database from being replaced until it is closed: what it reads is mapped from files.
func (s *store) Querier(mint, maxt int64) (storage.Querier, error) {
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
	return &heldQuerier{Querier: q, release: sync.OnceFunc(s.mu.RUnlock)}, nil
}

type heldQuerier struct {
	storage.Querier
	release func()
}

func (q *heldQuerier) Close() error {
	defer q.release()
	return q.Querier.Close()
}

// gatherer gives the database's own metrics.
func (s *store) gatherer() prometheus.Gatherer {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.registry == nil {
		return prometheus.NewRegistry()
	}
	return s.registry
}

// state says whether samples are kept as they ought to be, and how many series there are.
func (s *store) state() (degraded bool, series uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.db != nil {
		series = s.db.Head().NumSeries()
	}
	return s.db == nil || s.place == inMemory && s.opts.Dir != "", series
}

// span tells what a store from an earlier run holds; zero times for an empty one.
func (s *store) span() (from, to time.Time) {
	if s.db == nil {
		return from, to
	}
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for _, b := range s.db.Blocks() {
		first, last = min(first, b.MinTime()), max(last, b.MaxTime()-1) // a block's end is exclusive
	}
	if head := s.db.Head(); head.NumSeries() > 0 {
		first, last = min(first, head.MinTime()), max(last, head.MaxTime())
	}
	if first > last {
		return time.Time{}, time.Time{}
	}
	return time.UnixMilli(first), time.UnixMilli(last)
}
