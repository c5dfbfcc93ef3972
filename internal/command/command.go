// Package command has what the commands of the program share: exit codes, errors, checks of flags, tables, JSON,
// files.
package command

import (
	"io"
	"log/slog"
	"strings"

	"rdma_exporter/internal/terminal"
	"rdma_exporter/internal/words"
)

// Exit codes. check has its own: check.ExitUnknown for all errors that are no findings.
const (
	OK         = 0
	Failed     = 1
	UsageError = 2
)

// OneLine writes a joined error on one line.
func OneLine(err error) string { return words.Plain(strings.ReplaceAll(err.Error(), "\n", "; ")) }

// Streams are where a command writes to.
type Streams struct {
	Out, Err io.Writer
	Log      *slog.Logger
	Style    terminal.Style // of Out
}

// Usage returns the result for an error that another command line corrects: exit code 2.
func Usage(err error) (int, error) { return UsageError, err }

// Checks are conditions that a command line must not meet, each with its error: the flag, its value, what is allowed.
type Checks []struct {
	Wrong bool
	Err   error
}

// First is the error of the first condition that is met.
func (c Checks) First() error {
	for _, x := range c {
		if x.Wrong {
			return x.Err
		}
	}
	return nil
}

// LogError logs an error that the caller ignores.
func LogError(log *slog.Logger, what string, err error) {
	if err != nil {
		log.Warn(what, "err", err)
	}
}
