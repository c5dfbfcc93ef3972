package app

import (
	"fmt"
	"io"
	"time"
)

// progress is a line on a terminal that tells how far a long look is. Where nobody looks, or the look is short, there is none.
type progress struct {
	w      io.Writer // nil: none
	length time.Duration
	start  time.Time
}

func newProgress(w io.Writer, length time.Duration) *progress {
	if length == 0 || !isTerminal(w) {
		w = nil
	}
	return &progress{w: w, length: length}
}

// clearLine goes to the first column and clears the line (ECMA-48, EL).
const clearLine = "\r\x1b[K"

// show tells of the round at t.
func (p *progress) show(t time.Time, findings int) {
	if p.w == nil {
		return
	}
	if p.start.IsZero() {
		p.start = t
	}
	fmt.Fprintf(p.w, "%slooking: %s of %s, findings: %d", clearLine, t.Sub(p.start).Round(time.Second), p.length, findings)
}

// end takes the line away.
func (p *progress) end() {
	if p.w != nil {
		fmt.Fprint(p.w, clearLine)
	}
}
