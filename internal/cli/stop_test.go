package cli

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestUntil: a signal ends the program, even if a call does not return.
func TestUntil(t *testing.T) {
	const late = "rdma_exporter: not stopped within 13s of the signal, exiting: a file system does not respond, " +
		"changes of the last minute may be lost: check the mount of the state directory\n"
	for name, c := range map[string]struct {
		stops time.Duration // after the signal
		ends  time.Duration // without a signal
		code  int
		took  time.Duration
		text  string
	}{
		"ends":             {ends: time.Second, code: 7, took: time.Second},
		"stops":            {ends: 24 * time.Hour, stops: 12 * time.Second, code: 7, took: time.Minute + 12*time.Second},
		"does not respond": {ends: 24 * time.Hour, stops: 14 * time.Second, code: 143, took: time.Minute + 13*time.Second, text: late},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // the signal
				defer cancel()
				var text bytes.Buffer
				start := time.Now()
				code := Until(ctx, &text, func() int {
					select {
					case <-time.After(c.ends):
					case <-ctx.Done():
						time.Sleep(c.stops) // in spite of ctx
					}
					return 7
				})
				took := time.Since(start)
				time.Sleep(time.Minute) // until run returns
				if code != c.code || took != c.took || text.String() != c.text {
					t.Errorf("code %d after %s, %q; want %d after %s, %q", code, took, &text, c.code, c.took, c.text)
				}
			})
		})
	}
}
