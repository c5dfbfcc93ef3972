package check

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/verdict"
)

// TestSourceWithoutDaemonFlag: the exporter of this host is used if its answer is usable. Otherwise this host is
// evaluated, and the report says so.
func TestSourceWithoutDaemonFlag(t *testing.T) {
	served := check.Report{Version: check.Version, Exporter: verdict.Build(), Host: "served:10879", Time: time.Now()}
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(served)
	}))
	defer good.Close()
	bad := httptest.NewServer(http.NotFoundHandler())
	defer bad.Close()
	none := httptest.NewServer(http.NotFoundHandler())
	none.Close()
	reason := "query exporter " + bad.URL + "/api/v1/findings: HTTP status 404 Not Found"
	for name, c := range map[string]struct {
		url    string
		args   []string
		want   check.Source
		warned string
	}{
		"usable":      {good.URL, nil, check.Source{Kind: check.SourceLocalDaemon, URL: good.URL}, ""},
		"not usable":  {bad.URL, nil, check.Source{Kind: check.SourceOneOff, Reason: reason}, reason},
		"not running": {none.URL, nil, check.Source{Kind: check.SourceOneOff}, ""},
		"not wanted":  {good.URL, []string{"--no-daemon"}, check.Source{Kind: check.SourceOneOff}, ""},
		"a replay":    {good.URL, []string{"--replay=demo"}, check.Source{Kind: check.SourceReplay}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var m machine.Config
			var k Config
			app := kingpin.New("test", "")
			m.Flags(app)
			k.Flags(app.Command("check", ""))
			args := append([]string{"check", "--state.dir=" + t.TempDir(), "--daemon-timeout=1m"}, c.args...)
			if _, err := app.Parse(args); err != nil {
				t.Fatal(err)
			}
			k.daemonURL = c.url // in place of the address of this host
			if err := k.Check(&m); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			r, err := k.Findings(t.Context(), &m, &log, slog.New(slog.NewTextHandler(&log, nil)))
			isServed := c.want.Kind == check.SourceLocalDaemon
			if err != nil || *r.Source != c.want || (r.Host == served.Host) != isServed {
				t.Errorf("%s, %+v, %v\nwant %+v", r.Host, r.Source, err, c.want)
			}
			if got := strings.Contains(log.String(), "cannot use the running exporter"); got != (c.warned != "") ||
				!strings.Contains(log.String(), c.warned) {
				t.Errorf("log: %s", &log)
			}
		})
	}
}
