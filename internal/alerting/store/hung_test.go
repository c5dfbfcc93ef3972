package store

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/prometheus/tsdb"
)

// TestHungStore: an opening that hangs in the kernel is given up at the limit, and when the program is stopped. The
// history is in memory. Nothing of the store is deleted: the late database is closed, and set aside when there is one
// to take its place.
func TestHungStore(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for name, c := range map[string]struct {
		ctx   context.Context
		limit time.Duration
		want  string
	}{
		"limit":   {t.Context(), time.Nanosecond, "no answer within 1ns: check the file system that it is on"},
		"stopped": {stopped, time.Hour, "no answer before the program was stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			gate := filepath.Join(t.TempDir(), "gate")
			dir := filepath.Join(t.TempDir(), "store")
			if err := syscall.Mkfifo(gate, 0o600); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			s := &Store{opts: Options{
				Dir: dir, Scratch: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
				Context: c.ctx, OpenLimit: c.limit, Retention: 2 * time.Hour, Library: slog.New(slog.DiscardHandler),
			}}
			s.library = func(at string, log *slog.Logger, o *tsdb.Options) (*tsdb.DB, error) {
				if at == dir { // blocks in the kernel until there is a writer
					f, err := os.Open(gate)
					if err != nil {
						return nil, err
					}
					defer f.Close()
				}
				return openLibrary(at, log, o)
			}
			if err := s.Begin(); err != nil {
				t.Fatal(err)
			}
			if degraded, _ := s.State(); !degraded || !strings.HasPrefix(s.dir, s.opts.Scratch) {
				t.Errorf("degraded %v, in %s", degraded, s.dir)
			}
			if l := log.String(); strings.Count(l, "\n") != 1 ||
				!strings.Contains(l, `reason="open alerting store `+dir+`: `+c.want+`"`) {
				t.Errorf("log:\n%s", l)
			}
			if s.LeaveMemory(time.Unix(0, 0)) {
				t.Error("moved to a directory that hangs")
			}

			f, err := os.OpenFile(gate, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			for s.late.Pending() {
				runtime.Gosched()
			}
			must(t, f.Close())
			if _, err := os.Lstat(dir + "/lock"); err == nil {
				t.Error("the late database is still open")
			}
			s.library, log = openLibrary, bytes.Buffer{}
			if !s.LeaveMemory(time.Unix(60, 0)) || s.dir != dir {
				t.Errorf("in %s:\n%s", s.dir, &log)
			}
			if _, err := os.Stat(dir + asideSuffix + "/wal"); err != nil {
				t.Errorf("not set aside: %v", err)
			}
			must(t, s.Close())
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
