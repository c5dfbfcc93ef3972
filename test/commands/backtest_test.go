package commands_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBacktestRefused: what cannot be done is said before anything is evaluated. internal/backtest and test/alerting
// test the rest.
func TestBacktestRefused(t *testing.T) {
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer x" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/series") {
			_, _ = w.Write([]byte(`{"status":"success","data":[]}`))
			return
		}
		_, _ = w.Write([]byte(`{"status":"success","data":{"storageRetention":"15d"}}`))
	}))
	defer empty.Close()
	config := filepath.Join(t.TempDir(), "http.yml")
	must(t, os.WriteFile(config, []byte("authorization: {credentials: x}\n"), 0o600))
	t.Setenv("TMPDIR", t.TempDir())
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--prometheus=localhost:9090"}, "--prometheus=localhost:9090: must be http://HOST:PORT"},
		{[]string{"--prometheus=http://127.0.0.1:1"}, "connection refused"},
		{[]string{"--prometheus=" + empty.URL}, "HTTP status 401"},
		{[]string{"--prometheus=" + empty.URL, "--prometheus.config-file=" + config, "--since=1d"}, "no series of rdma_exporter between "},
		{[]string{"--prometheus=" + empty.URL, "--prometheus.config-file=" + config, "--since=30d"}, "--since=30d: exceeds the retention of the Prometheus, 15d"},
		{[]string{"--prometheus=http://x", "--prometheus.config-file=/none"}, "--prometheus.config-file=/none: "},
		{[]string{"--prometheus=http://x", "--since=14"}, "--since=14: must be a duration"},
		{[]string{"--prometheus=http://x", "--step=10m"}, "--step=10m0s: must be from 15s to 2m"},
		{[]string{"--prometheus=http://x", "--until=yesterday"}, "--until=yesterday: must be a time"},
		{[]string{"--prometheus=http://x", "--only=RDMAPortDwon"}, "--only=RDMAPortDwon: unknown alert: did you mean RDMAPortDown"},
		{[]string{"--prometheus=http://x", "--tune.leave-out=RDMAPortDwon"}, "did you mean RDMAPortDown"},
		{[]string{"--prometheus=http://x", "--tune.leave-out=RDMAPortDown", "--only=RDMAPortDown"}, "--only=RDMAPortDown: unknown alert"},
	} {
		code, out, errs := runProgram(t, append([]string{"backtest"}, c.args...)...)
		if code != 2 || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit %d, %s%s", c.args, code, out, errs)
		}
	}
	if left, _ := filepath.Glob(os.Getenv("TMPDIR") + "/*"); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
