package app

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHealthy asks servers of all kinds.
func TestHealthy(t *testing.T) {
	s := serve(t, "--replay="+fixture("no-rdma"), "--web.route-prefix=/rdma")
	for path, want := range map[string]int{"/rdma": exitOK, "/rdma/": exitOK, "": exitUnhealthy} {
		if code, out, errs := command(t, "healthy", "--url="+s.url+path); code != want {
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
		"well":                  {(*httptest.Server).Start, status(200), nil, exitOK, ": healthy\n"},
		"TLS":                   {(*httptest.Server).StartTLS, status(200), nil, exitOK, ": healthy\n"},
		"password":              {(*httptest.Server).Start, status(401), nil, exitOK, "requires a password"},
		"certificate":           {certified, status(200), nil, exitOK, "requires a client certificate"},
		"failing":               {(*httptest.Server).Start, status(500), nil, exitUnhealthy, "HTTP status 500"},
		"elsewhere":             {(*httptest.Server).Start, http.RedirectHandler("/", http.StatusFound).ServeHTTP, nil, exitUnhealthy, "HTTP status 302"},
		"not ready":             {(*httptest.Server).Start, http.NotFound, []string{"--ready"}, exitUnhealthy, "/-/ready: HTTP status 404"},
		"hangs":                 {(*httptest.Server).Start, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, []string{"--timeout=50ms"}, exitUnhealthy, "deadline exceeded"},
		"TLS where it has none": {(*httptest.Server).Start, status(200), []string{"--url=https"}, exitOK, ": healthy\n"},
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
			code, out, errs := command(t, append([]string{"healthy", "--url=" + u}, tc.args...)...)
			if code != tc.code || !strings.Contains(out+errs, tc.want) {
				t.Errorf("exit %d, %s%s", code, out, errs)
			}
		})
	}
}

// TestHealthyFinds: where an exporter is, by its command line.
func TestHealthyFinds(t *testing.T) {
	web := filepath.Join(t.TempDir(), "web.yml")
	must(t, os.WriteFile(web, nil, 0o644))
	for args, want := range map[string]string{
		"":                                "http://127.0.0.1:10879/",
		"serve --web.listen-address=:9":   "http://127.0.0.1:9/",
		"--web.listen-address=0.0.0.0:9":  "http://127.0.0.1:9/",
		"--web.listen-address=[::]:9":     "http://[::1]:9/",
		"--web.listen-address=10.0.0.1:9": "http://10.0.0.1:9/",
		"--web.listen-address localhost:9 --replay demo":      "http://localhost:9/",
		"--web.route-prefix=rdma/":                            "http://127.0.0.1:10879/rdma",
		"--web.external-url=https://h/rdma/":                  "http://127.0.0.1:10879/rdma",
		"--web.config.file=" + web:                            "https://127.0.0.1:10879/",
		"--web.systemd-socket":                                "!the running exporter uses a systemd socket: set --url",
		"--web.listen-address=127.0.0.1:0":                    "!the running exporter listens on 127.0.0.1:0: set --url",
		"fabric --fabric.device mlx5_0 --web.route-prefix=ib": "http://127.0.0.1:10880/ib",
		"check":                "!serves nothing",
		"--help":               "!serves nothing",
		"--web.max-requests=0": "!serves nothing",
	} {
		t.Run("rdma_exporter "+strings.ReplaceAll(args, web, "web.yml"), func(t *testing.T) {
			s, _, err := served(strings.Fields(args))
			if err != nil {
				if want != "!serves nothing" {
					t.Error(err)
				}
				return
			}
			u, err := s.ownURL()
			got := fmt.Sprint(u)
			if err != nil {
				got = "!" + err.Error()
			}
			if got != want {
				t.Errorf("%s, not %s", got, want)
			}
		})
	}
}
