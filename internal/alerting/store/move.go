package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Move replaces the database by a copy whose samples are earlier or later, and with them the values of the metrics that
// are times. Two hours of a node take a second or two.
func (s *Store) Move(by time.Duration, isTime func(metric string) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		return ErrFailed
	}
	used, err := s.used()
	if err == nil {
		err = hasSpace(filepath.Dir(s.dir), used+spaceNeeded)
	}
	if err != nil {
		return err
	}
	moved := s.dir + copySuffix
	if err := s.copyMoved(moved, by, isTime); err != nil {
		return errors.Join(fmt.Errorf("move samples of %s: %w", s.dir, err), os.RemoveAll(moved))
	}
	err = closeDB(s.db)
	s.db = nil
	if err = errors.Join(err, os.RemoveAll(s.dir)); err != nil {
		return fmt.Errorf("replace store %s: %w", s.dir, err)
	}
	if err := os.Rename(moved, s.dir); err != nil {
		return err
	}
	return s.openDir()
}

// copyMoved writes the samples to a new database.
func (s *Store) copyMoved(dir string, by time.Duration, isTime func(metric string) bool) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	first, last := s.bounds()
	to, err := tsdb.Open(dir, s.opts.Library, nil, s.options(), nil)
	if err != nil {
		return err
	}
	to.DisableCompactions() // writeChunks writes blocks
	// A database takes samples that are older than its newest one by half a block at most. What would be before 1970 is
	// discarded.
	length := s.blockLength().Milliseconds() / 2
	for from := max(first, -by.Milliseconds()); from <= last && err == nil; from += length {
		if err = copyPart(to, s.db, from, min(from+length-1, last), by, isTime); err == nil {
			err = s.writeChunks(to)
		}
	}
	return errors.Join(err, closeDB(to))
}

// copyPart copies the samples from a time to another one, inclusive, in milliseconds.
func copyPart(to, from *tsdb.DB, mint, maxt int64, by time.Duration, isTime func(metric string) bool) error {
	q, err := from.Querier(mint, maxt)
	if err != nil {
		return err
	}
	defer q.Close()
	app := to.Appender(context.Background())
	set := q.Select(context.Background(), false, nil,
		labels.MustNewMatcher(labels.MatchNotEqual, model.MetricNameLabel, ""))
	var it chunkenc.Iterator
	for set.Next() {
		all := set.At().Labels()
		shift := 0.0
		if isTime(all.Get(model.MetricNameLabel)) {
			shift = by.Seconds()
		}
		it = set.At().Iterator(it)
		var ref storage.SeriesRef
		for it.Next() == chunkenc.ValFloat {
			t, v := it.At()
			if !math.IsNaN(v) { // a staleness marker
				v += shift
			}
			if ref, err = app.Append(ref, all, t+by.Milliseconds(), v); err != nil {
				return errors.Join(err, app.Rollback())
			}
		}
		if err := it.Err(); err != nil {
			return errors.Join(err, app.Rollback())
		}
	}
	if err := set.Err(); err != nil {
		return errors.Join(err, app.Rollback())
	}
	return app.Commit()
}

// bounds returns the times of the first and the last sample, in milliseconds; the first is later if there is none.
func (s *Store) bounds() (first, last int64) {
	first, last = math.MaxInt64, math.MinInt64
	for _, b := range s.db.Blocks() {
		first, last = min(first, b.MinTime()), max(last, b.MaxTime()-1) // the end of a block is exclusive
	}
	if head := s.db.Head(); head.NumSeries() > 0 {
		first, last = min(first, head.MinTime()), max(last, head.MaxTime())
	}
	return first, last
}
