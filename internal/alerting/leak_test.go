package alerting_test

import (
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/fstest"
	"time"

	"rdma_exporter/internal/alerting"
)

// held counts what a process has that has to be given back.
func held(t *testing.T) (goroutines, files int) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return runtime.NumGoroutine(), len(open)
}

// TestNothingLeaks: two hours with all that happens in them, several times over, leave no goroutine and no file behind, and a run in which
// time goes on has no more of them than one that begins.
func TestNothingLeaks(t *testing.T) {
	down := gauge("state", 1, "device", "mlx5_0")
	life := func() {
		am := receive(t)
		file, dir := filepath.Join(t.TempDir(), "am.yml"), filepath.Join(t.TempDir(), "store")
		write(t, file, "basic_auth: {username: a, password: x}\n")
		n, err := alerting.NewNotifier(alerting.NotifierOptions{URLs: []string{am.URL}, HTTPFile: file})
		if err != nil {
			t.Fatal(err)
		}
		files := fstest.MapFS{"r.yml": {Data: []byte(downRule)}}
		e, err := alerting.New(alerting.Options{Dir: dir, Scratch: t.TempDir(), Instance: instance, Notifier: n, Rules: files, Files: []string{"r.yml"}})
		if err != nil {
			t.Fatal(err)
		}
		now := at(0)
		rounds := func(n int) {
			for range n {
				now = now.Add(15 * time.Second)
				step(t, e, now, down)
			}
		}
		rounds(60)
		goroutines, open := held(t)
		rounds(420) // blocks are written, and go
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
		for range 3 { // the clock goes back
			now = now.Add(-time.Hour)
			rounds(4)
		}
		am.answer(http.StatusInternalServerError)
		rounds(10)
		// Two files a block; and of each of three clients a connection that waits for another request, which both ends have here.
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
