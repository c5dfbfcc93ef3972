package host

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestIdentities: a device whose link was made again is another one, also if the link has the same inode. A link that
// leads nowhere is followed again in each call. What is the same opens no path.
func TestIdentities(t *testing.T) {
	bothWays(t, func(t *testing.T, dir string, l *Live) {
		made := func(device, place string) {
			put(t, dir, "sys/devices/"+place+"/node_type", "1: CA\n")
			link := filepath.Join(dir, classDir, device)
			if _, err := os.Stat(filepath.Dir(link)); err == nil {
				age(t, filepath.Dir(link))
				if _, _, err := l.Files.Identities(classDir); err != nil {
					t.Error(err)
				}
			}
			if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			symlink(t, "../../devices/"+place, dir, classDir+"/"+device)
		}
		removed := func(place string) {
			if err := os.RemoveAll(filepath.Join(dir, "sys/devices", place)); err != nil {
				t.Fatal(err)
			}
		}
		id := func(place string) uint64 {
			id, err := l.Files.Identity("sys/devices/" + place)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		check := func(what string, names []string, want ...uint64) {
			t.Helper()
			opened := l.Files.Opened()
			for range 3 {
				got, ids, err := l.Files.Identities(classDir)
				if err != nil || !slices.Equal(got, names) || !slices.Equal(ids, want) || l.Files.Opened() != opened {
					t.Errorf("%s: %v %v %v, want %v; %d paths opened", what, got, ids, err, want, l.Files.Opened()-opened)
				}
			}
		}
		if _, _, err := l.Files.Identities(classDir); !IsAbsent(err) {
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
		put(t, dir, "sys/devices/nowhere/node_type", "1: CA\n")
		check("with its directory again", both, id("c"), id("nowhere"))
	})
}
