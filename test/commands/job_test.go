package commands_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/internal/cli/report"
	"rdma_exporter/internal/command"
	"rdma_exporter/test/machines"
	"rdma_exporter/test/ras"
)

// TestJob: the jobs of recorded machines. NCCL is not asked in a replay.
func TestJob(t *testing.T) {
	for _, name := range []string{
		"job-port-down", "jobs-share-port-down", "storage-daemon-port-down", "sriov-pods-port-down",
		"gdr-ebpf-mixed", "no-rdma", "inference-stacks",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := runProgram(t, "--replay="+machines.Fixture(name), "job")
			if code != command.OK {
				t.Fatalf("exit code %d: %s", code, errs)
			}
			machines.Golden(t, "job/"+name+".txt", []byte(out))
		})
	}
}

// reported returns the report that job --json prints.
func reported(t *testing.T, args ...string) (r report.JobReport) {
	t.Helper()
	code, out, errs := runProgram(t, args...)
	if code != command.OK {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	must(t, json.Unmarshal([]byte(out), &r))
	return r
}

// TestJobSelected: a finding is on the job whose port it concerns, and not on the one beside it.
func TestJobSelected(t *testing.T) {
	replay := "--replay=" + machines.Fixture("jobs-share-port-down")
	for name, findings := range map[string]int{"48121": 0, "slurm/48130": 1} {
		r := reported(t, replay, "job", "--json", name)
		if len(r.Jobs) != 1 || !strings.HasSuffix("slurm/"+r.Jobs[0].ID, name) || len(r.Jobs[0].Findings) != findings {
			t.Errorf("%s: %+v", name, r.Jobs)
			continue
		}
		if findings == 1 &&
			(r.Jobs[0].Findings[0].Alert != "RDMAPortDown" || r.Jobs[0].Findings[0].Labels["device"] != "mlx5_5") {
			t.Errorf("%+v", r.Jobs[0].Findings)
		}
	}
	const unknown = "48131: no such job on this host: slurm/48121, slurm/48130"
	if code, _, errs := runProgram(t, replay, "job", "48131"); code != command.UsageError ||
		!strings.Contains(errs, unknown) {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestJobErrors(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--nccl-ras=localhost"}, "--nccl-ras=localhost: must be HOST:PORT such as localhost:28028"},
		{[]string{"--nccl-ras=localhost:0"}, "must be HOST:PORT"},
		{[]string{"--nccl-ras=localhost:28028", "--no-nccl"}, "has no effect with --no-nccl"},
		{[]string{"--nccl-dumps=/tmp"}, "--nccl-dumps: not with --replay"},
		{[]string{"--raw", "--json"}, "--raw and --json are mutually exclusive"},
		{[]string{"--daemon=x"}, "--daemon=x"},
	} {
		args := append([]string{"--replay=" + machines.Fixture("no-rdma"), "job"}, c.args...)
		if code, _, errs := runProgram(t, args...); code != command.UsageError || !strings.Contains(errs, c.want) {
			t.Errorf("%q: exit code %d: %s", c.args, code, errs)
		}
	}
}

const libnccl = "7f00-7f10 r-xp 00000000 fd:00 123 /usr/lib/libnccl.so.2.30.7\n"

// withProcess adds a process of a Slurm job to a tree: it holds a GPU and an RDMA device, and has NCCL loaded.
func withProcess(t *testing.T, dir string, pid int, job string, files map[string]string) {
	t.Helper()
	p := filepath.Join(dir, "proc", fmt.Sprint(pid))
	must(t, os.MkdirAll(filepath.Join(p, "fd"), 0o755))
	must(t, os.MkdirAll(filepath.Join(p, "ns"), 0o755))
	for i, target := range []string{"/dev/nvidia0", "/dev/infiniband/uverbs0"} {
		must(t, os.Symlink(target, filepath.Join(p, "fd", fmt.Sprint(i))))
	}
	all := map[string]string{
		"maps": libnccl,
		"stat": fmt.Sprintf("%d (python3) S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 9 0 987654 1000 10", pid), "environ": "",
		"cgroup": "0::/system.slice/slurmstepd.scope/job_" + job + "/step_0\n", "status": "Name:\tpython3\n",
	}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		must(t, os.WriteFile(filepath.Join(p, name), []byte(text), 0o644))
	}
}

// TestJobAsksNCCL reads a tree of a live host, and asks a service over TCP. Rank 0 of the job is PID 4001 in its
// container.
func TestJobAsksNCCL(t *testing.T) {
	dir := machines.Tree(t, "hgx-h200-roce")
	withProcess(t, dir, 90211, "77", map[string]string{"status": "NSpid:\t90211\t4001\n"})
	withProcess(t, dir, 90311, "78", nil)
	args := []string{
		"--path.rootfs=" + dir, "--state.dir=" + t.TempDir(), "job", "--nccl-ras=" + ras.Service(t, "v2.30.7-hang.json"),
	}

	r := reported(t, append(args, "--json")...)
	if len(r.Jobs) != 2 {
		t.Fatalf("%+v", r.Jobs)
	}
	w := r.Jobs[0].NCCL
	if !w.Asked || !w.Verified || w.Answer == nil {
		t.Fatalf("%+v", w)
	}
	if w.Answer.NCCL != "2.30.7+cuda13.0" || len(w.Answer.Problems) == 0 || w.Answer.Problems[0].Kind != "DEAD" ||
		len(w.Answer.Local) != 1 {
		t.Errorf("%+v", w.Answer)
	}
	// The other job shares the port: the answer is not its own.
	if w := r.Jobs[1].NCCL; !w.Asked || w.Answer != nil || !strings.Contains(w.Why, "the answer is that of another job") {
		t.Errorf("%+v", w)
	}

	code, out, errs := runProgram(t, append(args, "--raw", "77")...)
	if code != command.OK {
		t.Fatal(errs)
	}
	for _, want := range []string{
		"job slurm/77: ", "  Processes: 90211 python3\n",
		"NCCL 2.30.7+cuda13.0: 5 processes on 2 nodes, 5 GPUs; data collected in 10.0s, 2 timeouts\n",
		"    1 communicator of 5 ranks on 2 nodes: RUNNING, INCOMPLETE, MISMATCH\n",
		"    DEAD communicator 000000000000001f: considered dead: 1: rank 4 process 4003 on 10.0.0.12 GPU 0 (NVML 2)\n",
		"    Evidence only: ", "    |   \"nccl_version\": \"2.30.7+cuda13.0\",\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	if strings.Contains(out, "Not verified") {
		t.Errorf("%s", out)
	}
}

// TestJobReadsDumps: records of NCCL's Inspector of the job's processes, as they see themselves, and why there are
// none.
func TestJobReadsDumps(t *testing.T) {
	dir, dumps := machines.Tree(t, "hgx-h200-roce"), t.TempDir()
	withProcess(t, dir, 90211, "77", map[string]string{"status": "NSpid:\t90211\t4001\n"})
	withProcess(t, dir, 90212, "77", nil)
	withProcess(t, dir, 90311, "78", nil)
	name, err := os.Hostname()
	must(t, err)
	for rank, pid := range []int{4001, 90212} {
		must(t, os.WriteFile(filepath.Join(dumps, fmt.Sprintf("%s-pid%d.log", name, pid)), fmt.Appendf(nil,
			`{"header":{"id":"0x7","comm_name":"DP Group 0","rank":%d,"n_ranks":8},"metadata":{"dump_timestamp_us":1748030377748202,"pid":%d},"coll_perf":{"coll":"AllReduce","coll_msg_size_bytes":17179869184,"coll_busbw_gbs":%d}}`+"\n",
			rank, pid, 400+80*rank), 0o644))
	}
	args := []string{"--path.rootfs=" + dir, "--state.dir=" + t.TempDir(), "job", "--no-nccl", "--nccl-dumps=" + dumps}
	code, out, errs := runProgram(t, args...)
	for _, want := range []string{
		"    DP Group 0 of 8 ranks, 2 here, AllReduce of 16.0 GiB: 400.0 GB/s, from 400.0 (rank 0) to 480.0 (rank 1); last record 2025-05-23 19:59:37 UTC\n",
		"  NCCL Inspector: no records of its processes with NCCL in " + dumps + "\n",
	} {
		if code != command.OK || !strings.Contains(out, want) {
			t.Errorf("exit code %d %s: %q is missing in:\n%s", code, errs, want, out)
		}
	}
	r := reported(t, append(args, "--json", "77")...)
	if len(r.Jobs) != 1 || r.Jobs[0].Dumps == nil || len(r.Jobs[0].Dumps.Rates) != 1 ||
		r.Jobs[0].Dumps.Rates[0].Highest.Rank != 1 {
		t.Errorf("%+v", r.Jobs)
	}
	if _, out, _ = runProgram(t, append(args[:len(args)-1], "--nccl-dumps="+dumps+"/none", "78")...); !strings.Contains(
		out,
		"none: no such file or directory",
	) {
		t.Error(out)
	}
}

// TestJobWithoutProcesses: without permission for processes the answer is printed, and not assigned to a job.
func TestJobWithoutProcesses(t *testing.T) {
	service := ras.Service(t, "v2.30.7-ok.json")
	args := []string{
		"--path.rootfs=" + machines.Tree(t, "hgx-h200-roce"), "--state.dir=" + t.TempDir(), "job", "--nccl-ras=" + service,
	}
	r := reported(t, append(args, "--json")...)
	if len(r.Jobs) != 0 || r.NCCL == nil || r.NCCL.Answer == nil || r.NCCL.Verified || len(r.NCCL.Answer.Problems) != 0 {
		t.Errorf("%+v", r)
	}
	_, out, _ := runProgram(t, args...)
	if !strings.Contains(out, "Not verified to be this job") ||
		!strings.Contains(out, "1 communicator of 2 ranks on 1 node: RUNNING, OK") {
		t.Errorf("%s", out)
	}
}
