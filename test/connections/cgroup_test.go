//go:build e2e

package connections

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// cgroup is a control group with a memory limit.
type cgroup struct {
	dir string
	version
}

// version has the files of a version of control groups.
type version struct {
	root, limit string
	socketLimit string // empty: the limit includes sockets
	kills       string // file with a line "oom_kill N"
	sockets     string // file with the memory of sockets
	line        string // its line; empty: the whole file
}

// versions are those whose memory controller may be in use (kernel: admin-guide/cgroup-v2.rst,
// admin-guide/cgroup-v1/memory.rst). Version 1 counts sockets separately, once they have a limit.
var versions = []version{
	{"/sys/fs/cgroup", "memory.max", "", "memory.events", "memory.stat", "sock "},
	{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.kmem.tcp.limit_in_bytes", "memory.oom_control", "memory.kmem.tcp.usage_in_bytes", ""},
}

// newCgroup requires root.
func newCgroup(t *testing.T, limit int64) cgroup {
	t.Helper()
	for _, v := range versions {
		g := cgroup{filepath.Join(v.root, fmt.Sprintf("rdma_exporter-test-%d", os.Getpid())), v}
		if os.Mkdir(g.dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { must(t, os.Remove(g.dir)) })
		err := g.write(v.limit, strconv.FormatInt(limit, 10))
		if err == nil && v.socketLimit != "" {
			err = g.write(v.socketLimit, strconv.FormatInt(limit, 10))
		}
		if err == nil {
			return g
		}
	}
	t.Fatal("cannot create a control group with a memory limit below /sys/fs/cgroup: run as root")
	return cgroup{}
}

// write writes a file that the kernel provides.
func (g cgroup) write(file, text string) error {
	f, err := os.OpenFile(filepath.Join(g.dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

// command runs a program in the group.
func (g cgroup) command(name string, args ...string) *exec.Cmd {
	into := []string{"-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(g.dir, "cgroup.procs"), name}
	return exec.Command("sh", append(into, args...)...)
}

func (g cgroup) read(t *testing.T, file, line string) int64 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(g.dir, file))
	must(t, err)
	_, text, _ := strings.Cut("\n"+string(b), "\n"+line)
	text, _, _ = strings.Cut(text, "\n")
	n, err := strconv.ParseInt(text, 10, 64)
	must(t, err)
	return n
}

func (g cgroup) killed(t *testing.T) int64 { t.Helper(); return g.read(t, g.kills, "oom_kill ") }

func (g cgroup) socketMemory(t *testing.T) int64 { t.Helper(); return g.read(t, g.sockets, g.line) }
