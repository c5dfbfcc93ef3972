package serve

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/alone"
	"rdma_exporter/test/locked"
)

// diskFaults make writes below a directory fail, until what they return is called.
var diskFaults = map[string]func(t *testing.T, dir string) (mend func()){
	"full": func(t *testing.T, _ string) func() { return noFiles(t) },
	"directory gone": func(t *testing.T, dir string) func() {
		must(t, os.Rename(dir, dir+".aside"))
		return func() { must(t, os.Rename(dir+".aside", dir)) }
	},
	"something in the way": func(t *testing.T, dir string) func() {
		way := filepath.Join(dir, "state.v1.json.tmp/x")
		must(t, os.MkdirAll(way, 0o700))
		return func() { must(t, os.RemoveAll(filepath.Dir(way))) }
	},
}

// noFiles makes each write to a file of this process fail, as on a disk that is full (EFBIG in the place of ENOSPC):
// for tests that run alone.
func noFiles(t *testing.T) (mend func()) {
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 0, Max: limit.Max}))
	return func() { must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)) }
}

// TestStateThatCannotBeWritten: it is reported while it lasts, logged when it starts and when it ends, and written once
// it can be.
func TestStateThatCannotBeWritten(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	for name, fault := range diskFaults {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			synctest.Test(t, func(t *testing.T) {
				log := &locked.Buffer{}
				logger := slog.New(slog.NewTextHandler(log, nil))
				k := &keeper{
					memory: expect.NewMemory(expect.Data{}), planned: newPlanned(dir, nil, logger),
					file: stateFile(dir, logger), log: logger,
				}
				_, err := k.file.Open()
				must(t, err)
				ctx, stop := context.WithCancel(t.Context())
				defer func() { stop(); k.close() }()
				k.start(ctx)
				written := func() time.Time { s, _ := k.current(); return s.At }
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
					if s, known := k.current(); !known || !s.Failed || !s.At.Equal(first) {
						t.Errorf("while it lasts: %+v", s)
					}
					time.Sleep(time.Minute)
				}
				mend()
				time.Sleep(2 * stateRetry)
				if s, _ := k.current(); s.Failed || !s.At.After(first) {
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

// TestAlertsThatCannotBeWritten: the same of the file of alerts.
func TestAlertsThatCannotBeWritten(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	for name, fault := range diskFaults {
		t.Run(name, func(t *testing.T) {
			dir, log := filepath.Join(t.TempDir(), "alerting"), &locked.Buffer{}
			a := openAlertMemory(t.Context(), dir, slog.New(slog.NewTextHandler(log, nil)))
			begin := time.Unix(1_700_000_000, 0)
			round := func(n int) {
				a.save([]alerting.Active{
					{Labels: map[string]string{"alertname": "A"}, ActiveAt: begin, SeenAt: begin.Add(time.Duration(n) * time.Minute)},
				})
			}
			round(0)
			mend := fault(t, dir)
			for n := 1; n < 6; n++ {
				round(n)
			}
			mend()
			var kept []alerting.Active
			if must(t, state.Read(t.Context(), dir, &kept)); len(kept) != 1 || !kept[0].SeenAt.Equal(begin) {
				t.Errorf("meanwhile: %+v", kept)
			}
			round(6)
			if must(t, state.Read(t.Context(), dir, &kept)); !kept[0].SeenAt.Equal(begin.Add(6 * time.Minute)) {
				t.Errorf("afterwards: %+v", kept)
			}
			a.close()
			if l := log.String(); strings.Count(l, "\n") != 2 || !strings.Contains(l, "cannot write alert state") ||
				!strings.Contains(l, "writing alert state works again") {
				t.Errorf("log:\n%s", l)
			}
		})
	}
}
