package foreign_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/cli"
	"rdma_exporter/test/machines"
)

// settingsOfJobs are variables that a job sets and a command shows.
var settingsOfJobs = []string{
	"NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "NCCL_NET", "NCCL_NET_GDR_LEVEL", "NCCL_IB_GID_INDEX", "NCCL_IB_TC", "NCCL_IB_SL",
	"NCCL_IB_TIMEOUT", "NCCL_TOPO_FILE", "NCCL_DEBUG", "UCX_IB_TRAFFIC_CLASS", "SLURM_JOB_ID", "WORLD_SIZE",
}

// TestProcesses reads a real tree in which a process chooses all that is its own: name, environment, control group,
// libraries, and the file of NCCL that it names.
func TestProcesses(t *testing.T) {
	for _, all := range []bool{true, false} {
		m := newMarks()
		dir := machines.Tree(t, "hgx-h200-roce")
		p := filepath.Join(dir, "proc/90211")
		var environ strings.Builder
		for _, name := range settingsOfJobs {
			value := m.payload(name)
			if !all && name != "NCCL_IB_HCA" {
				continue
			}
			fmt.Fprintf(&environ, "%s=mlx5_99%s\x00", name, value)
		}
		fmt.Fprintf(&environ, "NCCL_%s=1\x00", m.payload("a name"))
		fmt.Fprintf(&environ, "NCCL_CONF_FILE=/etc/job.conf\x00")
		for name, text := range map[string]string{
			"proc/90211/environ":            environ.String(),
			"proc/90211/maps":               "7f00-7f10 r-xp 00000000 fd:00 123 /usr/lib/libnccl.so.2.27.3" + m.printable("library") + "\n",
			"proc/90211/stat":               "90211 (" + m.payload("comm")[:15] + ") S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 9 0 987654 1000 10",
			"proc/90211/cgroup":             "0::/system.slice/slurmstepd.scope/job_77" + m.printable("cgroup") + "/step_0\n",
			"proc/90211/status":             "Name:\tpython3\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t0\n",
			"proc/90211/root/etc/job.conf":  "NCCL_IB_SL=" + m.printable("file of the job") + "\x1b[8m\n",
			"proc/90211/root/etc/nccl.conf": "NCCL_IB_TC=" + m.printable("nccl.conf") + "\x1b[8m\n",
		} {
			at := filepath.Join(dir, name)
			must(t, os.MkdirAll(filepath.Dir(at), 0o755))
			must(t, os.WriteFile(at, []byte(text), 0o644))
		}
		must(t, os.MkdirAll(filepath.Join(p, "fd"), 0o755))
		for i, target := range []string{"/dev/nvidia0", "/dev/infiniband/uverbs0"} {
			must(t, os.Symlink(target, filepath.Join(p, "fd", fmt.Sprint(i))))
		}
		for _, name := range []string{"check", "topo", "job"} {
			for _, args := range commands[name].args {
				line := strings.TrimSpace(name + " " + args)
				out, errs := runOn(t, cli.Outside{},
					append([]string{"--path.rootfs=" + dir, "--state.dir=" + t.TempDir()}, strings.Fields(line)...)...)
				m.scanOutput(t, line, out)
				m.scan(t, line+", log", errs)
			}
		}
		shown := slices.Concat(settingsOfJobs, []string{"comm"})
		if !all {
			shown = []string{"NCCL_IB_HCA", "comm", "nccl.conf", "file of the job"}
		}
		for _, name := range shown {
			if !m.seen[name] {
				t.Errorf("%s: not shown (%v)", name, m.seen)
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
