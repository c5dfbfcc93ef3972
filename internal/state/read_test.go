package state

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestReadEndsWithItsContext: a signal does not wait for a directory that hangs.
func TestReadEndsWithItsContext(t *testing.T) {
	for name, c := range map[string]struct {
		signal, took time.Duration
		text         string
	}{
		"signal":    {signal: time.Second, took: time.Second, text: "state directory /d: no answer before the program was stopped"},
		"no signal": {signal: time.Hour, took: OpenLimit, text: "state directory /d: no answer within 10s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				time.AfterFunc(c.signal, stop)
				start, answers := time.Now(), make(chan struct{})
				err := read(ctx, "/d", new(int), func(string) ([]byte, error) { <-answers; return nil, nil })
				took := time.Since(start)
				if took != c.took || !errors.Is(err, ErrLate) || !strings.HasPrefix(err.Error(), c.text) {
					t.Errorf("%v after %s, want %q after %s", err, took, c.text, c.took)
				}
				close(answers)
				stop()
			})
		})
	}
}
