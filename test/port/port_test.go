package port_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/port"
)

// listens marks the process that listens on the listed addresses until its input ends.
const listens = "RDMA_EXPORTER_TEST_LISTENS"

func TestMain(m *testing.M) {
	for a := range strings.FieldsSeq(os.Getenv(listens)) {
		l, err := net.Listen("tcp", a)
		if err != nil {
			panic(err)
		}
		defer l.Close()
	}
	if os.Getenv(listens) != "" {
		_, _ = os.Stdin.Read(make([]byte, 1))
		return
	}
	os.Exit(m.Run())
}

// start runs this executable until the test ends: directly, or as the child of a shell.
func start(t *testing.T, addresses, command string) int {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", command, self)
	cmd.Env = append(os.Environ(), listens+"="+addresses)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // ended by the test
	})
	return cmd.Process.Pid
}

func TestOf(t *testing.T) {
	for name, command := range map[string]string{"itself": "exec $0", "child": "$0; true"} {
		t.Run(name, func(t *testing.T) {
			a := port.Of(t, start(t, port.Any, command))
			c, err := net.Dial("tcp", a)
			if err != nil || !strings.HasPrefix(a, "127.0.0.1:") || strings.HasSuffix(a, ":0") {
				t.Fatalf("%s: %v", a, err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAwait: several ports, in order of their addresses, and a process that ends instead.
func TestAwait(t *testing.T) {
	all, err := port.Await(t.Context(), start(t, "127.0.0.2:0 127.0.0.1:0", "exec $0"), 2)
	if err != nil || len(all) != 2 || !strings.HasPrefix(all[0], "127.0.0.1:") ||
		!strings.HasPrefix(all[1], "127.0.0.2:") {
		t.Errorf("%q, %v", all, err)
	}
	began := time.Now()
	if all, err := port.Await(t.Context(), start(t, port.Any, "exit 1"), 1); err == nil ||
		!strings.Contains(err.Error(), "ended before it listened") {
		t.Errorf("%q, %v after %s", all, err, time.Since(began))
	}
}

// TestIPv6: the words of an address are in host byte order.
func TestIPv6(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6: ", err)
	}
	defer l.Close()
	if all, err := port.Await(t.Context(), os.Getpid(), 1); err != nil || !slices.Contains(all, l.Addr().String()) {
		t.Errorf("%q, %v, want %s", all, err, l.Addr())
	}
}

// TestHeld: connections are refused, no other program gets the port by chance, and a program that specifies it may
// listen.
func TestHeld(t *testing.T) {
	a := port.Held(t)
	if _, err := net.Dial("tcp", a); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v, want a refused connection", err)
	}
	if b := port.Held(t); a == b {
		t.Errorf("%s is held twice", a)
	}
	for range 2 { // a restarted program
		l, err := net.Listen("tcp", a)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", a)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	}
}
