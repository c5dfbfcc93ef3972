package alerting_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/alerting/notify"
)

// held counts the resources of the process.
func held(t *testing.T) (goroutines, files int) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return runtime.NumGoroutine(), len(open)
}

// TestNothingLeaks: two hours of all events, repeated, leave no goroutine and no file, and a long run has no more of
// them than a new one.
func TestNothingLeaks(t *testing.T) {
	down := gauge("state", 1, "device", "mlx5_0")
	life := func() {
		var status atomic.Int64
		status.Store(http.StatusOK)
		am := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(int(status.Load()))
		}))
		file, dir := filepath.Join(t.TempDir(), "am.yml"), filepath.Join(t.TempDir(), "store")
		write(t, file, "basic_auth: {username: a, password: x}\n")
		n, err := notify.New(notify.Options{URLs: []string{am.URL}, HTTPFile: file})
		if err != nil {
			t.Fatal(err)
		}
		files := fstest.MapFS{"r.yml": {Data: []byte(downRule)}}
		e, err := alerting.New(alerting.Options{
			Dir: dir, Scratch: t.TempDir(), Instance: instance, Notifier: n, Rules: files, Files: []string{"r.yml"},
		})
		if err != nil {
			t.Fatal(err)
		}
		now := timeAt(0)
		rounds := func(n int) {
			for range n {
				now = now.Add(15 * time.Second)
				stepTo(t, e, now, down)
			}
		}
		rounds(60)
		goroutines, open := held(t)
		rounds(420) // blocks are written and removed
		for _, user := range []string{"b", "c"} {
			write(t, file, "basic_auth: {username: "+user+", password: x}\n")
			applyNotifier, err := n.Prepare()
			if err != nil {
				t.Fatal(err)
			}
			applyRules, err := e.Prepare(files, []string{"r.yml"})
			if err != nil {
				t.Fatal(err)
			}
			applyNotifier()
			applyRules()
		}
		for range 3 { // the clock is set back
			now = now.Add(-time.Hour)
			rounds(4)
		}
		status.Store(http.StatusInternalServerError)
		rounds(10)
		// Two files per block; and for each of three clients an idle connection, with both ends in this process.
		const blocks, connections = 4 * 2, 3
		if g, f := held(t); g > goroutines+connections*5 || f > open+blocks+connections*2 {
			t.Errorf("later there are %d goroutines and %d files, at first there were %d and %d", g, f, goroutines, open)
		}
		n.Close()
		closeEngine(t, e)
		am.CloseClientConnections()
		am.Close()
	}
	life()
	goroutines, files := held(t)
	for range 3 {
		life()
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		g, f := held(t)
		if g <= goroutines && f <= files {
			return
		}
		if time.Now().After(end) {
			all := make([]byte, 1<<20)
			t.Fatalf("%d goroutines and %d files, before %d and %d\n%s", g, f, goroutines, files, all[:runtime.Stack(all, true)])
		}
	}
}
