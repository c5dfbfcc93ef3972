package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/compression"

	"rdma_exporter/internal/state"
)

// open opens the database in a place, or in the first usable one after it.
func (s *Store) open(at place, reason error) error {
	reasons := []error{reason}
	for ; at <= inMemory; at++ {
		if s.place = at; s.place == anew && (s.blocked ||
			s.opts.Scratch != "" && hasSpace(filepath.Dir(s.opts.Dir), spaceNeeded) != nil) {
			continue // the data is not the cause
		}
		err := s.openHere()
		if err == nil {
			s.explain(errors.Join(reasons...))
			return nil
		}
		reasons = append(reasons, err)
		if s.opts.Scratch == "" {
			break
		}
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, errors.Join(reasons...))
}

// explain logs where the samples are after a failure.
func (s *Store) explain(reason error) {
	if reason == nil {
		return
	}
	memory := s.place == inMemory && s.opts.Dir != ""
	empty := s.db.Head().NumSeries() == 0 && len(s.db.Blocks()) == 0
	switch log := s.opts.Logger; {
	case memory && empty:
		log.Warn("alerting store is in memory and starts empty, trying the state directory again every minute: "+
			"rules that look back are evaluated once enough history has been collected", "dir", s.dir, "reason", reason)
	case memory:
		log.Warn("alerting store is in memory, trying the state directory again every minute",
			"dir", s.dir, "reason", reason)
	case empty:
		log.Warn("alerting store starts empty: rules that look back are evaluated once enough history has been collected",
			"dir", s.dir, "reason", reason)
	}
}

func (s *Store) openHere() error {
	if s.place == inMemory {
		return s.openScratch()
	}
	dir, found, options := s.opts.Dir, s.place == asFound, s.options()
	db, err := s.late.Open(s.opts.Context, s.opts.OpenLimit, func() (*tsdb.DB, error) {
		if !found {
			if err := setAside(dir); err != nil {
				return nil, err
			}
			return s.openDB(dir, options)
		}
		_ = os.RemoveAll(dir + copySuffix) // of a process that was killed; copyStore removes it too
		if err := onlyFiles(dir); err != nil {
			return nil, err
		}
		if err := hasSpace(dir, spaceNeeded); err != nil {
			return nil, err
		}
		return s.openDB(dir, options)
	}, func(db *tsdb.DB, _ error) { s.closeLate(db) })
	s.blocked = isBlocked(err)
	if err != nil {
		return fmt.Errorf("open alerting store %s: %w", dir, err)
	}
	s.dir = dir
	return s.take(db)
}

func isBlocked(err error) bool { return errors.Is(err, errBlocked) || errors.Is(err, state.ErrLate) }

// closeLate closes a database that nobody waits for any more.
func (s *Store) closeLate(db *tsdb.DB) {
	if db == nil {
		return
	}
	if err := closeDB(db); err != nil {
		s.opts.Logger.Warn("closing an alerting store that was opened too late failed", "err", err)
	}
}

// openScratch opens a copy of the data in Options.Dir; if that is damaged, blocked or too large, an empty database.
func (s *Store) openScratch() error {
	if s.opts.Dir != "" && !s.blocked && s.openCopy() == nil {
		return nil
	}
	made, err := makeScratch(s.opts.Scratch)
	if err != nil {
		return err
	}
	s.scratch, s.dir = made, made.store()
	if err := s.openDir(); err != nil {
		return errors.Join(err, s.removeScratch())
	}
	return nil
}

// openCopy opens a copy of the data in Options.Dir.
func (s *Store) openCopy() error {
	made, err := makeScratch(s.opts.Scratch)
	if err != nil {
		return err
	}
	dir, from, options := made.store(), s.opts.Dir, s.options()
	db, err := s.late.Open(s.opts.Context, s.opts.OpenLimit, func() (*tsdb.DB, error) {
		if err := errors.Join(onlyFiles(from), copyStore(dir, from), hasSpace(dir, spaceNeeded)); err != nil {
			return nil, errors.Join(err, made.remove())
		}
		db, err := s.openDB(dir, options)
		if err != nil {
			return nil, errors.Join(err, made.remove())
		}
		return db, nil
	}, func(db *tsdb.DB, err error) {
		if s.closeLate(db); err == nil {
			_ = made.remove() // removed at the next start otherwise
		}
	})
	if err != nil {
		s.blocked = isBlocked(err)
		return err
	}
	s.scratch, s.dir = made, dir
	if err := s.take(db); err != nil {
		return errors.Join(err, s.removeScratch())
	}
	return nil
}

// openDir opens the database in s.dir.
func (s *Store) openDir() error {
	db, err := s.openDB(s.dir, s.options())
	if err != nil {
		return fmt.Errorf("open store %s: %w", s.dir, err)
	}
	return s.take(db)
}

// openDB opens a database and reads all of it. It uses nothing that changes: it may still run when it was given up.
func (s *Store) openDB(dir string, options *tsdb.Options) (*tsdb.DB, error) {
	db, err := s.library(dir, s.opts.Library, options)
	if err != nil {
		return nil, err
	}
	db.DisableCompactions() // tidy writes blocks
	if err := readAll(db); err != nil {
		return nil, errors.Join(fmt.Errorf("read it: %w", err), closeDB(db))
	}
	return db, nil
}

func openLibrary(dir string, log *slog.Logger, options *tsdb.Options) (*tsdb.DB, error) {
	return tsdb.Open(dir, log, nil, options, nil)
}

// take makes an opened database that of the store.
func (s *Store) take(db *tsdb.DB) error {
	if err := s.exclude(db); err != nil {
		return errors.Join(fmt.Errorf("read store %s: %w", s.dir, err), closeDB(db))
	}
	s.db, s.tidied = db, time.Time{}
	return nil
}

func (s *Store) options() *tsdb.Options {
	o := tsdb.DefaultOptions()
	o.RetentionDuration = s.opts.Retention.Milliseconds()
	if !s.opts.Fleet {
		o.MaxBytes = maxBytes
	}
	o.MinBlockDuration = s.blockLength().Milliseconds()
	o.MaxBlockDuration = s.blockLength().Milliseconds()
	o.WALSegmentSize = walSegmentBytes
	o.WALCompression = compression.Snappy
	o.WALReplayConcurrency = 1 // a second reader costs buffers and saves milliseconds
	o.MaxBlockChunkSegmentSize = chunkFileBytes
	o.HeadChunksWriteBufferSize = chunks.MinWriteBufferSize
	o.StripeSize = stripes
	o.OutOfOrderTimeWindow = 0
	o.BlockReloadInterval = libraryInterval
	o.NoLockfile = s.place == inMemory // scratch has one
	return o
}

// blockLength returns the length of blocks. That of a fleet's history is long: results may be as old as half of it.
func (s *Store) blockLength() time.Duration {
	if s.opts.Fleet {
		return fleetBlockLength
	}
	return blockLength
}

// readAll reads every sample, since a damaged block would fail each later query. It takes about 100 ms.
func readAll(db *tsdb.DB) error {
	q, err := db.Querier(math.MinInt64, math.MaxInt64)
	if err != nil {
		return err
	}
	defer q.Close()
	all := labels.MustNewMatcher(labels.MatchNotEqual, model.MetricNameLabel, "")
	set := q.Select(context.Background(), false, nil, all)
	var it chunkenc.Iterator
	for set.Next() {
		it = set.At().Iterator(it)
		for it.Next() != chunkenc.ValNone {
		}
		if it.Err() != nil {
			return it.Err()
		}
	}
	return set.Err()
}

// setAside renames a store, replacing one that was set aside before.
func setAside(dir string) error {
	if err := os.RemoveAll(dir + asideSuffix); err != nil {
		return fmt.Errorf("remove the store set aside earlier: %w", err)
	}
	if err := os.Rename(dir, dir+asideSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("set the store aside: %w", err)
	}
	return nil
}
