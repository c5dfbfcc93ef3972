package alerting_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/alerting/store"
)

// treeOf returns the content of a directory: type, mode and a digest of each entry.
func treeOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := e.Info()
		if err != nil {
			return err
		}
		text := st.Mode().String()
		if st.Mode().IsRegular() {
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %x", sha256.Sum256(b))
		}
		out[strings.TrimPrefix(name, dir)] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func fifo(t *testing.T, name string) {
	t.Helper()
	remove(t, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o750), syscall.Mkfifo(name, 0o640)); err != nil {
		t.Fatal(err)
	}
}

// TestFIFOInStore: an open of a FIFO waits for its writer. One in place of any file of the store does not stop the
// start: the history is in memory, pending times continue, and nothing in the directory changes until it is removed.
func TestFIFOInStore(t *testing.T) {
	before := filepath.Join(t.TempDir(), "store")
	known, end := longRun(t, before)
	blocks, err := filepath.Glob(before + "/01*")
	if err != nil || len(blocks) == 0 {
		t.Fatal(blocks, err)
	}
	block := filepath.Base(blocks[0])
	for _, at := range []string{
		"wal/00000000", "wal/00000099", "wal/checkpoint.00000001/00000000", "chunks_head/000001", "lock",
		block + "/meta.json", block + "/index", block + "/chunks/000001", block + "/tombstones", "FIFO",
	} {
		t.Run(at, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "alerting", "store")
			if err := os.CopyFS(dir, os.DirFS(before)); err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(dir, at)
			fifo(t, name)
			before := treeOf(t, filepath.Dir(dir))
			e, log := lasting(t, dir, known...)
			evaluateRound(t, e, end+15*time.Second, alerting.StatePending)
			evaluateRound(t, e, end+45*time.Second, alerting.StateFiring) // 90 s before, 30 s in this run
			if !e.Stats().Degraded {
				t.Error("not degraded")
			}
			want := `level=WARN msg="alerting store is in memory and starts empty, trying the state directory again every ` +
				`minute: rules that look back are evaluated once enough history has been collected" dir=` +
				`DIR reason="open alerting store ` + dir + `: store not touched: ` + name +
				` is a FIFO, not a regular file: remove it"` + "\n"
			if got := withoutPlace(log.String()); got != want {
				t.Errorf("log:\n%s, want\n%s", got, want)
			}
			if got := treeOf(t, filepath.Dir(dir)); !maps.Equal(got, before) {
				t.Errorf("changed:\n%v, was\n%v", got, before)
			}

			remove(t, name)
			before = treeOf(t, dir)
			evaluateRound(t, e, end+2*time.Minute, alerting.StateFiring)
			if e.Stats().Degraded {
				t.Errorf("still in memory:\n%s", log)
			}
			closeEngine(t, e)
			if got := treeOf(t, dir+".broken"); !maps.Equal(got, before) {
				t.Errorf("set aside:\n%v, was\n%v", got, before)
			}
		})
	}
}

// withoutPlace returns a log without times, and without the name of the temporary directory.
func withoutPlace(log string) string {
	var out string
	for line := range strings.Lines(log) {
		_, line, _ = strings.Cut(line, " ")
		if before, after, ok := strings.Cut(line, " dir="); ok {
			_, after, _ = strings.Cut(after, " ")
			line = before + " dir=DIR " + after
		}
		out += line
	}
	return out
}

func evaluateRound(t *testing.T, e *alerting.Engine, now time.Duration, want alerting.State) {
	t.Helper()
	stepTo(t, e, timeAt(now), gauge("state", 1, "device", "mlx5_0"))
	if a := e.Alerts(); len(a) != 1 || a[0].State != want {
		t.Errorf("%s after the start: %+v, want %s", now, a, want)
	}
}

// TestFIFOWithoutScratch: an engine without a temporary directory returns the reason.
func TestFIFOWithoutScratch(t *testing.T) {
	dir := t.TempDir()
	fifo(t, dir+"/wal/00000000")
	_, err := alerting.New(alerting.Options{Dir: dir, Instance: instance, Logger: slog.New(slog.DiscardHandler)})
	want := "alerting store unavailable: open alerting store " + dir + ": store not touched: " + dir +
		"/wal/00000000 is a FIFO, not a regular file: remove it"
	if !errors.Is(err, store.ErrUnavailable) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
