package command

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"

	"rdma_exporter/internal/terminal"
)

// Values of --color.
const (
	ColorAuto   = "auto"
	ColorAlways = "always"
	ColorNever  = "never"
)

// IsTerminal reports whether a writer is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// defaultWidth is the width of a terminal that does not report one, such as a serial console.
const defaultWidth = 80

// StyleOf returns how text is laid out on a writer. Lines fit COLUMNS where it is set (watch sets it for the pipe that
// it reads), else a terminal; in a pipe or a file they are not broken. Colours need a terminal, no NO_COLOR
// (no-color.org) and another TERM than dumb; --color overrides all three.
func StyleOf(w io.Writer, color string) terminal.Style {
	tty := IsTerminal(w)
	s := terminal.Style{Width: columns()}
	if f, ok := w.(*os.File); ok && tty && s.Width == 0 {
		s.Width = defaultWidth
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			s.Width = n
		}
	}
	s.Colour = color == ColorAlways ||
		color != ColorNever && tty && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}

// columns returns the number in COLUMNS; 0: none.
func columns() int {
	n, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil {
		return 0
	}
	return max(0, n)
}
