package alerting

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/fileutil"
	"github.com/prometheus/prometheus/util/compression"
)

const (
	defaultRetention = 2 * time.Hour
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

var (
	// ErrNoStore: samples cannot be stored anywhere.
	ErrNoStore = errors.New("alerting store unavailable")
	// errStore is wrapped by errors of a database that rejects samples.
	errStore = errors.New("alerting store failed")
)

// place is the location of the database; each is the fallback of the previous one.
type place int

const (
	asFound place = iota // Options.Dir, with existing data
	anew                 // Options.Dir, existing data set aside
	// A temporary directory in Options.Scratch, with a copy of the data in Options.Dir if it can be read.
	inMemory
)

// store is the database of samples. A failing database is set aside once; after that, and if nothing can be written to
// its directory, samples are kept in Options.Scratch until they can be moved back. If that is empty, the caller gets
// the failure. Only the engine writes and replaces it; reads are concurrent.
type store struct {
	opts   Options
	logger *slog.Logger

	mu      sync.RWMutex // guards the following for readers
	db      *tsdb.DB     // nil: none
	place   place
	dir     string
	scratch *scratch // of the place inMemory; nil: none
	tidied  time.Time
	tried   time.Time // to move back

	own    *target  // whose samples are read; nil: there are no others
	others []string // as last logged

	blocks   []*tsdb.Block
	inBlocks map[labels.Label]bool // whether one of blocks has a series with a label, as far as known
}

// begin opens the database for the first time. With Options.Scratch a failure is not final: a later round may find
// space.
func (s *store) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := asFound
	if s.opts.Dir == "" {
		first = inMemory
	}
	if s.opts.Scratch != "" {
		removeKilled(s.opts.Scratch)
	}
	if s.opts.Dir != "" {
		_ = os.RemoveAll(s.opts.Dir + copySuffix) // of a process that was killed; copyStore removes it too
	}
	if err := s.open(first, nil); err != nil && s.opts.Scratch == "" {
		return err
	}
	return nil
}

// next continues in the next place; reason is the failure of this one.
func (s *store) next(reason error) error {
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

// renew continues with an empty database in the same place.
func (s *store) renew(reason error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
	return s.open(max(s.place, anew), reason)
}

// moveTo switches to another directory with its data.
func (s *store) moveTo(dir string) {
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

// open opens the database in a place, or in the first usable one after it.
func (s *store) open(at place, reason error) error {
	reasons := []error{reason}
	for ; at <= inMemory; at++ {
		if s.place = at; s.place == anew && s.opts.Scratch != "" && hasSpace(filepath.Dir(s.opts.Dir), spaceNeeded) != nil {
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
	return fmt.Errorf("%w: %w", ErrNoStore, errors.Join(reasons...))
}

// explain logs where the samples are after a failure.
func (s *store) explain(reason error) {
	if reason == nil {
		return
	}
	if s.place == inMemory && s.opts.Dir != "" {
		s.opts.Logger.Warn("alerting store is in memory, trying the state directory again every minute",
			"dir", s.dir, "reason", reason)
	}
	if s.db.Head().NumSeries() == 0 && len(s.db.Blocks()) == 0 {
		s.opts.Logger.Warn("alerting store starts empty: rules that look back are evaluated once enough history has been collected", "dir", s.dir, "reason", reason)
	}
}

func (s *store) openHere() error {
	switch s.place {
	case inMemory:
		return s.openScratch()
	case anew:
		if err := setAside(s.opts.Dir); err != nil {
			return err
		}
	case asFound:
		if err := hasSpace(s.opts.Dir, spaceNeeded); err != nil {
			return fmt.Errorf("open store %s: %w", s.opts.Dir, err)
		}
	}
	s.dir = s.opts.Dir
	return s.openDir()
}

// openScratch opens a copy of the data in Options.Dir; if that is damaged or too large, an empty database.
func (s *store) openScratch() (err error) {
	if s.scratch, err = makeScratch(s.opts.Scratch); err != nil {
		return err
	}
	s.dir = s.scratch.store()
	if s.opts.Dir != "" && copyStore(s.dir, s.opts.Dir) == nil && s.reopen() == nil {
		return nil
	}
	if err := errors.Join(os.RemoveAll(s.dir), s.openDir()); err != nil {
		return errors.Join(err, s.removeScratch())
	}
	return nil
}

// openDir opens the database in s.dir.
func (s *store) openDir() error {
	db, err := tsdb.Open(s.dir, s.logger, nil, s.options(), nil)
	if err != nil {
		return fmt.Errorf("open store %s: %w", s.dir, err)
	}
	db.DisableCompactions() // tidy writes blocks
	if err := errors.Join(readAll(db), s.exclude(db)); err != nil {
		return errors.Join(fmt.Errorf("read store %s: %w", s.dir, err), closeDB(db))
	}
	s.db, s.tidied = db, time.Time{}
	return nil
}

func (s *store) options() *tsdb.Options {
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

// blockLength of a fleet's history is long: results may be as old as half of it.
func (s *store) blockLength() time.Duration {
	if s.opts.Fleet {
		return fleetBlockLength
	}
	return blockLength
}

// hasSpace returns an error if a directory does not have so much space. A store needs spaceNeeded to be opened: while
// the library reads the log of a killed process, it writes the full chunks in it on its own goroutine, where a full
// disk terminates the process.
func hasSpace(dir string, bytes int64) (err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "space-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// The space belongs to the open file and is freed however this process ends.
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	if err := fileutil.Preallocate(f, bytes, true); err != nil {
		return fmt.Errorf("no space for %d MiB: %w", bytes>>20, err)
	}
	piece := make([]byte, 64<<10) // some file systems do not allocate before data is written
	for range bytes / int64(len(piece)) {
		if _, err := f.Write(piece); err != nil {
			return fmt.Errorf("no space for %d MiB: %w", bytes>>20, err)
		}
	}
	return nil
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

// tidy writes full chunks once a minute.
func (s *store) tidy(ts time.Time) error {
	if d := ts.Sub(s.tidied); d >= 0 && d < tidyInterval {
		return nil
	}
	s.tidied = ts
	return s.writeChunks(s.db)
}

// writeChunks writes full chunks, and blocks of data older than the head keeps. The library panics if the disk is full.
func (s *store) writeChunks(db *tsdb.DB) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: write chunks: %v", errStore, p)
		}
	}()
	db.ForceHeadMMap()
	if head := db.Head(); head.MaxTime()-head.MinTime() > s.blockLength().Milliseconds()*3/2 {
		if err := db.Compact(context.Background()); err != nil {
			return fmt.Errorf("%w: write a block: %w", errStore, err)
		}
	}
	return nil
}

// close closes the database.
func (s *store) close() (err error) {
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
func (s *store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.close()
}

func (s *store) removeScratch() error {
	if s.scratch == nil {
		return nil
	}
	err := s.scratch.remove()
	s.scratch, s.dir = nil, ""
	return err
}
