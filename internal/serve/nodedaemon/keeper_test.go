package nodedaemon

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/serve"
	"rdma_exporter/test/alone"
	"rdma_exporter/test/disk"
	"rdma_exporter/test/locked"
)

// TestStateThatCannotBeWritten: a write failure is reported while it lasts, and logged when it starts and when it ends;
// the state is written once that is possible.
func TestStateThatCannotBeWritten(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	for name, fault := range disk.Faults {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			synctest.Test(t, func(t *testing.T) {
				log := &locked.Buffer{}
				logger := slog.New(slog.NewTextHandler(log, nil))
				k := &keeper{
					memory: expect.NewMemory(expect.Data{}), planned: newPlanned(dir, nil, logger),
					file: newStateFile(dir, logger), log: logger,
				}
				_, err := k.file.Open()
				must(t, err)
				ctx, stop := context.WithCancel(t.Context())
				defer func() { stop(); k.close() }()
				k.start(ctx)
				written := func() time.Time { s, _ := k.lastWrite(); return s.At }
				change := func() { k.memory.Touch(); time.Sleep(2 * time.Second) }
				opened := written()
				change()
				first := written()
				if !first.After(opened) {
					t.Fatal("nothing is written")
				}
				mend := fault(t, dir)
				for range 5 {
					change()
					if s, known := k.lastWrite(); !known || !s.Failed || !s.At.Equal(first) {
						t.Errorf("while it lasts: %+v", s)
					}
					time.Sleep(time.Minute)
				}
				mend()
				time.Sleep(2 * serve.StateRetry)
				if s, _ := k.lastWrite(); s.Failed || !s.At.After(first) {
					t.Errorf("afterwards: %+v", s)
				}
				if l := log.String(); strings.Count(l, "\n") != 2 ||
					!strings.Contains(l, "cannot write the state file, known links and devices are lost at the next restart") ||
					!strings.Contains(l, "writing the state file works again") {
					t.Errorf("log:\n%s", l)
				}
			})
		})
	}
}
