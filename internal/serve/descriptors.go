package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/common/model"
	"golang.org/x/sys/unix"
)

const (
	// ownDescriptors are for everything but connections and the files that stay open between rounds: reads, sockets, the
	// alert store.
	ownDescriptors = 256
	// exhaustedTime is how long no descriptor may be left before the program exits. A restart then frees those that
	// leaked.
	exhaustedTime  = time.Minute
	exhaustedProbe = 5 * time.Second
)

// Descriptors returns the number of descriptors that the program needs. The runtime has raised the soft limit to the
// hard limit.
func (w *Web) Descriptors() int { return w.maxConnections + ownDescriptors }

// CheckDescriptors checks that the limit of open files is high enough.
func (w *Web) CheckDescriptors() error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("cannot read the limit of open files: %w", err)
	}
	if need := w.Descriptors(); l.Cur < uint64(need) {
		return fmt.Errorf("limit of open files (RLIMIT_NOFILE) is %d, need %d for --web.max-connections=%d and %d files: "+
			"raise it (LimitNOFILE= in the unit, ulimit -n), or lower --web.max-connections",
			l.Cur, need, w.maxConnections, ownDescriptors)
	}
	return nil
}

// awaitExhaustion waits until no file could be opened for exhaustedTime, because this process has used up its
// descriptors; nil if ctx ended before. Scrapes would go on without samples of files, and new connections would not be
// accepted.
func awaitExhaustion(ctx context.Context) error {
	since := time.Now()
	ticker := time.NewTicker(exhaustedProbe)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if !isExhausted() {
			since = time.Now()
		} else if time.Since(since) >= exhaustedTime {
			return fmt.Errorf("no file could be opened for %s: all descriptors up to the limit of open files (RLIMIT_NOFILE) are in use: "+
				"restart the exporter, raise the limit (LimitNOFILE= in the unit)",
				model.Duration(exhaustedTime))
		}
	}
}

// isExhausted reports whether the limit of this process is reached.
func isExhausted() bool {
	f, err := os.Open(os.DevNull)
	if err == nil {
		_ = f.Close()
	}
	return errors.Is(err, unix.EMFILE)
}
