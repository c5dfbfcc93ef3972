package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/test/machines"
)

// otherHost writes a recording of the same model of host, of which one port has no PFC and all another driver of GPUs.
func otherHost(t *testing.T) string {
	t.Helper()
	a := machines.Load(t, "hgx-h200-roce")
	a.Rounds = a.Rounds[:1]
	a.Meta.Hostname = "gpu-17"
	found := false
	for i := range a.Rounds[0].Entries {
		e := &a.Rounds[0].Entries[i]
		if strings.HasSuffix(e.Path, "/enp24s0np0/mtu") {
			e.Data, found = []byte("1500\n"), true
		}
	}
	if !found {
		t.Fatal("the recording has no MTU")
	}
	return machines.Written(t, a)
}

// TestCompare: two hosts are enough, whatever they are read from; a host that does not answer is said, and no other is
// taken for it.
func TestCompare(t *testing.T) {
	first, other := machines.Fixture("hgx-h200-roce"), otherHost(t)
	_, text, _ := runProgram(t, "check", "--setup", "--json", "--replay="+other)
	file := filepath.Join(t.TempDir(), "setup.json")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	bad := filepath.Join(t.TempDir(), "findings.json")
	must(t, os.WriteFile(bad, []byte(`{"version": 1, "host": "gpu-18"}`), 0o600))
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/prefix/api/v1/node" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(strings.ReplaceAll(text, "gpu-17", "gpu-19\\u001b[31m")))
	}))
	defer exporter.Close()
	for name, k := range map[string]struct {
		args []string
		code int
		want []string
		not  []string
	}{
		"a host and itself": {
			[]string{first, "--replay=" + first},
			0,
			[]string{"ok: 2 hosts alike in all settings that are known of them"},
			[]string{"SETTING"},
		},
		"a capture": {
			[]string{first, other},
			0,
			[]string{
				"ok: 1 setting of 2 hosts differ",
				"netdev_mtu (compute)\n  hgx-h200-07, gpu-17 (7): 9000\n  gpu-17 (enp24s0np0): 1500\n",
			},
			[]string{"Not comparable", "SETTING"},
		},
		"in a table": {
			[]string{first, machines.Fixture("inference-stacks")},
			1,
			[]string{"gpu_direct_mechanism (compute)  dmabuf       peermem\n", "warning: 3 settings of 2 hosts differ, 1 of them"},
			nil,
		},
		"check --setup --json": {[]string{first, file}, 0, []string{"gpu-17 (enp24s0np0): 1500"}, nil},
		"an exporter":          {[]string{first, exporter.URL + "/prefix"}, 0, []string{"gpu-19□[31m (7): 9000"}, []string{"\x1b"}},
		"four, as a list": {
			[]string{first, other, file, exporter.URL + "/prefix"},
			0,
			[]string{"netdev_mtu (compute)\n  4 hosts: 9000\n  3 hosts: 1500\n"},
			[]string{"SETTING"},
		},
		"no answer": {
			[]string{first, other, exporter.URL},
			3,
			[]string{"unknown: 1 setting of 2 hosts differ", ": not read: HTTP status 404 Not Found"},
			nil,
		},
		"another file": {[]string{first, bad}, 3, []string{"fewer than two hosts", "has no settings to compare"}, nil},
		"no file":      {[]string{first, "/no/such"}, 3, []string{"/no/such: not read: stat /no/such: no such file"}, nil},
		"a directory":  {[]string{first, t.TempDir()}, 3, []string{"is a directory"}, nil},
		"no URL":       {[]string{first, "ftp://x"}, 3, []string{"must be http://HOST:PORT"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := runProgram(t, append([]string{"compare"}, k.args...)...)
			if code != k.code {
				t.Errorf("exit code %d, want %d: %s", code, k.code, stderr)
			}
			for _, w := range k.want {
				if !strings.Contains(stdout, w) {
					t.Errorf("no %q in\n%s", w, stdout)
				}
			}
			for _, w := range k.not {
				if strings.Contains(stdout, w) {
					t.Errorf("%q in\n%s", w, stdout)
				}
			}
		})
	}
	_, stdout, _ := runProgram(t, "compare", "--json", first, other)
	var got struct {
		Differences []struct{ Setting string }
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || len(got.Differences) != 1 {
		t.Errorf("%v: %s", err, stdout)
	}
}
