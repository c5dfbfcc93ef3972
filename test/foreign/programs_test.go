package foreign_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/cli"
	"rdma_exporter/test/machines"
	"rdma_exporter/test/ras"
)

// ofDaemon are texts of a report that stay as they are, with the reason.
var ofDaemon = map[string]string{
	"daemon.Exporter":            "another version is refused",
	"daemon.Replay":              "a replay is refused",
	"daemon.Verdict":             "a word",
	"daemon.Findings[].Severity": "a word",
	"daemon.Findings[].Drain":    "a word",
	"daemon.Findings[].State":    "a word",
	"daemon.Findings[].Diagnose": "a command of the exporter that was asked; its texts are scanned where it makes them",
}

// TestDaemon: nothing that another exporter answers is obeyed by a terminal or a shell.
func TestDaemon(t *testing.T) {
	m := newMarks()
	out, _ := m.run(t, "--replay="+machines.Fixture("job-port-down"), "check", "--json")
	var r check.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	m = newMarks()
	m.fillAll(reflect.ValueOf(&r).Elem(), "daemon", ofDaemon)
	r.Replay, r.Time = "", time.Now()
	answers := map[string]http.HandlerFunc{
		"a report": func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(r) },
		"no JSON":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, m.payload("no JSON")) },
		"a field":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"version": %q}`, m.payload("a field")) },
		"a status": func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			fmt.Fprintf(c, "HTTP/1.1 500 %s\x1b[8m\a\u202e\u009b\r\n\r\n", m.printable("status"))
		},
	}
	for name, answer := range answers {
		s := httptest.NewServer(answer)
		for _, args := range []string{
			"check", "check --verbose", "check --short", "check --json", "check --drain", "check --drain --json",
		} {
			line := strings.Fields(args + " --daemon-timeout=1m --daemon=" + s.URL)
			out, errs := m.run(t, append([]string{"--state.dir=" + t.TempDir()}, line...)...)
			m.scanOutput(t, name+": "+args, out)
			m.scan(t, name+": "+args+", errors", errs)
		}
		s.Close()
	}
	for _, name := range []string{
		"daemon.Host", "daemon.Findings[].Summary", "daemon.Findings[].Description", "daemon.Findings[].Evidence[].Value",
		"daemon.Findings[].Action", "daemon.Findings[].Labels[]", "daemon.NotEvaluated[].Reason", "status",
	} {
		if !m.seen[name] {
			t.Errorf("%s: not shown (%v)", name, m.names)
		}
	}
}

// TestRAS: nothing that NCCL's RAS service answers is obeyed by a terminal.
func TestRAS(t *testing.T) {
	m := newMarks()
	dir := machines.Tree(t, "hgx-h200-roce")
	for _, file := range []string{
		"v2.30.7-hang.json", "v2.28.7-hang.json", "v2.26.2-error.txt", "v2.24.3-dead.txt", "v2.28.9-recorded-hang.txt",
	} {
		text, err := os.ReadFile(filepath.Join("../../internal/nccl/testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(m.payload(file))
		if err != nil {
			t.Fatal(err)
		}
		answer := ofJSON.ReplaceAllLiteralString(string(text), ": "+string(b))
		if strings.HasSuffix(file, ".txt") {
			evil := " " + m.printable(file) + "\x1b[8m\a\u202e\u009b1m\r"
			answer = ofText.ReplaceAllStringFunc(string(text), func(s string) string { return s + evil })
		}
		at := ras.Answering(t, answer)
		for _, args := range []string{"job", "job --json", "job --raw"} {
			out, errs := runOn(t, cli.Outside{}, append([]string{"--path.rootfs=" + dir, "--state.dir=" + t.TempDir()},
				strings.Fields(args+" --nccl-ras="+at)...)...)
			m.scanOutput(t, file+": "+args, out)
			m.scan(t, file+": "+args+", errors", errs)
		}
		if !m.seen[file] {
			t.Errorf("%s: nothing of it is shown", file)
		}
	}
}

// ofJSON matches texts of an answer, other than the version, which has digits.
var ofJSON = regexp.MustCompile(`: "(?:10\.|0x|[A-Za-z])[^"]*"`)

// ofText matches the places of an answer in text at which something else than a number stands.
var ofText = regexp.MustCompile(`on node \S+|reported [A-Z]\w+ \w+`)
