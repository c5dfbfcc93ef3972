//go:build e2e

package packages

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	bootTime  = 2 * time.Minute // seconds, on an idle machine
	readyTime = 2 * time.Minute
	poll      = 200 * time.Millisecond
)

// system is a tree run by systemd in separate namespaces, including the network.
type system struct {
	tree
	pid string // of its systemd
}

func boot(t *testing.T, r tree) system {
	t.Helper()
	var console bytes.Buffer
	// timeout: the system must not outlive a killed test. --register=no: this machine may run without systemd.
	nspawn := exec.Command("timeout", "-s", "KILL", "900", "systemd-nspawn", "--register=no", "--keep-unit",
		"--private-network", "--link-journal=no", "--capability=CAP_SYSLOG,CAP_BPF,CAP_PERFMON",
		"--console=pipe", "--kill-signal=SIGKILL", "-D", string(r), "--boot")
	nspawn.Stdout, nspawn.Stderr = &console, &console
	if err := nspawn.Start(); err != nil {
		t.Fatal(err)
	}
	s := system{tree: r}
	t.Cleanup(func() {
		if s.pid != "" {
			exec.Command("kill", "-KILL", s.pid).Run()
		} else {
			nspawn.Process.Kill()
		}
		nspawn.Wait()
		if t.Failed() {
			t.Logf("console:\n%s", console.Bytes())
		}
	})
	until(t, bootTime, "systemd does not come up in the tree", func() error {
		if s.pid = firstProcess(nspawn.Process.Pid); s.pid == "" {
			return fmt.Errorf("no process 1 below %d", nspawn.Process.Pid)
		}
		out, _ := s.command("systemctl", "is-system-running").CombinedOutput()
		if state := strings.TrimSpace(string(out)); state != "running" && state != "degraded" {
			return fmt.Errorf("system is %s", state)
		}
		return nil
	})
	return s
}

// firstProcess returns the descendant of a process that is process 1 of a PID namespace.
func firstProcess(pid int) string {
	children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range children {
		b, _ := os.ReadFile(name)
		for child := range strings.FieldsSeq(string(b)) {
			if strings.HasSuffix(field("/proc/"+child+"/status", "NSpid"), "\t1") {
				return child
			}
			var n int
			fmt.Sscan(child, &n)
			if found := firstProcess(n); found != "" {
				return found
			}
		}
	}
	return ""
}

// field returns a line of /proc/PID/status without its name.
func field(file, name string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if value, ok := strings.CutPrefix(s.Text(), name+":"); ok {
			return value
		}
	}
	return ""
}

func (s system) command(args ...string) *exec.Cmd {
	cmd := exec.Command("nsenter", append([]string{
		"-t", s.pid, "-a", "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive",
	}, args...)...)
	return cmd
}

func (s system) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// get makes a request to the exporter in the system's network.
func (s system) get(path string) (int, string, error) {
	client := http.Client{
		Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: s.dial},
	}
	resp, err := client.Get("http://127.0.0.1:10879" + path)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func (s system) dial(ctx context.Context, network, address string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends in the other namespace
		fd, err := unix.Open("/proc/"+s.pid+"/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			defer unix.Close(fd)
			err = unix.Setns(fd, syscall.CLONE_NEWNET)
		}
		if err != nil {
			done <- result{nil, err}
			return
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}

// ready waits for the exporter's first collection, and returns its PID outside the namespaces.
func (s system) ready(t *testing.T) string {
	t.Helper()
	until(t, readyTime, "the exporter is not ready", func() error {
		code, body, err := s.get("/-/ready")
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
	return s.pidOf(t, "rdma_exporter")
}

// pidOf returns the PID of a service outside the namespaces.
func (s system) pidOf(t *testing.T, unit string) string {
	t.Helper()
	inside := s.run(t, "systemctl", "show", "-P", "MainPID", unit)
	all, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if field(name, "Name") == "\trdma_exporter" && strings.HasSuffix(field(name, "NSpid"), "\t"+inside) {
			return filepath.Base(filepath.Dir(name))
		}
	}
	t.Fatalf("no process %s in the system: %s", inside, s.run(t, "systemctl", "status", unit))
	return ""
}

func until(t *testing.T, limit time.Duration, what string, try func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(poll) {
		if err = try(); err == nil {
			return
		}
	}
	t.Fatalf("%s after %s: %v", what, limit, err)
}
