package proc

import (
	"os"
	"testing"

	"rdma_exporter/internal/host/rooted"
)

func TestInnerPID(t *testing.T) {
	p, table := NewProcessTree(t)
	for pid, status := range map[int]string{
		41: "Name:\tpython\nNSpid:\t41\nUid:\t0\n", 42: "NSpid:\t42\t1042\t7\n", 43: "Name:\tpython\n", 44: "NSpid:\n",
		45: "NSpid:\t45\tx\n",
	} {
		p.Process(pid, nil, map[string]string{"status": status})
	}
	for pid, want := range map[int]int{41: 41, 42: 7, 43: 43, 44: 44, 45: 45, 46: 46} {
		if got := InnerPID(table.Tree, pid); got != want {
			t.Errorf("%d: %d, want %d", pid, got, want)
		}
	}
}

// TestNamespacesOfThisProcess uses the running kernel.
func TestNamespacesOfThisProcess(t *testing.T) {
	tree, err := rooted.Open(rooted.Paths{RootFS: "/"})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	if got := InnerPID(tree, os.Getpid()); got != os.Getpid() {
		t.Errorf("%d, want %d", got, os.Getpid())
	}
	if same, known := SameNetwork(tree, os.Getpid()); !same || !known {
		t.Errorf("same %t, known %t", same, known)
	}
	if same, known := SameNetwork(tree, 1<<30); same || known {
		t.Errorf("no such process: same %t, known %t", same, known)
	}
}

func TestSameNetwork(t *testing.T) {
	p, table := NewProcessTree(t)
	p.Process(41, nil, map[string]string{"ns/x": ""})
	p.Process(42, nil, map[string]string{"ns/x": ""})
	if err := os.MkdirAll(p.Dir+"/proc/self/ns", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"self/ns/net": "net:[1]", "41/ns/net": "net:[1]", "42/ns/net": "net:[2]"} {
		if err := os.Symlink(target, p.Dir+"/proc/"+name); err != nil {
			t.Fatal(err)
		}
	}
	for pid, want := range map[int][2]bool{41: {true, true}, 42: {false, true}, 43: {}} {
		if same, known := SameNetwork(table.Tree, pid); [2]bool{same, known} != want {
			t.Errorf("%d: same %t, known %t", pid, same, known)
		}
	}
}
