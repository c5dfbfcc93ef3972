//go:build !race

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"rdma_exporter/test/machines"
)

// evil is what a device, an interface, a host or a program may call itself: it clears a terminal, goes back to the
// start of the line, turns the direction of what follows, opens a tag and ends a label.
const evil = "x\x1b[2J\r\u202e\u009b1m<b>\"'&"

// renamed writes a recorded machine in which names are evil, each with its own number.
func renamed(t *testing.T, name string, names ...string) string {
	t.Helper()
	var pairs []string
	for i, n := range names {
		pairs = append(pairs, n, fmt.Sprint(i)+evil)
	}
	with := strings.NewReplacer(pairs...)
	a := machines.Load(t, name)
	a.Meta.Hostname = with.Replace(a.Meta.Hostname)
	for _, r := range a.Rounds {
		for i, e := range r.Entries {
			e.Path, e.Target, e.Data = with.Replace(e.Path), with.Replace(e.Target), []byte(with.Replace(string(e.Data)))
			r.Entries[i] = e
		}
	}
	return machines.Written(t, a)
}

// obeyed returns the characters of a text that a terminal would interpret, other than line breaks.
func obeyed(text string) string {
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }); i >= 0 {
		return fmt.Sprintf("%q", text[max(0, i-40):min(len(text), i+20)])
	}
	return ""
}

// TestNothingIsObeyedOfReplays: what others have named reaches no terminal, log or alert but as text.
func TestNothingIsObeyedOfReplays(t *testing.T) {
	running := renamed(t, "gdr-staging-live", "mlx5_0", "enp24s0np0", "gpu-12", "python3")
	down := renamed(t, "port-down", "mlx5_5", "hgx-h200-07")
	modules := renamed(t, "optics-zoo", "mlx5_0")
	site := filepath.Join(t.TempDir(), "site.yml")
	must(t, os.WriteFile(site, []byte("ports:\n  - device: \"\\e[2J\\u202e\"\n    expected_ratio: 1\n"), 0o600))
	for _, c := range []struct {
		name, file string
		args       []string
		want       string // of what is shown
	}{
		{"topo", running, []string{"topo"}, "0x\u25a1[2J\u25a1\u25a1\u25a11m<b>\"'&"},
		{"topo, process", running, []string{"topo"}, "Process: 3x\u25a1[2J"}, // a program
		{"topo, host", running, []string{"topo"}, "2x\u25a1[2J"},             // the host
		{"optics, running", running, []string{"optics"}, "0x\u25a1[2J"},
		{"optics, modules", modules, []string{"optics"}, "0x\u25a1[2J"},
		{"inventory list", running, []string{"inventory", "list"}, "0x\u25a1[2J"},
		{"expect list", running, []string{"expect", "list"}, "1x\u25a1[2J"},
		{"check", down, []string{"check"}, "RDMAPortDown 0x\u25a1[2J\u25a1\u25a1\u25a11m<b>"},
		{"check --verbose", down, []string{"check", "--verbose"}, "RDMAPortDown"},
		{"check --json", down, []string{"check", "--json"}, "RDMAPortDown"},
		{"topo --json", down, []string{"topo", "--json"}, "0x\u25a1[2J"},
		{"check-config", down, []string{"check-config", site}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := c.args
			if args[0] != "check-config" {
				args = append([]string{"--replay=" + c.file}, args...)
			}
			_, out, errs := runProgram(t, args...)
			if !strings.Contains(out, c.want) {
				t.Errorf("%v: without %q:\n%s\n%s", c.args, c.want, out, errs)
			}
			if strings.Contains(out, `"host"`) { // JSON is not for a terminal, and escapes what is below 0x20
				out = ""
			}
			if bad := obeyed(out) + obeyed(errs); bad != "" {
				t.Errorf("%v: %s", c.args, bad)
			}
		})
	}
}

// TestNamesInOutputOfReplays: the page, the log, and alerts with everything that is served about them.
func TestNamesInOutputOfReplays(t *testing.T) {
	came := make(chan []byte, 100)
	am := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		came <- b
	}))
	defer am.Close()
	s := startProgram(t, "--replay="+renamed(t, "port-down", "mlx5_5", "hgx-h200-07"), "--replay.send-alerts",
		"--alerting.alertmanager-url="+am.URL)
	s.await(t, "/", "RDMAPortDown")
	for _, path := range []string{
		"/", "/metrics", "/api/v1/alerts", "/api/v1/rules", "/api/v1/findings", "/api/v1/node", "/api/v1/topology",
	} {
		status, body, h := s.get(t, path)
		bad := obeyed(strings.ReplaceAll(body, "\t", " "))
		if status != http.StatusOK || bad != "" {
			t.Errorf("%s: %d, %s", path, status, bad)
		}
		if path == "/" && (strings.Contains(body, "<b>") || !strings.Contains(body, "&lt;b&gt;")) {
			t.Error("a name is a tag of the page")
		}
		for name, values := range h {
			if strings.Contains(strings.Join(values, ""), "<b>") {
				t.Errorf("%s: header %s: %q", path, name, values)
			}
		}
	}
	if bad := obeyed(s.log.String()); bad != "" {
		t.Errorf("log: %s", bad)
	}
	type alert struct{ Labels, Annotations map[string]string }
	var answer struct{ Data struct{ Alerts []alert } }
	_, body, _ := s.get(t, "/api/v1/alerts")
	must(t, json.Unmarshal([]byte(body), &answer))
	var sent []alert
	for !strings.Contains(fmt.Sprint(sent), "RDMAPortDown") {
		var more []alert
		must(t, json.Unmarshal(<-came, &more))
		sent = append(sent, more...)
	}
	for where, alerts := range map[string][]alert{"served": answer.Data.Alerts, "sent": sent} {
		sent := false
		for _, a := range alerts {
			for name, value := range a.Labels {
				if obeyed(value) != "" || strings.Contains(value, "\n") {
					t.Errorf("%s: label %s=%q", a.Labels["alertname"], name, value)
				}
			}
			for name, value := range a.Annotations {
				if obeyed(value) != "" {
					t.Errorf("%s: %s=%q", a.Labels["alertname"], name, value)
				}
			}
			sent = sent || a.Labels["alertname"] == "RDMAPortDown" && strings.HasPrefix(a.Labels["device"], "0x")
		}
		if !sent {
			t.Errorf("%s: no alert of the device: %+v", where, alerts)
		}
	}
}
