package command

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgress: a line replaces the one before and is cleared at the end; without a terminal nothing is written.
func TestProgress(t *testing.T) {
	var b strings.Builder
	p := NewProgress(&b)
	p.Show("half")
	p.Time("sweeping")()
	p.End()
	if b.Len() > 0 || p.Shown() {
		t.Errorf("%q", b.String())
	}
	p = &Progress{w: &b}
	p.Show("round %d", 1)
	p.End()
	if got := b.String(); got != "\r\x1b[Kround 1\r\r\x1b[K" {
		t.Errorf("%q", got)
	}
	b.Reset()
	synctest.Test(t, func(t *testing.T) {
		stop := p.Time("sweeping")
		time.Sleep(2500 * time.Millisecond)
		stop()
	})
	if got := b.String(); got != "\r\x1b[Ksweeping: 1s\r\r\x1b[Ksweeping: 2s\r\r\x1b[K" {
		t.Errorf("%q", got)
	}
}
