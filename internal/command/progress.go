package command

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/prometheus/common/model"
)

// Progress is a line of a terminal that says how far a command is.
type Progress struct {
	mu    sync.Mutex
	w     io.Writer // nil: none
	dirty bool      // the line has a text
}

// NewProgress returns the progress line of a writer; there is none if it is not a terminal.
func NewProgress(w io.Writer) *Progress {
	if !IsTerminal(w) || os.Getenv("TERM") == "dumb" {
		w = nil
	}
	return &Progress{w: w}
}

// clearLine goes to the first column and clears the line (ECMA-48, EL).
const clearLine = "\r\x1b[K"

// Shown reports whether there is a line.
func (p *Progress) Shown() bool { return p.w != nil }

// Show replaces the line. The cursor stays in the first column, so that a log line replaces it too.
func (p *Progress) Show(format string, args ...any) {
	if p.w == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dirty = true
	fmt.Fprintf(p.w, clearLine+format+"\r", args...)
}

// End clears the line.
func (p *Progress) End() {
	if p.w == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dirty {
		p.dirty = false
		fmt.Fprint(p.w, clearLine)
	}
}

// Time shows each second for how long something has taken, until the result is called: "sweeping the fabric: 12s".
func (p *Progress) Time(what string) (stop func()) {
	if p.w == nil {
		return func() {}
	}
	done := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		start, tick := time.Now(), time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				p.Show("%s: %s", what, model.Duration(now.Sub(start).Round(time.Second)))
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		ticking.Wait()
		p.End()
	}
}
