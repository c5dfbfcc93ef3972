// Package store keeps the samples of an engine in a database of Prometheus: in a directory, set aside if it is damaged,
// or in a temporary one until the directory can be used.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"

	"rdma_exporter/internal/state"
)

const (
	blockLength      = 30 * time.Minute
	fleetBlockLength = 4 * time.Hour
	maxBytes         = 128 << 20
	walSegmentBytes  = 4 << 20
	// chunkFileBytes limits a block's chunk file, which is preallocated at full length.
	chunkFileBytes = 8 << 20
	// spaceNeeded is more than opening a store writes: one segment of the log, and chunks of the data in the log.
	spaceNeeded = walSegmentBytes + chunkFileBytes
	// stripes of the series map: the default of 16,384 is for millions of series, a node has a few thousand.
	stripes = 512
	// tidyInterval is how often full chunks are written to disk.
	tidyInterval = time.Minute
	// libraryInterval is longer than any run: otherwise the library writes chunks on its own goroutine, where a full disk
	// terminates the process.
	libraryInterval = 10 * 365 * 24 * time.Hour

	// returnInterval is how often a store in memory is tried to be moved back to its directory.
	returnInterval = time.Minute
	// copySuffix marks a store that is being copied.
	copySuffix = ".copy"
	// asideSuffix marks a store that could not be used. One is kept for diagnosis.
	asideSuffix = ".broken"
)

// Fallbacks is how many places there are after the first one.
const Fallbacks = int(inMemory)

var (
	// ErrUnavailable: samples cannot be stored anywhere.
	ErrUnavailable = errors.New("alerting store unavailable")
	// ErrFailed is wrapped by errors of a database that rejects samples.
	ErrFailed = errors.New("alerting store failed")
)

// place is the location of the database; each is the fallback of the previous one.
type place int

const (
	asFound place = iota // Options.Dir, with existing data
	anew                 // Options.Dir, existing data set aside
	// A temporary directory in Options.Scratch, with a copy of the data in Options.Dir if it can be read.
	inMemory
)

// Options are where samples are stored, and whose.
type Options struct {
	Dir     string // for exclusive use; created if missing
	Scratch string // where a temporary directory is created if Dir fails or is empty; empty: the failure is returned
	// Context ends the waiting for Dir, as OpenLimit does (0: state.OpenLimit). After that samples are kept in Scratch.
	Context   context.Context
	OpenLimit time.Duration
	Own       Target // the exporter whose samples are stored
	Fleet     bool   // samples are of many hosts, and as many as a Prometheus may have
	Retention time.Duration
	Logger    *slog.Logger
	Library   *slog.Logger // for the reports of Prometheus' library
}

// Store is the database of samples. A failing database is set aside once; after that, and if nothing can be written to
// its directory, samples are kept in Options.Scratch until they can be moved back. If that is empty, the caller gets
// the failure. Only the engine writes and replaces it; reads are concurrent.
type Store struct {
	opts Options

	mu      sync.RWMutex // guards the following for readers
	db      *tsdb.DB     // nil: none
	place   place
	dir     string
	scratch *scratch // of the place inMemory; nil: none
	tidied  time.Time
	tried   time.Time // to move back

	late    state.Late[*tsdb.DB] // openings that may hang
	blocked bool                 // Options.Dir has data that could not be reached, and that stays
	// library is openLibrary; another one in tests.
	library func(string, *slog.Logger, *tsdb.Options) (*tsdb.DB, error)

	own    *Target  // whose samples are read; nil: there are no others
	others []string // as last logged

	blocks   []*tsdb.Block
	inBlocks map[labels.Label]bool // whether one of blocks has a series with a label, as far as known
}

// New returns a store without a database.
func New(opts Options) *Store { return &Store{opts: opts, library: openLibrary} }

// Begin opens the database for the first time. With Options.Scratch a failure is not final: a later round may find
// space.
func (s *Store) Begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := asFound
	if s.opts.Dir == "" {
		first = inMemory
	}
	if s.opts.Scratch != "" {
		removeKilled(s.opts.Scratch)
	}
	if err := s.open(first, nil); err != nil && s.opts.Scratch == "" {
		return err
	}
	return nil
}

// Next continues in the next place; reason is the failure of this one.
func (s *Store) Next(reason error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opts.Scratch == "" {
		return reason
	}
	s.close()
	if s.place == inMemory { // there is no further fallback; the caller reports the failure
		return s.open(inMemory, nil)
	}
	return s.open(s.place+1, reason)
}

// Renew continues with an empty database in the same place.
func (s *Store) Renew(reason error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
	return s.open(max(s.place, anew), reason)
}

// MoveTo switches to another directory with its data.
func (s *Store) MoveTo(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.close(); err != nil {
		s.opts.Logger.Warn("closing the previous alerting store failed", "err", err)
	}
	s.opts.Dir = dir
	if err := s.open(asFound, nil); err != nil {
		s.opts.Logger.Warn("opening the alerting store failed, retrying in the next round", "err", err)
	}
}

// Tidy writes full chunks once a minute.
func (s *Store) Tidy(ts time.Time) error {
	if d := ts.Sub(s.tidied); d >= 0 && d < tidyInterval {
		return nil
	}
	s.tidied = ts
	return s.writeChunks(s.db)
}

// writeChunks writes full chunks, and blocks of data older than the head keeps. The library panics if the disk is full.
func (s *Store) writeChunks(db *tsdb.DB) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: write chunks: %v", ErrFailed, p)
		}
	}()
	db.ForceHeadMMap()
	if head := db.Head(); head.MaxTime()-head.MinTime() > s.blockLength().Milliseconds()*3/2 {
		if err := db.Compact(context.Background()); err != nil {
			return fmt.Errorf("%w: write a block: %w", ErrFailed, err)
		}
	}
	return nil
}

// close closes the database.
func (s *Store) close() (err error) {
	if s.db != nil {
		if err = closeDB(s.db); err != nil {
			err = fmt.Errorf("close store %s: %w", s.dir, err)
		}
		s.db = nil
	}
	return errors.Join(err, s.removeScratch())
}

// closeDB closes a database and writes its chunks.
func closeDB(db *tsdb.DB) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return db.Close()
}

// Close flushes and releases the store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.close()
}

func (s *Store) removeScratch() error {
	if s.scratch == nil {
		return nil
	}
	err := s.scratch.remove()
	s.scratch, s.dir = nil, ""
	return err
}
