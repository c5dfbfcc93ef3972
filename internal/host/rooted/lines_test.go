package rooted

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
)

func TestLines(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("ffffffff81000000 T some_symbol\n", 20000) +
		"0000000000000000 T ib_umem_dmabuf_get\t[ib_uverbs]\n" +
		strings.Repeat("x", 200<<10) + "\n0000000000000000 T last"
	for _, d := range []string{"sys", "proc"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "proc", "kallsyms"), []byte(long), 0o644); err != nil {
		t.Fatal(err)
	}
	tr, err := Open(Paths{RootFS: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	for _, c := range []struct {
		name  string
		words []string
		want  string
	}{
		{"two words", []string{"ib_umem_dmabuf_get", "ib_register_peer_memory_client"}, "0000000000000000 T ib_umem_dmabuf_get\t[ib_uverbs]\n"},
		{"last line", []string{"T last"}, "0000000000000000 T last"},
		{"no match", []string{"not there"}, ""},
		{"no words", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := tr.Lines("proc/kallsyms", c.words)
			if string(got) != c.want || err != nil {
				t.Errorf("%q: %q %v", c.words, got, err)
			}
		})
	}
	if got, err := tr.Lines("proc/kallsyms", []string{"symbol"}); len(got) == 0 || len(got) > host.MaxFile || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := tr.Lines("proc/none", nil); !access.IsAbsent(err) {
		t.Errorf("%v", err)
	}
}
