package cli

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/locked"
	"rdma_exporter/test/machines"
)

// liveArgs make the program read a tree as if it was this machine.
func liveArgs(dir, stateDir string) []string {
	return []string{"--path.rootfs=" + dir, "--state.dir=" + stateDir}
}

// waitState waits until what is kept in a directory is as wanted.
func waitState(t *testing.T, dir string, want func(expect.Data) error) {
	t.Helper()
	waitUntil(func() bool {
		var d expect.Data
		return state.Read(t.Context(), dir, &d) == nil && want(d) == nil
	})
}

func checkKnown(links, functions int) func(expect.Data) error {
	return func(d expect.Data) error {
		if len(d.Links) != links || len(d.Functions) != functions {
			return fmt.Errorf("%d links, %d functions: %+v", len(d.Links), len(d.Functions), d)
		}
		return nil
	}
}

// TestMemoryOutlivesTheProgram: a link that was fast before the restart, a device that was there, and how an operator
// says that both changes were meant.
func TestMemoryOutlivesTheProgram(t *testing.T) {
	dir, stateDir := machines.Tree(t, "hdr100-ok"), filepath.Join(t.TempDir(), "state")
	live := liveArgs(dir, stateDir)
	t.Run("first run", func(t *testing.T) {
		s := startProgram(t, append(live, "--collect.min-interval=0s")...)
		waitState(t, stateDir, checkKnown(4, 4))
		if n := valueOf(t, s, "rdma_state_last_write_successful"); n != "1" {
			t.Errorf("state written: %q", n)
		}
	})
	for i := range 4 { // all are slow now: siblings say nothing
		rate := filepath.Join(dir, "sys/class/infiniband", "mlx5_"+string(rune('0'+i)), "ports/1/rate")
		must(t, os.WriteFile(rate, []byte("50 Gb/sec (1X HDR)\n"), 0o644))
	}
	bus := filepath.Join(dir, "sys/bus/pci/devices/")
	must(t, os.Remove(filepath.Join(dir, "sys/class/infiniband/mlx5_3")))
	must(t, os.Remove(filepath.Join(bus, "0000:5e:00.0")))
	t.Run("second run", func(t *testing.T) {
		s := startProgram(t, append(live, "--collect.min-interval=0s")...)
		const expected, missing = `rdma_port_expected_rate_bytes_per_second{device="mlx5_0",port="1"}`,
			`rdma_device_present{device="mlx5_3",pci_address="0000:5e:00.0"}`
		if got := valueOf(t, s, expected); got != "1.25e+10" {
			t.Errorf("expected rate %q", got)
		}
		if got := valueOf(t, s, missing); got != "0" {
			t.Errorf("missing device: %q", got)
		}
		_, list, _ := runProgram(t, append(live, "expect", "list")...)
		if !strings.Contains(list, "mlx5_0  1     ibp24s0f0  compute  50 Gb/s 1X  100 Gb/s 2X  high_water_mark  100 Gb/s") {
			t.Errorf("expect list:\n%s", list)
		}
		_, list, _ = runProgram(t, append(live, "inventory", "list")...)
		if !strings.Contains(list, "0000:5e:00.0  mlx5_3  b83f:d203:005a:0040  mlx5_core  MT_0000000223  missing: not_on_pci") {
			t.Errorf("inventory list:\n%s", list)
		}
		slower := []string{
			"  link mlx5_0/1: was 100 Gb/s 2X\n", "  link mlx5_1/1: was 100 Gb/s 2X\n", "  link mlx5_2/1: was 100 Gb/s 2X\n",
		}
		const gone, forgotten = "  link mlx5_3/1: was 100 Gb/s 2X\n  device mlx5_3 (0000:5e:00.0): was present\n",
			"Accepted. The present state is recorded.\n"
		for _, c := range []struct {
			args []string
			code int
			want string
		}{
			{[]string{"accept"}, 0, "To accept, by NAME or with --all (nothing changed yet):\n" + slower[0] + slower[1] + slower[2] + gone},
			{[]string{"accept", "--all", "--dry-run"}, 0, "To accept, by NAME or with --all (nothing changed yet):\n" + slower[0] + slower[1] + slower[2] + gone},
			{[]string{"accept", "mlx5_0", "--dry-run"}, 0, "To accept, by NAME or with --all (nothing changed yet):\n" + slower[0]},
			{[]string{"accept", "mlx5_0", "mlx5_9"}, 2, "rdma_exporter accept: mlx5_9: unknown device or port (see rdma_exporter expect list, rdma_exporter inventory list)\n"},
			{[]string{"accept", "mlx5_0", "--all"}, 2, "rdma_exporter accept: NAME and --all are mutually exclusive\n"},
			{[]string{"accept", "mlx5_0"}, 0, "Accepting:\n" + slower[0] + forgotten},
			{[]string{"accept", "0000:5e:00.0"}, 0, "Accepting:\n" + gone + forgotten},
			{[]string{"accept", "mlx5_3"}, 2, "rdma_exporter accept: mlx5_3: unknown device or port (see rdma_exporter expect list, rdma_exporter inventory list)\n"},
			{[]string{"accept", "mlx5_1/1"}, 0, "Accepting:\n" + slower[1] + forgotten},
			{[]string{"accept", "--all"}, 0, "Accepting:\n" + slower[2] + forgotten},
		} {
			if code, out, errs := runProgram(t, append(live, c.args...)...); code != c.code || out+errs != c.want {
				t.Errorf("%v: exit %d\n%s%swant\n%s", c.args, code, out, errs, c.want)
			}
		}
		if code, out, errs := runProgram(t, append(live, "accept")...); code != 0 ||
			out != "Nothing to accept: no device or link differs from the recorded state.\n" {
			t.Errorf("once all is accepted: exit %d\n%s%s", code, out, errs)
		}
		if got := valueOf(t, s, expected); got != "6.25e+09" {
			t.Errorf("expected rate once accepted: %q", got)
		}
		if got := valueOf(t, s, missing); got != "" {
			t.Errorf("missing device once accepted: %q", got)
		}
	})
	var d expect.Data // written at the end; the link of mlx5_3 went with it
	must(t, state.Read(t.Context(), stateDir, &d))
	must(t, checkKnown(3, 3)(d))
}

// TestTwoExporters: the second one serves, writes nothing, and reports it.
func TestTwoExporters(t *testing.T) {
	dir, stateDir := machines.Tree(t, "hdr100-ok"), t.TempDir()
	startProgram(t, liveArgs(dir, stateDir)...)
	waitState(t, stateDir, checkKnown(4, 4))
	second := startProgram(t, liveArgs(dir, stateDir)...)
	if n := valueOf(t, second, "rdma_state_last_write_successful"); n != "0" {
		t.Errorf("state written: %q", n)
	}
	if log := second.log.String(); !strings.Contains(log, "in use by another rdma_exporter") {
		t.Errorf("the log does not say so:\n%s", log)
	}
	if n := valueOf(t, second, `rdma_port_was_active{device="mlx5_0",port="1"}`); n != "1" {
		t.Errorf("was active: %q", n)
	}
}

// TestReplayKeepsNothing: a replay has what its capture remembers, and touches no state directory.
func TestReplayKeepsNothing(t *testing.T) {
	stateDir := filepath.Join(t.TempDir(), "state")
	s := startProgram(t, "--replay="+machines.Fixture("device-missing"), "--state.dir="+stateDir)
	if n := valueOf(t, s, `rdma_device_present{device="mlx5_11",pci_address="0000:dc:00.0"}`); n != "0" {
		t.Errorf("missing device: %q", n)
	}
	if _, err := os.Stat(stateDir); err == nil {
		t.Error("a replay made a state directory")
	}
	if n := valueOf(t, s, "rdma_state_last_write_successful"); n != "" {
		t.Errorf("state written: %q", n)
	}
}

// valueOf returns the served value of a series; empty if there is none.
func valueOf(t *testing.T, s *server, series string) string {
	t.Helper()
	_, body, _ := s.get(t, "/metrics")
	for line := range strings.Lines(body) {
		if v, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// TestStartGivenUp: a program that cannot listen reads nothing, stores nothing and blames nobody.
func TestStartGivenUp(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	for name, address := range map[string]string{"invalid": ":99999", "taken": taken.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			tree, dir, log := machines.Tree(t, "hdr100-ok"), t.TempDir(), &locked.Buffer{}
			for range 3 {
				code := Run(t.Context(), append(liveArgs(tree, dir), "--web.listen-address="+address), io.Discard, log)
				if code != 2 {
					t.Errorf("exit code %d", code)
				}
			}
			text := log.String()
			if got := strings.Count(text, "cannot serve on --web.listen-address="+address); got != 3 {
				t.Errorf("%d errors:\n%s", got, text)
			}
			for _, wrong := range []string{"read failed", "blocked", "collection failed", "evaluation"} {
				if strings.Contains(text, wrong) {
					t.Errorf("log has %q:\n%s", wrong, text)
				}
			}
			e, err := alerting.New(alerting.Options{
				Dir: filepath.Join(dir, "alerting", "store"), Instance: "any", Rules: fstest.MapFS{},
			})
			must(t, err)
			defer e.Close()
			if from, to := e.Observed(); !to.IsZero() {
				t.Errorf("stored rounds from %s to %s", from, to)
			}
		})
	}
}
