//go:build soak

package soak

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"

	"rdma_exporter/internal/cli"
	"rdma_exporter/internal/web"
	"rdma_exporter/test/process"
)

const (
	scrapeInterval = 15 * time.Second
	// the store writes a block between samples, so that each sample has the same phase.
	sampleEach = int(30 * time.Minute / scrapeInterval)
)

var dayFigures = []figure{
	{"heap after GC, MiB", 1 << 20, 1 << 18},
	{"resident memory, MiB", 1 << 20, 4 << 20},
	{"descriptors", 1, 1},
	{"goroutines", 1, 1},
	{"state directory, MiB", 1 << 20, 1 << 20},
}

// TestDay: the whole program runs through 24 hours in minutes, with a fake clock; files, rules, store and responses are
// real. Clients use no sockets, since a fake clock stands still while a goroutine waits for the network.
func TestDay(t *testing.T) {
	n := newNode(t, *recording)
	// Too long for a socket name: its listener would block the clock as well.
	state := filepath.Join(t.TempDir(), strings.Repeat("long/", 25))
	began := time.Now()
	var samples []sample
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		handlers, ended := make(chan http.Handler, 1), make(chan int, 1)
		var log bytes.Buffer
		go func() {
			ended <- cli.RunOn(ctx, cli.Outside{
				Serve: func(
					ctx context.Context, h *web.Handler, _ *toolkit.FlagConfig, _ *slog.Logger, begin func(),
				) (int, error) {
					begin()
					handlers <- h
					<-ctx.Done()
					return 0, nil
				},
			}, []string{"serve", "--path.rootfs=" + n.dir, "--state.dir=" +
				state, "--config.file=" + *config, "--web.enable-lifecycle", "--log.level=error"}, &log, &log)
		}()
		var h http.Handler
		select {
		case h = <-handlers:
		case code := <-ended:
			t.Fatalf("exit code %d: %s", code, &log)
		}
		time.Sleep(time.Second)
		start, series := time.Now(), 0
		for round := range int(*day / scrapeInterval) {
			n.live(t)
			time.Sleep(scrapeInterval)
			body := ask(t, h, "GET", "/metrics")
			if round == 0 {
				series = seriesOf(body)
			}
			if n.step%cycle != 0 {
				continue
			}
			for _, path := range []string{"/", "/api/v1/alerts", "/api/v1/findings"} { // an open page
				ask(t, h, "GET", path)
			}
			if n.step%sampleEach == 0 {
				ask(t, h, "POST", "/-/reload")
				samples = append(samples, sample{time.Since(start), own(t, state)})
			}
		}
		time.Sleep(2 * time.Minute) // until facts are read again
		if got := seriesOf(ask(t, h, "GET", "/metrics")); got != series {
			t.Errorf("%d series at the end, %d at first", got, series)
		}
		stop()
		if code := <-ended; code != 0 || log.Len() > 0 {
			t.Errorf("exit code %d: %s", code, &log)
		}
	})
	table, grown := check(dayFigures, samples)
	t.Logf("%s of rounds, scrapes and rules each %s on %s, in %s:\n%s",
		*day, scrapeInterval, filepath.Base(*recording), time.Since(began).Round(time.Second), table)
	for _, g := range grown {
		t.Error(g)
	}
}

// own returns the figures of this process.
func own(t *testing.T, state string) []float64 {
	t.Helper()
	runtime.GC()
	runtime.GC() // finalised by the first one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	memory, err := process.Resident(os.Getpid())
	must(t, err)
	files, err := process.Files(os.Getpid())
	must(t, err)
	var size int64
	must(t, filepath.WalkDir(state, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	}))
	return []float64{
		float64(m.HeapAlloc), float64(memory.All), float64(files), float64(runtime.NumGoroutine()), float64(size),
	}
}

func ask(t *testing.T, h http.Handler, method, path string) []byte {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return w.Body.Bytes()
}

// seriesOf counts the samples of an exposition, without those about the exporter.
func seriesOf(body []byte) (n int) {
	for line := range bytes.Lines(body) {
		if bytes.HasPrefix(line, []byte("rdma_port_")) || bytes.HasPrefix(line, []byte("rdma_device_")) {
			n++
		}
	}
	return n
}
