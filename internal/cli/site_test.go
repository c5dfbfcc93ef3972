package cli

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"rdma_exporter/test/machines"
)

const (
	validConfig   = "ignore:\n- match: {device: mlx5_3}\n"
	otherConfig   = "ignore:\n- match: {device: mlx5_4}\n"
	invalidConfig = "ignore:\n- match: {dev: mlx5_3}\n"
)

func put(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.WriteFile(name, []byte(text), 0o644))
}

func (s *server) post(t *testing.T, path string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, nil)
	must(t, err)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	must(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(b)
}

// waitFor scrapes until the metrics have a line.
func (s *server) waitFor(t *testing.T, line string) {
	t.Helper()
	waitUntil(func() bool {
		_, body, _ := s.get(t, "/metrics")
		return strings.Contains(body, "\n"+line+"\n")
	})
}

const (
	reloaded = "rdma_config_last_reload_successful 1"
	refused  = "rdma_config_last_reload_successful 0"
	ignored3 = `rdma_device_ignored{device="mlx5_3"} 1`
	ignored4 = `rdma_device_ignored{device="mlx5_4"} 1`
)

// TestReload: a valid file replaces the old one, an invalid one is refused and the old one stays, by HTTP and by
// SIGHUP, while no scrape fails.
func TestReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "site.yml")
	put(t, file, validConfig)
	s := startProgram(t, "--replay="+machines.Fixture("dgx-h100-ib"), "--config.file="+file, "--collect.min-interval=0s",
		"--web.enable-lifecycle")
	s.waitFor(t, reloaded)
	s.waitFor(t, ignored3)
	stop := s.scrapeUntil(t)
	defer stop()

	put(t, file, invalidConfig)
	status, body := s.post(t, "/-/reload")
	if want := "reload failed, keeping the previous configuration: " + file + `:2: match: unknown key "dev"`; status !=
		400 || !strings.HasPrefix(body, want) || !strings.Contains(s.log.String(), `unknown key`) {
		t.Errorf("status %d, %q, want %q\n%s", status, body, want, s.log)
	}
	s.waitFor(t, refused)
	s.waitFor(t, ignored3)

	put(t, file, otherConfig)
	if status, body := s.post(t, "/-/reload"); status != 200 || body != "reloaded\n" {
		t.Errorf("status %d, %q", status, body)
	}
	s.waitFor(t, reloaded)
	s.waitFor(t, ignored4)
	if _, body, _ := s.get(t, "/metrics"); strings.Contains(body, ignored3) {
		t.Error("the old file is in force as well")
	}

	must(t, os.Remove(file))
	must(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	s.waitFor(t, refused)
	s.waitFor(t, ignored4)
	put(t, file, validConfig)
	must(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	s.waitFor(t, reloaded)
	s.waitFor(t, ignored3)
	if status, _, h := s.get(t, "/-/reload"); status != 405 || h.Get("Allow") != "POST" {
		t.Errorf("GET: status %d, %v", status, h)
	}
}

// TestReloadCommand: the command reloads the running exporter through the socket, and has the error if it does not.
func TestReloadCommand(t *testing.T) {
	stateDir := filepath.Join(t.TempDir(), "state")
	live := liveArgs(machines.Tree(t, "hdr100-ok"), stateDir)
	runs := func(t *testing.T, want string, code int) {
		t.Helper()
		got, out, errs := runProgram(t, append(live, "reload")...)
		if got != code || !strings.HasPrefix(out+errs, want) {
			t.Errorf("exit %d\n%s%swant\n%s", got, out, errs, want)
		}
	}
	runs(t, "rdma_exporter reload: no running rdma_exporter in --state.dir="+stateDir, 2)
	t.Run("without files", func(t *testing.T) {
		startProgram(t, live...)
		waitUntil(func() bool { // the socket may be served later than the page
			c, err := net.Dial("unix", filepath.Join(stateDir, "control.sock"))
			return err == nil && c.Close() == nil
		})
		runs(t, "rdma_exporter reload: nothing to reload: none of --config.file", 2)
	})
	file := filepath.Join(t.TempDir(), "site.yml")
	put(t, file, validConfig)
	s := startProgram(t, append(live, "--config.file="+file, "--collect.min-interval=0s")...)
	s.waitFor(t, reloaded)
	put(t, file, invalidConfig)
	runs(t,
		"rdma_exporter reload: reload failed, keeping the previous configuration: "+file+`:2: match: unknown key "dev"`, 2)
	s.waitFor(t, refused)
	put(t, file, otherConfig)
	runs(t, "Configuration reloaded.\n", 0)
	s.waitFor(t, reloaded)
	if status, _ := s.post(t, "/-/reload"); status != 403 {
		t.Errorf("over HTTP: %d", status)
	}
	if code, _, errs := runProgram(t, "--replay=demo", "reload"); code != 2 ||
		!strings.Contains(errs, "--replay: a replay has no running exporter") {
		t.Errorf("replay: %d %s", code, errs)
	}
}

// TestReloadWithoutState: without a state directory there is no socket, and log and command say so.
func TestReloadWithoutState(t *testing.T) {
	stateDir := filepath.Join(t.TempDir(), "state")
	put(t, stateDir, "") // no folder can be there
	live := liveArgs(machines.Tree(t, "hdr100-ok"), stateDir)
	s := startProgram(t, live...)
	if want := "rdma_exporter accept, gpu, maintenance and reload cannot reach this exporter"; !strings.Contains(
		s.log.String(), want,
	) {
		t.Errorf("log:\n%s", s.log)
	}
	for want, args := range map[string][]string{
		"an exporter without a usable state directory reloads on SIGHUP\n":                                              {"reload"},
		"an exporter without a usable state directory takes POST /-/gpu/release?for=30m, with --web.enable-lifecycle\n": {"gpu", "release", "--for=30m"},
	} {
		if code, _, errs := runProgram(t, append(live, args...)...); code != 2 || !strings.HasSuffix(errs, want) {
			t.Errorf("%v: exit %d %s", args, code, errs)
		}
	}
}

// scrapeUntil scrapes without a pause until it is stopped; a failed scrape fails the test.
func (s *server) scrapeUntil(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			resp, err := http.Get(s.url + "/metrics")
			if err != nil {
				t.Error(err)
				return
			}
			b, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != 200 || !strings.Contains(string(b), "rdma_port_state_id{") {
				t.Errorf("status %d, %v", resp.StatusCode, err)
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// TestNoConfigFile: there is nothing to read again, no metric says so, and SIGHUP does not end the program.
func TestNoConfigFile(t *testing.T) {
	s := startProgram(t, "--replay="+machines.Fixture("no-rdma"), "--web.enable-lifecycle")
	if status, body := s.post(t, "/-/reload"); status != 400 || !strings.Contains(body, "none of --config.file") {
		t.Errorf("status %d, %q", status, body)
	}
	must(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	waitUntil(func() bool {
		if _, body, _ := s.get(t, "/metrics"); strings.Contains(body, "rdma_config_") {
			t.Fatal("a reading is reported")
		}
		return strings.Contains(s.log.String(), "SIGHUP")
	})
}
