//go:build e2e

// Package fabric runs fabric mode on fabrics simulated by ibsim and managed by opensm, and compares it with the tools
// of infiniband-diags.
package fabric

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/internal/cli"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/host/umad"
	"rdma_exporter/internal/mad"
	"rdma_exporter/test/fabric/ibsim"
	"rdma_exporter/test/sandbox"
)

// program marks the process that is rdma_exporter, with the simulator instead of a kernel port.
const program = "RDMA_EXPORTER_TEST_FABRIC"

func TestMain(m *testing.M) {
	if os.Getenv(program) != "" {
		if err := sandbox.Enter(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		code := cli.RunOn(ctx, cli.Outside{MAD: simulated}, os.Args[1:], os.Stdout, os.Stderr)
		stop()
		os.Exit(code)
	}
	for _, script := range []string{"./packages.sh", "../sandbox/packages.sh"} {
		cmd := exec.Command(script)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", script, err)
			os.Exit(1)
		}
	}
	var err error
	if underFilter, err = sandbox.Environ("../../packaging/systemd/rdma_exporter-fabric.service"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// underFilter is an entry for the environment of that process: it runs under the system call filter of the unit.
var underFilter string

// simulated opens the node named as the device, in the simulator of the environment.
func simulated(_ rooted.Paths, device string, port int) (mad.Transport, umad.MADPort, error) {
	p, err := ibsim.Dial(os.Getenv("IBSIM_SOCKNAME"), device)
	if err != nil {
		return nil, umad.MADPort{}, err
	}
	return p, umad.MADPort{Device: device, Port: cmp.Or(port, 1)}, nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// patience is for operations that take a second or two on an idle machine.
const patience = 40 * time.Second

// eventually waits until check returns no fault.
func eventually(t *testing.T, what string, check func() string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		wrong := check()
		if wrong == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s", what, wrong)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
