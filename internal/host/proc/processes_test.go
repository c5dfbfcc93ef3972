package proc

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/snapshot/accel"
)

// processTree is a /proc tree: the open files and the files of each process.
type processTree struct {
	t   testing.TB
	Dir string
}

func (p processTree) Process(pid int, open []string, files map[string]string) {
	dir := filepath.Join(p.Dir, "proc", fmt.Sprint(pid))
	if err := os.MkdirAll(filepath.Join(dir, "fd"), 0o755); err != nil {
		p.t.Fatal(err)
	}
	for i, target := range open {
		if err := os.Symlink(target, filepath.Join(dir, "fd", fmt.Sprint(i))); err != nil {
			p.t.Fatal(err)
		}
	}
	all := map[string]string{"status": statusOf(0)}
	maps.Copy(all, files)
	for name, text := range all {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
}

// statusOf is /proc/PID/status of a process of a user.
func statusOf(uid int) string {
	return fmt.Sprintf("Name:\tpython\nUid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\nGid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\nGroups:\t\n", uid)
}

// NewProcessTree returns an empty tree, and a table of it that scans everything: its clock stands still.
func NewProcessTree(t testing.TB) (processTree, *processTable) {
	p := processTree{t, t.TempDir()}
	for _, d := range []string{"sys", "proc/self"} {
		if err := os.MkdirAll(filepath.Join(p.Dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tr, err := rooted.Open(rooted.Paths{RootFS: p.Dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close() })
	table := NewProcessTable(tr, false)
	unhurried(table)
	return p, table
}

const (
	ncclMaps   = "7f00-7f10 r-xp 00000000 fd:00 123 /usr/lib/python3/nvidia/nccl/lib/libnccl.so.2.22.3\n7f10-7f20 r--p 00000000 fd:00 124 /usr/lib/libc.so.6\n"
	limitsText = "Limit                     Soft Limit           Hard Limit           Units\nMax locked memory         8388608              unlimited            bytes\n"
	statText   = "42 (python (x)) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 987654 1000 10"
)

const passwdText = "root:x:0:0:root:/root:/bin/sh\nann:x:1001:1001:Ann,,,:/home/ann:/bin/bash\n"

func TestProcesses(t *testing.T) {
	p, table := NewProcessTree(t)
	devices := []string{
		"/dev/nvidia3", "/dev/nvidia3", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/infiniband/uverbs2",
		"/dev/infiniband/uverbs0", "socket:[1]", "/dev/null",
	}
	p.Process(42, devices, map[string]string{
		"maps": ncclMaps, "limits": limitsText, "stat": statText,
		"cgroup": "0::/system.slice/slurmstepd.scope/job_77/step_0\n",
		"status": statusOf(1001), "root/etc/passwd": passwdText,
		"root/home/ann/.nccl.conf": "NCCL_IB_GID_INDEX=3\nTOKEN=hidden\n",
		"root/etc/nccl.conf":       "NCCL_IB_GID_INDEX=1\nNCCL_IB_TC=106\n",
		"environ":                  "PATH=/bin\x00NCCL_IB_HCA=mlx5\x00AWS_SECRET_ACCESS_KEY=hidden\x00NCCL_NET_GDR_LEVEL=PIX\x00WORLD_SIZE=16\x00MY_NCCL_X=no\x00",
	})
	p.Process(43, []string{"/dev/infiniband/uverbs0"}, map[string]string{
		"limits": "Max locked memory         unlimited            unlimited            bytes\n", "maps": ncclMaps,
		"cgroup": "0::/kubepods.slice/kubepods-pod0a1b2c3d_1111_2222_3333_444455556666.slice\n",
	})
	p.Process(44, []string{"/dev/nvidia0", "/dev/infiniband/rdma_cm"}, nil)
	p.Process(46, []string{"/dev/nvidia5"},
		map[string]string{"maps": ncclMaps + "7f00-7f10 r-xp 0 fd:00 9 /opt/lib/libnixl.so\n", "stat": "46 (vllm) S"})
	p.Process(45, nil, nil)
	memlock := uint64(8388608)
	want := []accel.Process{
		{
			PID: 42, Command: "python (x)", GPUs: []int{3}, Verbs: []string{"uverbs0", "uverbs2"}, NCCL: "2.22.3", HasNCCL: true,
			Libraries: []string{"nccl"}, RDMANodes: new(false), IMEXChannels: new(false),
			LockedMemory: &memlock, Job: "slurm/77", Step: "0", Started: 9876540 * time.Millisecond,
			Env:  map[string]string{"NCCL_IB_HCA": "mlx5", "NCCL_NET_GDR_LEVEL": "PIX", "WORLD_SIZE": "16"},
			Conf: map[string]string{"NCCL_IB_GID_INDEX": "3", "NCCL_IB_TC": "106"},
		},
		{PID: 43, Verbs: []string{"uverbs0"}, Libraries: []string{"nccl"}, Unlimited: true, Env: map[string]string{}, Job: "kubernetes/0a1b2c3d-1111-2222-3333-444455556666"},
		{
			PID: 46, Command: "vllm", GPUs: []int{5}, NCCL: "2.22.3", HasNCCL: true, Mover: true, Env: map[string]string{},
			Libraries: []string{"nccl", "nixl"},
		},
	}
	got, refused, err := table.Processes(t.Context(), nil, false)
	if err != nil || refused || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v %v\nwant %+v", got, refused, err, want)
	}
	if err := os.RemoveAll(filepath.Join(p.Dir, "proc", "42")); err != nil {
		t.Fatal(err)
	}
	if got, _, err := table.Processes(t.Context(), nil, false); len(got) != 2 || got[0].PID != 43 || err != nil ||
		table.lib[42].hasNCCL {
		t.Errorf("%+v %v", got, err)
	}
}

// TestProcessesNamed: named processes are checked in each scan, however long the others take.
func TestProcessesNamed(t *testing.T) {
	p, table := NewProcessTree(t)
	for pid := 10; pid < 14; pid++ {
		p.Process(pid, nil, nil)
	}
	p.Process(99, []string{"/dev/infiniband/uverbs0"}, nil)
	var clock time.Time
	still := table.now
	table.now = func() time.Time {
		clock = clock.Add(scanTime / 2)
		return clock
	}
	if got, _, err := table.Processes(t.Context(), []int{99, 12345}, true); len(got) != 1 || got[0].PID != 99 ||
		err != nil || table.next == 0 {
		t.Errorf("one that cannot be seen: %+v %v", got, err)
	}
	p.Process(98, []string{"/dev/infiniband/uverbs0"}, nil)
	table.now = still
	if got, _, err := table.Processes(t.Context(), nil, false); len(got) != 2 || err != nil {
		t.Errorf("all: %+v %v", got, err)
	}
	if got, _, err := table.Processes(t.Context(), []int{98}, true); len(got) != 1 || got[0].PID != 98 || err != nil {
		t.Errorf("no others: %+v %v", got, err)
	}
	if got, _, err := table.Processes(t.Context(), nil, true); len(got) != 0 || err != nil {
		t.Errorf("nobody: %+v %v", got, err)
	}
}

// TestProcessesContinue: a scan that runs out of time is continued by the next one, and keeps earlier results.
func TestProcessesContinue(t *testing.T) {
	p, table := NewProcessTree(t)
	for pid := 10; pid < 14; pid++ {
		p.Process(pid, []string{"/dev/infiniband/uverbs0"}, nil)
	}
	var clock time.Time
	table.now = func() time.Time { // two processes per scan
		clock = clock.Add(scanTime / 2)
		return clock
	}
	for scan, want := range []int{2, 4, 4, 4} {
		if got, _, err := table.Processes(t.Context(), nil, false); len(got) != want || err != nil {
			t.Errorf("scan %d: %+v %v", scan, got, err)
		}
	}
}

// TestProcessesNamedContinue: many named processes take several scans, and others are checked as well.
func TestProcessesNamedContinue(t *testing.T) {
	p, table := NewProcessTree(t)
	var named []int
	for pid := 10; pid < 18; pid++ {
		p.Process(pid, []string{"/dev/infiniband/uverbs0"}, nil)
		named = append(named, pid)
	}
	p.Process(50, nil, nil)
	p.Process(99, []string{"/dev/infiniband/uverbs0"}, nil)
	var clock time.Time
	table.now = func() time.Time { // three processes per scan
		clock = clock.Add(30 * time.Millisecond)
		return clock
	}
	for scan, want := range []int{3, 7, 9, 9} { // 50 is found in the first scan, 99 in the second
		if got, _, err := table.Processes(t.Context(), named, false); len(got) != want || err != nil {
			t.Errorf("scan %d: %+v %v", scan, got, err)
		}
	}
	var only []int
	table.held, table.named = map[int]accel.Process{}, 0
	for range 3 {
		got, _, err := table.Processes(t.Context(), named, true)
		if only = append(only, len(got)); err != nil {
			t.Fatal(err)
		}
	}
	if want := []int{3, 6, 8}; !reflect.DeepEqual(only, want) {
		t.Errorf("only those: %v, want %v", only, want)
	}
}

// TestProcessWithManyFiles: one process does not use up a scan, and its further files are unknown.
func TestProcessWithManyFiles(t *testing.T) {
	p, table := NewProcessTree(t)
	open := append([]string{"/dev/nvidia3"}, slices.Repeat([]string{"socket:[1]"}, 2*maxOpenFiles)...)
	p.Process(42, open, map[string]string{"maps": ncclMaps, "stat": statText})
	p.Process(43, open[:maxOpenFiles], map[string]string{"maps": ncclMaps, "stat": statText})
	for _, named := range []string{"42", "43"} { // a copied tree lists names unsorted
		fd, err := unix.Open(filepath.Join(p.Dir, "proc", named, "fd"), unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		names, whole, err := rooted.SomeNames(fd, maxOpenFiles)
		unix.Close(fd)
		if len(names) != maxOpenFiles || whole != (named == "43") || err != nil {
			t.Errorf("%s: %d names, whole: %v, %v", named, len(names), whole, err)
		}
	}
	if one, err := table.holds(42); !one.Cut || err != nil {
		t.Errorf("%+v %v", one, err)
	}
	if one, err := table.holds(43); one.Cut || !reflect.DeepEqual(one.GPUs, []int{3}) || err != nil {
		t.Errorf("%+v %v", one, err)
	}
}

// TestDMABUFs: DMA-BUFs of GPU memory beside an RDMA device, as of fdinfo of an H100 and of amdgpu; once per buffer,
// and within the limit.
func TestDMABUFs(t *testing.T) {
	const head = "pos:\t0\nflags:\t02100002\nmnt_id:\t16\n"
	buffer := func(inode string, size int, exporter, name string) string {
		text := head + inode + fmt.Sprintf("size:\t%d\ncount:\t2\nexp_name:\t%s\n", size, exporter)
		if name != "" {
			text += "name:\t" + name + "\n"
		}
		return text
	}
	p, table := NewProcessTree(t)
	verbs := "/dev/infiniband/uverbs0"
	nvidia := []string{verbs, "/dmabuf:", "/dmabuf:", "/dmabuf:cache", "/dmabuf:", "/dmabuf:gone"}
	nvidiaInfo := map[string]string{
		"fdinfo/0": head, "fdinfo/1": buffer("ino:\t7\n", 2<<20, "nv_dmabuf", ""),
		"fdinfo/2": buffer("ino:\t7\n", 2<<20, "nv_dmabuf", ""),
		"fdinfo/3": buffer("ino:\t8\n", 4<<20, "nv_dmabuf", "x\nsize:\t99"), "fdinfo/4": buffer("ino:\t9\n", 4096, "drm", ""),
	}
	many := []string{verbs}
	manyInfo := map[string]string{}
	for i := range maxDMABUFs + 5 {
		many = append(many, "/dmabuf:")
		manyInfo[fmt.Sprintf("fdinfo/%d", i+1)] = buffer("", 4096, "nv_dmabuf", "")
	}
	for i, c := range []struct {
		name string
		open []string
		info map[string]string
		want []accel.DMABUFs
	}{
		{"NVIDIA, one of them twice, one named, one closed meanwhile", nvidia, nvidiaInfo, []accel.DMABUFs{{Exporter: "nv_dmabuf", Buffers: 2, Bytes: 6 << 20}}},
		{"without an RDMA device", nvidia[1:], map[string]string{"fdinfo/0": buffer("ino:\t7\n", 4096, "nv_dmabuf", "")}, nil},
		{"amdgpu", []string{verbs, "/dev/kfd", "/dmabuf:"}, map[string]string{"fdinfo/2": buffer("ino:\t7\n", 4096, "drm", "")}, []accel.DMABUFs{{Exporter: "drm", Buffers: 1, Bytes: 4096}}},
		{"a camera", []string{verbs, "/dev/kfd", "/dmabuf:"}, map[string]string{"fdinfo/2": buffer("ino:\t7\n", 4096, "videobuf2", "exp_name:\tdrm")}, nil},
		{"fdinfo refused, or of another kernel", []string{verbs, "/dmabuf:"}, map[string]string{"fdinfo/1": head}, nil},
		{"more than are read", many, manyInfo, []accel.DMABUFs{{Exporter: "nv_dmabuf", Buffers: maxDMABUFs, Bytes: maxDMABUFs * 4096}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.Process(100+i, c.open, c.info)
			one, err := table.holds(100 + i)
			if err != nil || !reflect.DeepEqual(one.DMABUFs, c.want) {
				t.Errorf("%+v %v, want %+v", one.DMABUFs, err, c.want)
			}
		})
	}
}

func TestJobOf(t *testing.T) {
	const scope = "0::/system.slice/slurmstepd.scope/job_77/step_0\n"
	for _, c := range []struct{ name, id, cgroup, want string }{
		{"cgroup", "", scope, "slurm/77"},
		{"cgroup and another ID", "88", scope, "slurm/77"}, // of another's job
		{"ID only", "88", "0::/user.slice\n", "slurm/88"},
		{"array task", "88_3", "", "slurm/88_3"},
		{"ID with a newline", "88\n", "", ""},
		{"two IDs", "88 99", "", ""},
		{"letter", "x", "", ""},
		{"empty task number", "88_", "", ""},
		{"too long", "88888888888", "", ""},
		{"none", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := placeOf(map[string]string{"SLURM_JOB_ID": c.id}, []byte(c.cgroup)).job; got != c.want {
				t.Errorf("%q in %q: %q, want %q", c.id, c.cgroup, got, c.want)
			}
		})
	}
	if got := commandOf([]byte("7 (a\x1b[2J\nb) S")); got != "a?[2J?b" {
		t.Errorf("%q", got)
	}
}

// TestPlaceOf: control groups as Slurm, the kubelet, container runtimes and systemd name them.
func TestPlaceOf(t *testing.T) {
	const (
		uid  = "0a1b2c3d-1111-2222-3333-444455556666"
		hash = "d2b1f5d0c9a84e7b6c5d4e3f2a1b0c9d"
		id   = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		id12 = "0123456789ab"
	)
	for _, c := range []struct {
		name, cgroup string
		want         cgroupPlace
	}{
		{"step of Slurm", "0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_3\n", cgroupPlace{job: "slurm/77", step: "0"}},
		{"batch step, several slurmd", "0::/system.slice/node1_slurmstepd.scope/job_77/step_batch/user/task_0\n", cgroupPlace{job: "slurm/77", step: "batch"}},
		{"version 1", "5:devices:/slurm/uid_1001/job_77/step_extern/task_0\n1:name=systemd:/system.slice/slurmd.service\n", cgroupPlace{job: "slurm/77", step: "extern"}},
		{"job without step", "0::/system.slice/slurmstepd.scope/job_77\n", cgroupPlace{job: "slurm/77"}},
		{"kubelet with systemd", "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b2c3d_1111_2222_3333_444455556666.slice/cri-containerd-" + id + ".scope\n", cgroupPlace{job: "kubernetes/" + uid, container: id12}},
		{"kubelet with cgroupfs", "0::/kubepods/besteffort/pod" + uid + "/" + id + "\n", cgroupPlace{job: "kubernetes/" + uid, container: id12}},
		{"kubelet below containerd", "0::/system.slice/containerd.service/kubepods-besteffort-pod0a1b2c3d_1111_2222_3333_444455556666.slice:cri-containerd:" + id + "\n", cgroupPlace{job: "kubernetes/" + uid, container: id12}},
		{"static pod", "0::/kubepods/burstable/pod" + hash + "/" + id + "\n", cgroupPlace{job: "kubernetes/" + hash, container: id12}},
		{"seen from another control group namespace", "0::/../../kubepods-pod0a1b2c3d_1111_2222_3333_444455556666.slice/cri-containerd-" + id + ".scope\n", cgroupPlace{job: "kubernetes/" + uid, container: id12}},
		{"docker", "0::/system.slice/docker-" + id + ".scope\n", cgroupPlace{container: id12}},
		{"docker with cgroupfs", "0::/docker/" + id + "\n", cgroupPlace{container: id12}},
		{"podman", "0::/machine.slice/libpod-" + id + ".scope/container\n", cgroupPlace{container: id12}},
		{"a container in a container", "0::/docker/ff" + id[2:] + "/docker/" + id + "\n", cgroupPlace{container: id12}},
		{"service", "0::/system.slice/nfs-ganesha.service\n", cgroupPlace{unit: "nfs-ganesha.service"}},
		{"instance of a service", "0::/system.slice/system-weka.slice/weka@0.service/worker\n", cgroupPlace{unit: "weka@0.service"}},
		{"login session", "0::/user.slice/user-1001.slice/session-3.scope\n", cgroupPlace{unit: "session-3.scope"}},
		{"manager of a user", "0::/user.slice/user-1001.slice/user@1001.service/app.slice/secret.service\n", cgroupPlace{unit: "user.slice"}},
		{"hexadecimal, not a container", "0::/a/" + id[1:] + "\n", cgroupPlace{}},
		{"root", "0::/\n", cgroupPlace{}},
		{"none", "", cgroupPlace{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := placeOf(nil, []byte(c.cgroup))
			if got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// TestNamesOfJobs: without permission they are not read, and a helper does not send them.
func TestNamesOfJobs(t *testing.T) {
	p, table := NewProcessTree(t)
	p.Process(42, []string{"/dev/infiniband/uverbs0"}, map[string]string{
		"stat": statText, "environ": "SLURM_JOB_ID=7\x00SLURM_JOB_NAME=secret " + strings.Repeat("ä", 100) + "\x00",
		"status": "Uid:\t1001\t0\t0\t0\n",
	})
	found, _, err := table.Processes(t.Context(), nil, false)
	if err != nil || len(found) != 1 || found[0].JobName+found[0].User != "" || found[0].Job != "slurm/7" {
		t.Errorf("%+v %v", found, err)
	}
	table.names = true
	found, _, err = table.Processes(t.Context(), nil, false)
	if err != nil || len(found) != 1 || !strings.HasPrefix(found[0].JobName, "secret ä") ||
		len(found[0].JobName) > jobNameLength || found[0].User != "1001" || !isProcess(&found[0]) {
		t.Errorf("%+v %v", found, err)
	}
	h := &Helper{tree: table.Tree, table: table, turns: access.NewTurns()}
	for _, names := range []bool{false, true} {
		a := h.answer(t.Context(), helperRequest{Read: source.Processes.Name(), Names: names})
		if len(a.Processes) != 1 || (a.Processes[0].User != "") != names || (a.Processes[0].JobName != "") != names {
			t.Errorf("requested: %v: %+v", names, a)
		}
	}
}

func TestMapped(t *testing.T) {
	for _, c := range []struct {
		name, text, version string
		nccl, plugin        bool
		libraries           string
	}{
		{"library with version", ncclMaps, "2.22.3", true, false, "nccl"},
		{"library without version", "1-2 r-xp 0 fd:00 1 /opt/libnccl.so.2\n", "", true, false, "nccl"},
		{"deleted library and net plugin", "1-2 r-xp 0 fd:00 1 /opt/libnccl.so.2.27.3 (deleted)\n1-2 r-xp 0 fd:00 1 /opt/libnccl-net-ofi.so\n", "2.27.3", true, true, "nccl"},
		{"tuner plugin", "1-2 r-xp 0 fd:00 1 /opt/libnccl-tuner.so\n", "", false, false, ""},
		{"NIXL", "1-2 r-xp 0 fd:00 1 /opt/lib/libnixl.so\n", "", false, false, "nixl"},
		{"Mooncake", "1-2 r-xp 0 fd:00 1 /usr/lib/python3/mooncake/engine.so\n", "", false, false, "mooncake"},
		{"nothing", "", "", false, false, ""},
		{"a wheel of NIXL with UCX", "1-2 r-xp 0 fd:00 1 /a/nixl_cu12.libs/libucp-e091ee2e.so.0.0.0\n1-2 r-xp 0 fd:00 1 /a/nixl_cu12.libs/ucx/libuct_ib-1b2c3d4e.so.0\n1-2 r--p 0 fd:00 1 /a/nixl_cu12.libs/libucp-e091ee2e.so.0.0.0\n1-2 r-xp 0 fd:00 1 /a/.nixl_cu12.mesonpy.libs/libnixl.so\n", "", false, false, "nixl ucx"},
		{"DeepEP on NVSHMEM", "1-2 r-xp 0 fd:00 1 /a/site-packages/deep_ep_cpp.cpython-312-x86_64-linux-gnu.so\n1-2 r-xp 0 fd:00 1 /a/nvshmem_bootstrap_uid.so.3\n", "", false, false, "deepep nvshmem"},
		{"PyTorch links to NVSHMEM, MPI to UCX", "1-2 r-xp 0 fd:00 1 /a/nvidia/nvshmem/lib/libnvshmem_host.so.3\n1-2 r-xp 0 fd:00 1 /a/torch/lib/libtorch_nvshmem.so\n1-2 r-xp 0 fd:00 1 /a/libucp.so.0\n1-2 r-xp 0 fd:00 1 /a/libuct.so.0\n", "", false, false, ""},
		{"others", "1-2 r-xp 0 fd:00 1 /opt/rocm/lib/librccl.so.1.0\n1-2 r-xp 0 fd:00 1 /usr/lib/libfabric.so.1\n1-2 r-xp 0 fd:00 1 /a/_mscclpp.so\n1-2 r-xp 0 fd:00 1 /a/libtransfer_engine.so\n", "", false, false, "libfabric mooncake mscclpp rccl"},
		{"names in directories", "1-2 r-xp 0 fd:00 1 /home/mooncake/x/libc.so.6\n1-2 r-xp 0 fd:00 1 /opt/nixl/deep_ep/lib/libucm.so\n1-2 r-xp 0 fd:00 1 /opt/libfabric-1.2/libm.so\n1-2 r-xp 0 fd:00 1 /a/libucplus.so\n", "", false, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			version, nccl, plugin := mapped([]byte(c.text))
			names := librariesIn([]byte(c.text))
			if version != c.version || nccl != c.nccl || plugin != c.plugin || strings.Join(names, " ") != c.libraries {
				t.Errorf("%q: %q %v %v %v", c.text, version, nccl, plugin, names)
			}
			if !areLibraries(names) {
				t.Errorf("%v would be rejected from the helper", names)
			}
		})
	}
	for _, names := range [][]string{{"ucx", "nccl"}, {"ucx", "ucx"}, {"spark\n"}} {
		if areLibraries(names) {
			t.Errorf("%q would be accepted from the helper", names)
		}
	}
	if got := statField([]byte(statText), statStart); got != "987654" {
		t.Errorf("start %q", got)
	}
	if got := statField(nil, statStart); got != "" {
		t.Errorf("start %q", got)
	}
}

func FuzzProcessFiles(f *testing.F) {
	f.Add([]byte(statText), []byte(ncclMaps))
	f.Add([]byte(limitsText), []byte("A=1\x00NCCL_DEBUG=INFO\x00"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		statField(a, statStart)
		mapped(b)
		if !areLibraries(librariesIn(b)) {
			t.Fatalf("%v of %q", librariesIn(b), b)
		}
		lockedMemory(a)
		env, _ := environment(b)
		at := placeOf(env, a)
		p := accel.Process{Job: at.job, Step: at.step, Container: at.container, Unit: at.unit}
		if !isPlaced(&p) {
			t.Fatalf("%+v of %q", at, a)
		}
		variable(b, "HOME")
		uidOf(a)
		credentialsOf(a)
		parseDMABUF(string(a))
		commandOf(a)
	})
}
