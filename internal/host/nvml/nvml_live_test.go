//go:build cgo && linux

package nvml

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/hosttest"
)

// compiler returns the C compiler of cgo.
func compiler() string { return cmp.Or(os.Getenv("CC"), "gcc") }

// TestIncompleteLibrary: of an old library without most functions, the available figures are read, and the process
// survives. It is a real library loaded by the real client: calling a missing function terminates the process.
func TestIncompleteLibrary(t *testing.T) {
	dir := t.TempDir()
	lib := filepath.Join(dir, "libnvidia-ml.so.1")
	if out, err := exec.CommandContext(t.Context(), compiler(), "-shared", "-fPIC", "-o", lib, "testdata/oldnvml.c").
		CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	hosttest.Put(t, dir, "nvidiactl", "")
	n := newGPUs(func() (nvmlLibrary, error) { return openNVML(lib), nil }, filepath.Join(dir, "nvidiactl"))
	go func() { _ = n.WatchGPUs(t.Context()) }()
	for range 2 { // it is initialised again after a release
		v, errs, err := n.ReadGPUs(t.Context(), true)
		if err != nil || len(errs) > 0 {
			t.Fatal(err, errs)
		}
		if v.Driver != "450.80.02" || v.CUDA != "" || len(v.GPUs) != 1 {
			t.Fatalf("%+v", v)
		}
		g := v.GPUs[0]
		if g.UUID != "GPU-00000000-1111-2222-3333-444444444444" || g.PCIAddress != "0000:3b:00.0" ||
			g.Model != "" || g.Fabric != nil ||
			g.NVLinksUp != nil || g.PCIeReplays != nil || g.MemoryUsed != nil || g.XIDs != nil {
			t.Errorf("%+v", g)
		}
		if g.PCIeWidth == nil || *g.PCIeWidth != 16 || g.Temperature == nil || *g.Temperature != 41 ||
			g.Throttle == nil || *g.Throttle != 4 {
			t.Errorf("%+v", g)
		}
		if err := n.ReleaseGPUs(t.Context(), time.Hour, "root"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := n.ReadGPUs(t.Context(), true); !errors.Is(err, errReleased) {
			t.Fatal(err)
		}
		if err := n.ReleaseGPUs(t.Context(), 0, "root"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnusableLibrary: without the library, or with one that is not NVML, nothing is called.
func TestUnusableLibrary(t *testing.T) {
	dir := t.TempDir()
	hosttest.Put(t, dir, "nvidiactl", "")
	other := filepath.Join(dir, "other.so")
	hosttest.Put(t, dir, "empty.c", "")
	if out, err := exec.CommandContext(t.Context(), compiler(), "-shared", "-fPIC", "-o", other,
		filepath.Join(dir, "empty.c")).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	for path, want := range map[string]error{
		filepath.Join(dir, "none.so"): nvmlLibraryNotFound, other: nvmlFunctionNotFound,
	} {
		n := newGPUs(func() (nvmlLibrary, error) { return openNVML(path), nil }, filepath.Join(dir, "nvidiactl"))
		_, _, err := n.ReadGPUs(t.Context(), true)
		if !errors.Is(err, want) || access.IsAbsent(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
