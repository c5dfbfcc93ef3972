package operate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
			s, _, err := parseServed(strings.Fields(args))
			if err != nil {
				if want != "!serves nothing" {
					t.Error(err)
				}
				return
			}
			u, err := s.URL()
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
