//go:build e2e

// Package netns runs the link collector in a separate network namespace, on real interfaces whose carriers flap faster
// than any scrape.
package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// inside marks the process that runs in the namespaces.
const inside = "RDMA_EXPORTER_TEST_NETNS"

// TestMain runs the tests in a new user, network and mount namespace, where unprivileged users may create interfaces.
func TestMain(m *testing.M) {
	if os.Getenv(inside) != "" {
		os.Exit(m.Run())
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintf(os.Stderr, "cannot make a user and network namespace: %v: allow it (sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces) or run as root\n", err)
		os.Exit(1)
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

// tree returns a machine with the interfaces of this namespace and one RDMA device, on one of them.
func tree(t *testing.T, netdev string) string {
	t.Helper()
	root := t.TempDir()
	sysfs := filepath.Join(root, "sysfs")
	for _, d := range []string{
		sysfs, filepath.Join(root, "proc"), filepath.Join(root, "sys/class/net"), filepath.Join(root, "sys/devices"),
	} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mount(t, "sysfs", sysfs, "sysfs", 0) // it shows the namespace of the process that mounts it
	mount(t, filepath.Join(sysfs, "class/net"), filepath.Join(root, "sys/class/net"), "", syscall.MS_BIND)
	mount(t, filepath.Join(sysfs, "devices"), filepath.Join(root, "sys/devices"), "", syscall.MS_BIND|syscall.MS_REC)
	for name, text := range map[string]string{
		"node_type": "1: CA", "node_guid": "0200:00ff:fe00:0001", "ports/1/state": "4: ACTIVE",
		"ports/1/phys_state": "5: LinkUp",
		"ports/1/link_layer": "Ethernet", "ports/1/gid_attrs/ndevs/0": netdev, "parent": netdev,
	} {
		file := filepath.Join(root, "sys/class/infiniband/rxe0", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func mount(t *testing.T, source, target, kind string, flags uintptr) {
	t.Helper()
	if err := syscall.Mount(source, target, kind, flags, ""); err != nil {
		t.Fatalf("mount %s: %v: a container has to show the whole of /sys for this test", target, err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(target, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}
