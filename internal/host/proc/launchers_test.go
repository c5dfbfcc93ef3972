package proc

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"

	"rdma_exporter/internal/snapshot/hostdata"
)

// TestLaunchers: services by name, and not their children: sessions of sshd have limits of their own.
func TestLaunchers(t *testing.T) {
	p, table := NewProcessTree(t)
	const line = "Max locked memory         "
	process := func(pid int, name, parent, limits string) {
		files := map[string]string{"stat": "1 (" + name + ") S " + parent + " 1 1 0 -1\n"}
		if limits != "" {
			files["limits"] = limits
		}
		p.Process(pid, nil, files)
	}
	process(1, "systemd", "0", line+"8388608 8388608 bytes\n")
	process(20, "sshd", "900", line+"65536 65536 bytes\n") // a session
	process(30, "slurmd", "1", line+"unlimited unlimited bytes\n")
	process(900, "sshd", "1", line+"8388608 unlimited bytes\n")
	process(901, "containerd", "1", "Limit\n")
	process(902, "dockerd", "1", "") // it ends during the search
	memlock := uint64(8388608)
	want := []hostdata.Launcher{
		{Name: "slurmd", Unlimited: true}, {Name: "sshd", LockedMemory: &memlock}, {Name: "containerd"},
	}
	got, whole, err := Launchers{table.Tree}.Launchers(t.Context(), []string{"slurmd", "sshd", "containerd", "dockerd"})
	if err != nil || !whole || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v %v", got, whole, err)
	}
}

// TestMode: permission bits of the target of a link, which has to be inside the root.
func TestMode(t *testing.T) {
	p, table := NewProcessTree(t)
	dir := filepath.Join(p.Dir, "dev")
	for _, err := range []error{
		os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "a"), nil, 0o600), os.Chmod(filepath.Join(dir, "a"), 0o640),
		os.Symlink("a", filepath.Join(dir, "b")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]uint32{"dev/a": 0o640, "dev/b": 0o640} {
		got, group, err := table.Tree.Mode(name)
		if err != nil || got != want || group == nil || *group != uint32(os.Getegid()) {
			t.Errorf("%s: %04o %v %v", name, got, group, err)
		}
	}
	for name, want := range map[string]error{"dev/c": syscall.ENOENT, "dev/../x": syscall.EINVAL} {
		if _, _, err := table.Tree.Mode(name); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
