package host_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/hosttest"
	"rdma_exporter/internal/host/rooted"
)

// TestIdentities: a device whose link was made again is another one, also if the link has the same inode. A link that
// leads nowhere is followed again in each call. What is the same opens no path.
func TestIdentities(t *testing.T) {
	hosttest.BothWays(t, func(t *testing.T, dir string, l *rooted.Tree) {
		made := func(device, place string) {
			hosttest.Put(t, dir, "sys/devices/"+place+"/node_type", "1: CA\n")
			link := filepath.Join(dir, host.ClassDir, device)
			if _, err := os.Stat(filepath.Dir(link)); err == nil {
				hosttest.Age(t, filepath.Dir(link))
				if _, _, err := l.Identities(host.ClassDir); err != nil {
					t.Error(err)
				}
			}
			if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			hosttest.Symlink(t, "../../devices/"+place, dir, host.ClassDir+"/"+device)
		}
		removed := func(place string) {
			if err := os.RemoveAll(filepath.Join(dir, "sys/devices", place)); err != nil {
				t.Fatal(err)
			}
		}
		id := func(place string) uint64 {
			id, err := l.Identity("sys/devices/" + place)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		check := func(what string, names []string, want ...uint64) {
			t.Helper()
			opened := l.Opened()
			for range 3 {
				got, ids, err := l.Identities(host.ClassDir)
				if err != nil || !slices.Equal(got, names) || !slices.Equal(ids, want) || l.Opened() != opened {
					t.Errorf("%s: %v %v %v, want %v; %d paths opened", what, got, ids, err, want, l.Opened()-opened)
				}
			}
		}
		if _, _, err := l.Identities(host.ClassDir); !access.IsAbsent(err) {
			t.Errorf("without the class: %v", err)
		}
		made("mlx5_0", "a")
		made("mlx5_1", "b")
		both := []string{"mlx5_0", "mlx5_1"}
		check("at first", both, id("a"), id("b"))
		made("mlx5_0", "c")
		check("in another place", both, id("c"), id("b"))
		removed("b")
		made("mlx5_1", "nowhere")
		removed("nowhere")
		check("without a directory", both, id("c"), 0)
		hosttest.Put(t, dir, "sys/devices/nowhere/node_type", "1: CA\n")
		check("with its directory again", both, id("c"), id("nowhere"))
	})
}
