package rooted

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host/access"
)

// TestTails: only ends of large files are read, from a whole line on, and no pipe, link or directory.
func TestTails(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"large": "first\n" + strings.Repeat("x", 2*tailSize) + "\nlast\nhalf", "small": "a\nb", "other": "c",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Tails(t.Context(), dir, func(name string) bool { return name != "other" })
	if err != nil || !slices.Equal(slices.Sorted(maps.Keys(got)), []string{"large", "small"}) ||
		string(got["large"]) != "last\nhalf" || string(got["small"]) != "a\nb" {
		t.Errorf("%q %v", got, err)
	}
	all := func(string) bool { return true }
	for name, create := range map[string]func(string) error{
		"pipe":      func(n string) error { return unix.Mkfifo(n, 0o600) },
		"directory": func(n string) error { return os.Mkdir(n, 0o700) },
		"link":      func(n string) error { return os.Symlink("/etc/passwd", n) },
	} {
		dir := t.TempDir()
		if err := create(filepath.Join(dir, "x")); err != nil {
			t.Fatal(err)
		}
		if got, err := Tails(t.Context(), dir, all); err == nil || len(got) > 0 {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	if _, err := Tails(t.Context(), dir+"/none", all); err == nil || !strings.Contains(err.Error(), dir+"/none") {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	block := make(chan struct{})
	cancel()
	_, err = Tails(ended, dir, func(string) bool {
		<-block
		return false
	})
	close(block)
	if access.ReasonOf(err) != access.Late {
		t.Errorf("%v", err)
	}
}
