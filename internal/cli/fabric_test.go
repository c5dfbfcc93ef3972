package cli

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/replay"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/host/hosttest"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/host/umad"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/state"
)

// TestServeFabric: what fabric mode serves on a host that has no fabric, with a prefix; what may be accepted is said to
// the one that runs.
func TestServeFabric(t *testing.T) {
	dir := t.TempDir()
	s := startProgram(t, "fabric", "--path.rootfs="+hosttest.InfiniBandPorts(t), "--state.dir="+dir,
		"--web.route-prefix=/ib", "--web.pprof")
	s.await(t, "/ib/", "Unseen")
	for _, c := range []struct {
		name, path string
		status     int
		want       string
	}{
		{"page", "/ib/", 200, "RDMAFabricUnseen"},
		{"link to pprof", "/ib/", 200, `href="debug/pprof/"`},
		{"links", "/ib/links", 200, "0 links"},
		{"unknown switch", "/ib/switches/0002:c903:0000:0001", 404, "switch 0002:c903:0000:0001: none of that GUID is known"},
		{"path escape", "/ib/switches/..%2f..%2fetc", 404, "none of that GUID"},
		{"fabric API", "/ib/api/v1/fabric", 200, `"failed":"`},
		{"no node API", "/ib/api/v1/node", 404, "not found"},
		{"style sheet", "/ib/static/page.css", 200, "prefers-color-scheme"},
		{"runbook", "/ib/runbooks/RDMAFabricUnseen", 200, "<h2>Meaning</h2>"},
		{"former name of an alert", "/ib/runbooks/RDMAReloadFailed", 200, "<h1>RDMAExporterDegraded</h1>"},
		{"metrics of a failed sweep", "/ib/metrics", 200, "rdma_fabric_sweep_failed 1"},
		{"metrics of the interval", "/ib/metrics", 200, "rdma_fabric_sweep_interval_seconds 60"},
		{"ready", "/ib/-/ready", 200, "ready"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, body, h := s.get(t, c.path)
			if status != c.status || !strings.Contains(body, c.want) {
				t.Errorf("%s: %d, want %d, %q in %.200s", c.path, status, c.status, c.want, body)
			}
			if strings.Contains(h.Get("Content-Type"), "html") &&
				!strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none';") && c.path != "/ib/metrics" {
				t.Errorf("%s: %v", c.path, h)
			}
		})
	}
	servesNoFiles(t, s, "/ib")
	st, err := os.Stat(filepath.Join(dir, "fabric", "control.sock"))
	must(t, err)
	if st.Mode() != os.ModeSocket|0o660 { // for whoever may write the directory
		t.Errorf("%s: %s", st.Name(), st.Mode())
	}
	for _, path := range []string{"/ib/", "/ib/links", "/ib/switches/x", "/ib/api/v1/fabric"} {
		if status, _, _ := s.ask(t, once(), http.MethodPost, path, nil); status != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", path, status)
		}
	}
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"not seen", []string{"leaf1/1"}, "rdma_exporter accept: the fabric is not reachable at present: missing links and nodes cannot be determined\n"},
		{"nothing named", nil, "rdma_exporter accept: the fabric is not reachable at present: missing links and nodes cannot be determined\n"},
		{"all and a link", []string{"--all", "leaf1/1"}, "rdma_exporter accept: NAME and --all are mutually exclusive\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if code, _, errs := runProgram(t, append([]string{"accept", "--state.dir=" + dir}, c.args...)...); code != 2 ||
				errs != c.want {
				t.Errorf("%q: %d %s", c.args, code, errs)
			}
		})
	}
	if code, _, errs := runProgram(t, "accept", "--state.dir="+t.TempDir(), "--all"); code != 2 ||
		!strings.Contains(errs, "no running rdma_exporter in --state.dir=") {
		t.Errorf("without an exporter: %d %s", code, errs)
	}
}

// TestFabricPortKept: a restarted exporter does not sweep another subnet than before.
func TestFabricPortKept(t *testing.T) {
	dir := t.TempDir()
	store, err := state.Open(filepath.Join(dir, "fabric"))
	must(t, err)
	must(t, store.Write(map[string]any{"from": umad.MADPort{Device: "mlx5_7", Port: 1, GUID: "0:7"}}))
	must(t, store.Close())
	s := startProgram(t, "fabric", "--path.rootfs="+hosttest.InfiniBandPorts(t, "4: ACTIVE"), "--state.dir="+dir)
	const want = "mlx5_7/1 of node 0:7, the port of earlier sweeps, does not exist: there are [mlx5_0/1]; another port may be in another fabric: select the port"
	if body := s.await(t, "/", "RDMAFabricUnseen"); !strings.Contains(body, want) {
		t.Errorf("the page has %.2000s", body)
	}
	if l := s.log.String(); !strings.Contains(l, want) {
		t.Errorf("log: %s", l)
	}
}

// The recordings are of fabrics that test/fabric has simulated: three sweeps in a minute, the last two with a link that
// is gone, symbol errors, a link with a lower setting at one end and a stopped subnet manager, or without.
const (
	healthyFabric = "testdata/fabric-ok.txtar"
	faultyFabric  = "testdata/fabric-faults.txtar"
)

// TestFabricReplay: the rules decide on a replay of a fabric, and nothing is found on a healthy one. Page and check
// show the same.
func TestFabricReplay(t *testing.T) {
	for _, c := range []struct {
		file   string
		code   int
		text   string
		found  []string
		page   []string
		silent []string
	}{
		{
			healthyFabric, 0, ": ok: nothing is wrong: 5 switches, 9 adapters, 15 links\n", nil,
			[]string{`<span class="word">OK<`, `class="lead">Nothing is wrong: `},
			[]string{"RDMAFabricLinkErrors</", "lower settings"},
		},
		{
			faultyFabric, 2, "vm: critical: InfiniBand fabric swept from vm: no master subnet manager answers\n" +
				"1 critical, 2 warnings, 1 pending warning.\n",
			[]string{
				"RDMANoSubnetManager fabric", "RDMAFabricLinkDegraded leaf000/2 to node0001 mlx5_0/1",
				"RDMAFabricLinkDegraded leaf001/4 to spine000/2",
			},
			[]string{
				`<span class="word">Critical<`, "RDMANoSubnetManager", "leaf000/2 to node0001 mlx5_0/1", "<dt>Diagnose</dt>",
				"the port named first answers and is DOWN", "Lower settings at one end of 1 link: leaf001/4 to spine000/2",
				"<strong>RDMAFabricLinkErrors</strong>", `href="runbooks/RDMANoSubnetManager"`, "host to leaf: 9 links, 1 gone",
			},
			nil,
		},
	} {
		t.Run(c.file, func(t *testing.T) {
			code, out, errs := runProgram(t, "check", "--fabric", "--replay="+c.file)
			if code != c.code || !strings.Contains(out, c.text) {
				t.Errorf("%d, want %d and %q: %s%s", code, c.code, c.text, out, errs)
			}
			_, text, _ := runProgram(t, "check", "--fabric", "--replay="+c.file, "--json")
			var r check.Report
			must(t, json.Unmarshal([]byte(text), &r))
			var found []string
			for _, f := range r.Findings {
				found = append(found, f.Alert+" "+check.Where(f.Labels))
				if f.Action == "" || f.Diagnose == "" || f.DrainReason == "" || f.Description == "" ||
					len(f.Evidence) == 0 && f.Alert != "RDMANoSubnetManager" { // none answers
					t.Errorf("%+v", f)
				}
				if f.Labels["job"] != "rdma_exporter_fabric" || !strings.HasSuffix(f.Labels["instance"], ":10880") {
					t.Errorf("labels of a central Prometheus are others: %v", f.Labels)
				}
			}
			if !slices.Equal(found, c.found) {
				t.Errorf("found %q, want %q", found, c.found)
			}
			s := startProgram(t, "fabric", "--replay="+c.file)
			html := s.await(t, "/", c.page[0])
			for _, want := range c.page {
				if !strings.Contains(html, want) {
					t.Errorf("the page is without %q", want)
				}
			}
			for _, other := range c.silent {
				if strings.Contains(html, other) {
					t.Errorf("the page has %q", other)
				}
			}
			var served check.Report
			must(t, json.Unmarshal(s.findings(t), &served))
			if served.Verdict != r.Verdict || len(served.Findings) != len(r.Findings) {
				t.Errorf("the daemon has %s, %+v", served.Verdict, served.Findings)
			}
		})
	}
	for _, c := range []struct{ args, want string }{
		{"fabric --replay=demo", "not a capture of a fabric, which rdma_exporter capture --fabric writes"},
		{"check --fabric --replay=demo", "not a capture of a fabric"},
		{"check --fabric --drain", "--fabric: cannot be combined with --drain"},
		{"capture --fabric --anonymise -o -", "--fabric: cannot be combined with --anonymise"},
	} {
		if _, _, errs := runProgram(t, strings.Fields(c.args)...); !strings.Contains(errs, c.want) {
			t.Errorf("%s: %s", c.args, errs)
		}
	}
}

// TestFabricCaptured: a capture of a replay is the capture.
func TestFabricCaptured(t *testing.T) {
	want, err := os.ReadFile(faultyFabric)
	must(t, err)
	code, out, errs := runProgram(t, "capture", "--fabric", "--replay="+faultyFabric, "-o", "-")
	if code != 0 || out != string(want) {
		t.Errorf("%d: %d bytes, want %d: %s", code, len(out), len(want), errs)
	}
}

// recorded returns the fabric of a recording as it was at its end, in place of a port.
func recorded(t *testing.T, file string) Outside {
	t.Helper()
	a, err := capture.Load(file, nil)
	must(t, err)
	p, err := replay.Play(a, time.Unix(0, 0))
	must(t, err)
	t.Cleanup(func() { must(t, p.Close()) })
	must(t, p.Seek(p.Last()))
	return Outside{MAD: func(rooted.Paths, string, int) (mad.Transport, umad.MADPort, error) {
		t := mad.NewPlayer(func(file string) ([]byte, error) { return p.Read(file, nil) })
		return t, umad.MADPort{Device: "mlx5_0", Port: 1}, nil
	}}
}

// alertmanager takes alerts: the labels of the last one of a name.
func alertmanager(t *testing.T, name string) (url string, last func() map[string]string) {
	t.Helper()
	var mu sync.Mutex
	var got map[string]string
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var alerts []struct{ Labels map[string]string }
		if json.NewDecoder(r.Body).Decode(&alerts) != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, a := range alerts {
			if a.Labels["alertname"] == name {
				got = a.Labels
			}
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, func() map[string]string {
		mu.Lock()
		defer mu.Unlock()
		return got
	}
}

// TestFabricAlerts: alerts on a fabric reach an Alertmanager without a Prometheus, with the labels that a Prometheus
// gives them. A restart continues those that are pending, and the sweep of a healthy fabric sends none.
func TestFabricAlerts(t *testing.T) {
	rules, dir, root := filepath.Join(t.TempDir(), "at-once.rules.yml"), t.TempDir(), hosttest.InfiniBandPorts(t)
	must(t, os.WriteFile(rules, []byte(`groups: [{name: g, rules: [{alert: AtOnce, expr: 'rdma:fault{symptom="no_subnet_manager"}', labels: {severity: info}}]}]`), 0o644))
	args := func(url, keep string) []string {
		return []string{
			"fabric", "--fabric.device=mlx5_0", "--path.rootfs=" + root, "--state.dir=" + keep,
			"--alerting.alertmanager-url=" + url, "--alerting.rule-files=" + rules, "--alerting.interval=1s",
			"--fabric.interval=1s", "--alerting.instance=mgmt:10880", "--alerting.external-labels=cluster=a",
		}
	}
	// pendingFor returns how long the alert had been pending in a round.
	pendingFor := func(s *server) (d time.Duration) {
		waitUntil(func() bool {
			var r check.Report
			must(t, json.Unmarshal(s.findings(t), &r))
			for _, f := range r.Findings {
				if f.Alert == "RDMANoSubnetManager" && f.State == "pending" {
					d = r.Time.Sub(f.Since)
				}
			}
			return d > 0
		})
		return d
	}
	url, sent := alertmanager(t, "AtOnce")
	var before time.Duration
	t.Run("before", func(t *testing.T) {
		s := startOn(t, recorded(t, faultyFabric), args(url, dir)...)
		waitUntil(func() bool { return sent() != nil })
		want := map[string]string{
			"alertname": "AtOnce", "cluster": "a", "job": "rdma_exporter_fabric", "instance": "mgmt:10880", "where": "mgmt",
			"symptom": "no_subnet_manager", "reason": "fabric", "scope": "host", "severity": "info", "drain": "no",
		}
		if got := sent(); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		s.rounds(t, 3)
		before = pendingFor(s)
		s.waitFor(t, "rdma_alerting_alertmanagers 1")
	})
	t.Run("after", func(t *testing.T) { // in whole seconds, without the time between the two
		after := pendingFor(startOn(t, recorded(t, faultyFabric), args(url, dir)...))
		if after < before.Truncate(time.Second) {
			t.Errorf("pending for %s, and for %s before the restart", after, before)
		}
	})
	t.Run("healthy", func(t *testing.T) {
		url, sent := alertmanager(t, "AtOnce")
		s := startOn(t, recorded(t, healthyFabric), args(url, t.TempDir())...)
		s.rounds(t, 3)
		alerts, err := s.prometheus(t).Alerts(t.Context())
		must(t, err)
		if len(alerts.Alerts) > 0 || sent() != nil {
			t.Errorf("%+v, %v", alerts.Alerts, sent())
		}
	})
}
