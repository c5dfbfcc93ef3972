package cli

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"rdma_exporter/internal/command"
	"rdma_exporter/test/machines"
)

// TestHealthy asks servers of all kinds.
func TestHealthy(t *testing.T) {
	s := startProgram(t, "--replay="+machines.Fixture("no-rdma"), "--web.route-prefix=/rdma")
	for path, want := range map[string]int{"/rdma": command.OK, "/rdma/": command.OK, "": command.Failed} {
		if code, out, errs := runProgram(t, "healthy", "--url="+s.url+path); code != want {
			t.Errorf("%q: exit %d, %s%s", path, code, out, errs)
		}
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/-/healthy" {
				w.WriteHeader(code)
			}
		}
	}
	certified := func(s *httptest.Server) { s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}; s.StartTLS() }
	for name, tc := range map[string]struct {
		start   func(*httptest.Server)
		handler http.HandlerFunc
		args    []string
		code    int
		want    string
	}{
		"well":                  {(*httptest.Server).Start, status(200), nil, command.OK, ": healthy\n"},
		"TLS":                   {(*httptest.Server).StartTLS, status(200), nil, command.OK, ": healthy\n"},
		"password":              {(*httptest.Server).Start, status(401), nil, command.OK, "requires a password"},
		"certificate":           {certified, status(200), nil, command.OK, "requires a client certificate"},
		"failing":               {(*httptest.Server).Start, status(500), nil, command.Failed, "HTTP status 500"},
		"elsewhere":             {(*httptest.Server).Start, http.RedirectHandler("/", http.StatusFound).ServeHTTP, nil, command.Failed, "HTTP status 302"},
		"not ready":             {(*httptest.Server).Start, http.NotFound, []string{"--ready"}, command.Failed, "/-/ready: HTTP status 404"},
		"hangs":                 {(*httptest.Server).Start, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, []string{"--timeout=50ms"}, command.Failed, "deadline exceeded"},
		"TLS where it has none": {(*httptest.Server).Start, status(200), []string{"--url=https"}, command.OK, ": healthy\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewUnstartedServer(tc.handler)
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			tc.start(s)
			defer s.Close()
			u := s.URL
			if len(tc.args) > 0 && tc.args[0] == "--url=https" {
				u, tc.args = strings.Replace(u, "http:", "https:", 1), nil
			}
			code, out, errs := runProgram(t, append([]string{"healthy", "--url=" + u}, tc.args...)...)
			if code != tc.code || !strings.Contains(out+errs, tc.want) {
				t.Errorf("exit %d, %s%s", code, out, errs)
			}
		})
	}
}
