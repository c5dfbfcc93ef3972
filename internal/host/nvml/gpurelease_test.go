package nvml

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestRepeatedRelease: requests that follow each other are one release from the first on, which ends within a day.
func TestRepeatedRelease(t *testing.T) {
	start := time.Date(2026, 7, 1, 9, 0, 0, 0, time.UTC)
	type request struct {
		at, length time.Duration // since the start; 0 ends it
	}
	for name, c := range map[string]struct {
		requests    []request
		at          time.Duration
		since, left time.Duration // left 0: not released
		refused     string        // of the last request
	}{
		"one":                        {[]request{{0, time.Hour}}, 20 * time.Minute, 0, 40 * time.Minute, ""},
		"over":                       {[]request{{0, time.Hour}}, time.Hour, 0, 0, ""},
		"ended":                      {[]request{{0, time.Hour}, {time.Minute, 0}}, time.Minute, 0, 0, ""},
		"extended":                   {[]request{{0, time.Hour}, {50 * time.Minute, time.Hour}}, time.Hour, 0, 50 * time.Minute, ""},
		"shortened":                  {[]request{{0, time.Hour}, {time.Minute, time.Minute}}, 90 * time.Second, 0, 30 * time.Second, ""},
		"again after it is over":     {[]request{{0, time.Hour}, {time.Hour + time.Minute, time.Hour}}, 2 * time.Hour, 0, time.Minute, ""},
		"again after it was ended":   {[]request{{0, time.Hour}, {time.Minute, 0}, {10 * time.Minute, time.Hour}}, 10 * time.Minute, 0, time.Hour, ""},
		"ended twice":                {[]request{{0, time.Hour}, {time.Minute, 0}, {9 * time.Minute, 0}, {11 * time.Minute, time.Hour}}, 11 * time.Minute, 11 * time.Minute, time.Hour, ""},
		"again after a break":        {[]request{{0, time.Hour}, {70 * time.Minute, time.Hour}}, 70 * time.Minute, 70 * time.Minute, time.Hour, ""},
		"a day":                      {[]request{{0, 24 * time.Hour}}, 0, 0, 24 * time.Hour, ""},
		"more than a day":            {[]request{{0, 24*time.Hour + time.Second}}, 0, 0, 0, "in 24h0m0s at most"},
		"extended to a day":          {[]request{{0, 20 * time.Hour}, {20 * time.Hour, 4 * time.Hour}}, 20 * time.Hour, 0, 4 * time.Hour, ""},
		"extended to more than that": {[]request{{0, 20 * time.Hour}, {19 * time.Hour, 6 * time.Hour}}, 19 * time.Hour, 0, time.Hour, "start 2026-07-01 09:00:00 UTC, in 5h0m0s at most"},
		"at once after a day":        {[]request{{0, 24 * time.Hour}, {24*time.Hour + time.Minute, time.Hour}}, 25 * time.Hour, 0, 0, "in 0s at most"},
	} {
		t.Run(name, func(t *testing.T) {
			var r gpuRelease
			for i, q := range c.requests {
				next, err := r.next(start.Add(q.at), q.length, "root")
				if refused := i == len(c.requests)-1 && c.refused != ""; refused != errors.Is(err, ErrReleaseTooLong) ||
					refused && !strings.Contains(err.Error(), c.refused) {
					t.Errorf("request %d: %v, want %q", i, err, c.refused)
				}
				r = next
			}
			got := r.at(start.Add(c.at))
			if c.left == 0 {
				if got != nil {
					t.Errorf("%+v, want none", got)
				}
				return
			}
			if got == nil || got.Since != start.Add(c.since) || got.Left != c.left || got.Until != start.Add(c.at+c.left) {
				t.Errorf("%+v, want since %s, %s left", got, c.since, c.left)
			}
		})
	}
}
