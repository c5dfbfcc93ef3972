package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/verdict"
)

// listener returns a host where a user listens on the exporter's port.
func listener(t *testing.T, uid int) rooted.Paths {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"sys/x": "", "proc/net/tcp6": "", "proc/net/tcp": fmt.Sprintf(
			"   0: 0100007F:2A7F 00000000:0000 0A 00000000:00000000 00:00000000 00000000 %5d        0 1 1 0 100 0 0 10 0\n", uid),
	} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755),
			os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return rooted.Paths{RootFS: dir}
}

// TestSourceWithoutDaemonFlag: the exporter of this host is used if its answer is usable and it belongs to a service.
// Otherwise this host is evaluated, and the report says so. With --daemon the user has named the exporter.
func TestSourceWithoutDaemonFlag(t *testing.T) {
	const service, root = 998, 0
	user := 1000
	if user == os.Geteuid() {
		user++
	}
	untrusted := fmt.Sprintf("not trusted: the listener on port 10879 belongs to user %d; "+
		"set --daemon if that is the exporter", user)
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
		uid    int // of the listener
		args   []string
		want   check.Source
		warned string
	}{
		"usable":                 {good.URL, root, nil, check.Source{Kind: check.SourceLocalDaemon, URL: good.URL}, ""},
		"of a service":           {good.URL, service, nil, check.Source{Kind: check.SourceLocalDaemon, URL: good.URL}, ""},
		"of this user":           {good.URL, os.Geteuid(), nil, check.Source{Kind: check.SourceLocalDaemon, URL: good.URL}, ""},
		"of another user":        {good.URL, user, nil, check.Source{Kind: check.SourceOneOff, Reason: untrusted}, untrusted},
		"named, of another user": {good.URL, user, []string{"--daemon=" + good.URL}, check.Source{Kind: check.SourceDaemon, URL: good.URL}, ""},
		"not usable":             {bad.URL, root, nil, check.Source{Kind: check.SourceOneOff, Reason: reason}, reason},
		"not running":            {none.URL, user, nil, check.Source{Kind: check.SourceOneOff}, ""},
		"not wanted":             {good.URL, root, []string{"--no-daemon"}, check.Source{Kind: check.SourceOneOff}, ""},
		"a replay":               {good.URL, root, []string{"--replay=demo"}, check.Source{Kind: check.SourceReplay}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var m machine.Config
			var k Check
			app := kingpin.New("test", "")
			m.Flags(app)
			k.Flags(app.Command("check", ""))
			args := append([]string{"check", "--state.dir=" + t.TempDir(), "--daemon-timeout=1m"}, c.args...)
			if _, err := app.Parse(args); err != nil {
				t.Fatal(err)
			}
			k.daemonURL, k.listeners = c.url, listener(t, c.uid) // in place of those of this host
			if err := k.check(&m); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			r, err := k.findings(t.Context(), &m, &log, slog.New(slog.NewTextHandler(&log, nil)))
			isServed := c.want.Kind == check.SourceLocalDaemon || c.want.Kind == check.SourceDaemon
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
