package nvml

import (
	"errors"
	"fmt"
	"time"

	"rdma_exporter/internal/snapshot/accel"
)

const (
	// LongestRelease limits a release together with its extensions: a request that is repeated for ever ends GPU
	// monitoring for a day at most.
	LongestRelease = 24 * time.Hour
	// releaseBreak is the time between two releases that count separately. In less the rules evaluate next to nothing.
	releaseBreak = 10 * time.Minute
)

// ErrReleaseTooLong is the error of a release beyond LongestRelease.
var ErrReleaseTooLong = errors.New("release too long")

// gpuRelease is the last release, which may have ended.
type gpuRelease struct {
	since, until time.Time
	by           string
}

// next returns the release after a request for a time d; 0 ends it.
func (r gpuRelease) next(now time.Time, d time.Duration, by string) (gpuRelease, error) {
	if d <= 0 {
		if now.Before(r.until) {
			r.until = now
		}
		return r, nil
	}
	next := gpuRelease{since: now, until: now.Add(d), by: by}
	if now.Sub(r.until) < releaseBreak {
		next.since = r.since
	}
	if left := next.since.Add(LongestRelease).Sub(now); d > left {
		return r, fmt.Errorf("%w: must end within 24h of its start %s, in %s at most; releases less than 10m apart count as one",
			ErrReleaseTooLong, next.since.UTC().Format("2006-01-02 15:04:05 UTC"), max(0, left).Truncate(time.Second))
	}
	return next, nil
}

// at returns the release at a point in time; nil if there is none. Its times follow the wall clock at that time, which
// may have been set since the start of the release.
func (r gpuRelease) at(now time.Time) *accel.GPURelease {
	left := r.until.Sub(now)
	if left <= 0 {
		return nil
	}
	return &accel.GPURelease{Since: now.Add(r.since.Sub(now)), Until: now.Add(left), By: r.by, Left: left}
}
