package check

import (
	"fmt"
	"io"
	"time"

	"github.com/prometheus/common/model"

	"rdma_exporter/internal/command"
)

// progress is a progress line on a terminal during check --for.
type progress struct {
	w      io.Writer // nil: none
	length time.Duration
	start  time.Time
}

func newProgress(w io.Writer, length time.Duration) *progress {
	if length == 0 || !command.IsTerminal(w) {
		w = nil
	}
	return &progress{w: w, length: length}
}

// clearLine goes to the first column and clears the line (ECMA-48, EL).
const clearLine = "\r\x1b[K"

// show updates the line after the round at t.
func (p *progress) show(t time.Time, findings int) {
	if p.w == nil {
		return
	}
	if p.start.IsZero() {
		p.start = t
	}
	fmt.Fprintf(p.w, "%sobserving: %s of %s, findings: %d",
		clearLine, model.Duration(t.Sub(p.start).Round(time.Second)), model.Duration(p.length), findings)
}

// end clears the line.
func (p *progress) end() {
	if p.w != nil {
		fmt.Fprint(p.w, clearLine)
	}
}
