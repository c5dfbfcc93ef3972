package alerting

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/compression"
)

const (
	defaultRetention = 2 * time.Hour
	blockLength      = 30 * time.Minute
	maxBytes         = 128 << 20
	walSegmentBytes  = 4 << 20
	// chunkFileBytes bounds a block's chunk file, which is allocated at its full length before it is written.
	chunkFileBytes = 8 << 20
	// stripes of the series map: the default of 16,384 is for millions of series, one node has a few thousand.
	stripes = 512
)

func openStore(opts Options, logger *slog.Logger, reg prometheus.Registerer) (*tsdb.DB, error) {
	o := tsdb.DefaultOptions()
	o.RetentionDuration = opts.Retention.Milliseconds()
	o.MaxBytes = maxBytes
	o.MinBlockDuration = blockLength.Milliseconds()
	o.MaxBlockDuration = blockLength.Milliseconds()
	o.WALSegmentSize = walSegmentBytes
	o.WALCompression = compression.Snappy
	o.WALReplayConcurrency = 1 // a second reader costs buffers and saves milliseconds
	o.MaxBlockChunkSegmentSize = chunkFileBytes
	o.HeadChunksWriteBufferSize = chunks.MinWriteBufferSize
	o.StripeSize = stripes
	o.OutOfOrderTimeWindow = 0
	db, err := tsdb.Open(opts.Dir, logger, reg, o, nil)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", opts.Dir, err)
	}
	return db, nil
}

// storedSpan tells what a store from an earlier run holds; zero times for an empty one.
func storedSpan(db *tsdb.DB) (from, to time.Time) {
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for _, b := range db.Blocks() {
		first, last = min(first, b.MinTime()), max(last, b.MaxTime()-1) // a block's end is exclusive
	}
	if head := db.Head(); head.NumSeries() > 0 {
		first, last = min(first, head.MinTime()), max(last, head.MaxTime())
	}
	if first > last {
		return time.Time{}, time.Time{}
	}
	return time.UnixMilli(first), time.UnixMilli(last)
}
