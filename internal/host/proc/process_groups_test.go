package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// restrict gives the node of an RDMA device a mode, and the group of this process.
func restrict(t *testing.T, dir string, mode os.FileMode) {
	t.Helper()
	node := filepath.Join(dir, nodesDir, "uverbs0")
	if err := errors.Join(
		os.MkdirAll(filepath.Dir(node), 0o755), os.WriteFile(node, nil, 0o600), os.Chmod(node, mode),
		os.Chown(node, -1, os.Getegid()),
	); err != nil {
		t.Fatal(err)
	}
}

// TestMayOpen: root and members of the group that owns a node may open it, others may where the mode lets them. Of a
// process with two users it is unknown.
func TestMayOpen(t *testing.T) {
	own := os.Getegid()
	status := func(uid int, groups ...int) string {
		return fmt.Sprintf("Uid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\nGid:\t70001\t70001\t70001\t70001\nGroups:\t%s \n", uid,
			fmt.Sprint(groups)[1:len(fmt.Sprint(groups))-1])
	}
	for _, c := range []struct {
		name   string
		mode   os.FileMode
		status string
		want   string
	}{
		{"member", 0o660, status(1001, 4, own), "true"},
		{"other", 0o660, status(1001, 4, own+1), "false"},
		{"without groups", 0o660, status(1001), "false"},
		{"root", 0o660, status(0), "true"},
		{"two users", 0o660, "Uid:\t1001\t0\t0\t0\nGid:\t1\t1\t1\t1\n", "nil"},
		{"no status", 0o660, "", "nil"},
		{"others may", 0o666, status(1001), "nil"},
		{"others may read only", 0o664, status(1001), "false"},
	} {
		p, table := NewProcessTree(t)
		restrict(t, p.Dir, c.mode)
		p.Process(42, []string{"/dev/nvidia3"}, map[string]string{"maps": ncclMaps, "status": c.status})
		found, _, err := table.Processes(t.Context(), nil, false)
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %+v %v", c.name, found, err)
		}
		got := "nil"
		if found[0].MayOpen != nil {
			got = fmt.Sprint(*found[0].MayOpen)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
