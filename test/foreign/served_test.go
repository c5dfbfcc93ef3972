package foreign_test

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	toolkit "github.com/prometheus/exporter-toolkit/web"

	"rdma_exporter/internal/cli"
	"rdma_exporter/internal/web"
	"rdma_exporter/test/locked"
)

// served scans all that serve answers, logs and sends to Alertmanagers.
func (m *marks) served(t *testing.T, file string) {
	sent := make(chan string, 1000)
	takes := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		sent <- string(b)
	}))
	defer takes.Close()
	rejects := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, m.payload("answer of Alertmanager"), http.StatusBadRequest)
	}))
	defer rejects.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	handler, ended := make(chan *web.Handler, 1), make(chan struct{})
	var log locked.Buffer
	go func() {
		defer close(ended)
		code := cli.RunOn(ctx, cli.Outside{Host: m.around, Serve: func(
			ctx context.Context, h *web.Handler, _ *toolkit.FlagConfig, _ *slog.Logger, begin func(),
		) (int, error) {
			begin()
			handler <- h
			<-ctx.Done()
			return 0, nil
		}}, []string{
			"--replay=" + file, "--state.dir=" + t.TempDir(), "--log.format=json", "--replay.send-alerts",
			"--alerting.alertmanager-url=" + takes.URL, "--alerting.alertmanager-url=" + rejects.URL,
		}, io.Discard, &log)
		if code != 0 {
			t.Errorf("exit code %d: %s", code, log.String())
		}
	}()
	var h *web.Handler
	select {
	case h = <-handler:
	case <-ended:
		return
	}
	for first := true; first; {
		select {
		case text := <-sent:
			first = false
			m.scanJSON(t, "alert", text)
		case <-ended:
			return
		}
	}
	for _, path := range slices.Sorted(maps.Keys(h.Page.Views)) {
		m.ask(t, h, strings.ReplaceAll("/"+path, "{$}", ""))
	}
	for _, path := range []string{"/metrics", "/api/v1/alerts", "/api/v1/rules", "/api/v1/findings", "/-/ready"} {
		m.ask(t, h, path)
	}
	stop()
	<-ended
	for line := range strings.Lines(log.String()) {
		m.scanJSON(t, "log", line)
	}
	close(sent)
	for text := range sent {
		m.scanJSON(t, "alert", text)
	}
}

func (m *marks) ask(t *testing.T, h http.Handler, path string) {
	t.Helper()
	if strings.Contains(path, "{") {
		return // runbooks: the program's own text
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	body := w.Body.String()
	switch kind := w.Header().Get("Content-Type"); {
	case w.Code != http.StatusOK:
		t.Errorf("%s: %d %s", path, w.Code, body)
	case strings.Contains(kind, "html"):
		m.scanHTML(t, path, body)
	case strings.Contains(kind, "json"):
		m.scanJSON(t, path, body)
	default:
		m.scan(t, path, body)
	}
	for name, values := range w.Header() {
		m.scan(t, path+" header "+name, strings.Join(values, " "))
	}
}
