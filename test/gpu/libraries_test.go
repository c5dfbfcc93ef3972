//go:build gpu

package gpu

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// allocations allocates GPU memory as PyTorch does with expandable segments and without, by the driver itself, and
// exports it as DMA-BUFs. It prints the results as JSON, and keeps all until its input ends.
const allocations = `
import ctypes, json, os, sys, torch
cuda = ctypes.CDLL("libcuda.so.1")
class Prop(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", ctypes.c_int), ("device", ctypes.c_int),
        ("security", ctypes.c_void_p), ("compression", ctypes.c_ubyte), ("rdma", ctypes.c_ubyte),
        ("usage", ctypes.c_ushort), ("reserved", ctypes.c_ubyte * 4)]
class Access(ctypes.Structure):
    _fields_ = [("location", ctypes.c_int), ("device", ctypes.c_int), ("flags", ctypes.c_int)]
out = {}
keep = torch.empty(64 << 20, dtype=torch.uint8, device="cuda:0")
torch.cuda.synchronize()
def attribute(n):
    v = ctypes.c_int(-1)
    return v.value if cuda.cuDeviceGetAttribute(ctypes.byref(v), n, 0) == 0 else -1
out["dmabuf_supported"] = attribute(124)
out["rdma_with_vmm_supported"] = attribute(110)
out["fabric_supported"] = attribute(128)
def exported(address, size):
    fd = ctypes.c_int(-1)
    code = cuda.cuMemGetHandleForAddressRange(ctypes.byref(fd), ctypes.c_uint64(address), ctypes.c_size_t(size), 1, ctypes.c_ulonglong(0))
    return [code, fd.value]
size = 4 << 20
plain = ctypes.c_uint64()
assert cuda.cuMemAlloc_v2(ctypes.byref(plain), ctypes.c_size_t(size)) == 0
out["malloc"] = exported(plain.value, size)
def created(rdma, handles, count):
    address = ctypes.c_uint64()
    assert cuda.cuMemAddressReserve(ctypes.byref(address), ctypes.c_size_t(size * count), ctypes.c_size_t(0), ctypes.c_uint64(0), ctypes.c_ulonglong(0)) == 0
    prop = Prop(type=1, handles=handles, location=1, device=0, rdma=rdma)
    for i in range(count):
        handle = ctypes.c_ulonglong()
        code = cuda.cuMemCreate(ctypes.byref(handle), ctypes.c_size_t(size), ctypes.byref(prop), ctypes.c_ulonglong(0))
        if code: return code, 0
        assert cuda.cuMemMap(ctypes.c_uint64(address.value + i * size), ctypes.c_size_t(size), ctypes.c_size_t(0), handle, ctypes.c_ulonglong(0)) == 0
    access = Access(location=1, device=0, flags=3)
    code = cuda.cuMemSetAccess(address, ctypes.c_size_t(size * count), ctypes.byref(access), ctypes.c_size_t(1))
    return code, address.value
for name, rdma, count in (("vmm", 1, 1), ("vmm_unmarked", 0, 1), ("vmm_two_handles", 1, 2)):
    code, address = created(rdma, 1, count)
    out[name] = exported(address, size * count) if code == 0 else [code, -1]
out["fabric"] = created(1, 8, 1)[0]
out["torch"] = exported(keep.data_ptr(), 2 << 20)
def ucx():
    try: ucp = ctypes.CDLL("libucp.so.0")
    except OSError: return False
    version = [ctypes.c_uint() for _ in range(3)]
    ucp.ucp_get_version(*[ctypes.byref(v) for v in version])
    params, context = (ctypes.c_uint64 * 64)(1, 1), ctypes.c_void_p()
    return ucp.ucp_init_version(version[0], version[1], params, None, ctypes.byref(context)) == 0
out["ucx"] = ucx()
print(json.dumps(out), flush=True)
sys.stdin.read()
`

// madeAllocations are the results: a code of the driver, and a descriptor.
type madeAllocations struct {
	DMABUF  int    `json:"dmabuf_supported"`
	VMM     int    `json:"rdma_with_vmm_supported"`
	Fabric  int    `json:"fabric_supported"`
	Malloc  [2]int `json:"malloc"`
	Created [2]int `json:"vmm"`
	// Unmarked has no attribute for GPUDirect RDMA.
	Unmarked   [2]int `json:"vmm_unmarked"`
	TwoHandles [2]int `json:"vmm_two_handles"`
	Handle     int    `json:"fabric"`
	Torch      [2]int `json:"torch"`
	UCX        bool   `json:"ucx"` // it is installed, and initialized
}

// Codes of the driver (cuda.h).
const (
	cudaNotPermitted = 800
	cudaNotSupported = 801
)

// allocate runs allocations until stop is called.
func allocate(t *testing.T) (made madeAllocations, pid int, stop func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), installed(t, "python3"), "-c", allocations)
	cmd.Env = append(os.Environ(), "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(said).ReadBytes('\n')
	if err != nil {
		t.Fatalf("the program that allocates ended: %v", err)
	}
	out(t, "allocations.json", line)
	if err := json.Unmarshal(line, &made); err != nil {
		t.Fatal(err)
	}
	return made, cmd.Process.Pid, func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

var exporterInFdinfo = regexp.MustCompile(`(?m)^exp_name:\s+(\S+)$`)

// TestLibrariesOfAProcess: what the exporter reads of a process that uses PyTorch with expandable segments, and what
// the driver lets that process do.
func TestLibrariesOfAProcess(t *testing.T) {
	made, pid, stop := allocate(t)
	defer stop()
	t.Logf("%+v", made)
	dir := t.TempDir()
	run := func(args ...string) []byte {
		cmd := exec.CommandContext(t.Context(), program(t), args...)
		cmd.Stderr = os.Stderr
		b, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return b
	}
	archive := filepath.Join(dir, "libraries.txtar")
	run("capture", "-o", archive, "--state.dir="+dir)
	b, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	_, entry, _ := strings.Cut(string(b), fmt.Sprintf("-- processes/%d --\n", pid))
	entry, _, _ = strings.Cut(entry, "\n-- ")
	t.Logf("process %d:\n%s", pid, entry)
	fact := func(name string) string {
		for line := range strings.Lines(entry) {
			if value, ok := strings.CutPrefix(line, name+": "); ok {
				return strings.TrimSpace(value)
			}
		}
		return ""
	}
	want := "nccl" // PyTorch also maps NVSHMEM, which is not initialized
	if made.UCX {
		want = "nccl ucx"
	}
	if fact("libraries") != want || fact("gpus") == "" {
		t.Errorf("libraries %q, want %q; GPUs %q", fact("libraries"), want, fact("gpus"))
	}
	if got := fact("env_PYTORCH_CUDA_ALLOC_CONF"); got != "expandable_segments:True" {
		t.Errorf("PYTORCH_CUDA_ALLOC_CONF %q", got)
	}
	if fact("capabilities") == "" {
		t.Error("no capabilities")
	}
	for name, pattern := range map[string]string{
		"rdma_nodes": "/dev/infiniband/uverbs*", "imex_channels": "/dev/nvidia-caps-imex-channels/channel*",
	} {
		nodes, err := filepath.Glob(pattern)
		if want := fmt.Sprint(len(nodes) > 0); err != nil || fact(name) != want {
			t.Errorf("%s %q, want %s", name, fact(name), want)
		}
	}
	// A fabric handle requires an IMEX channel.
	switch channel := fact("imex_channels") == "true"; made.Handle {
	case 0, cudaNotPermitted:
		if channel != (made.Handle == 0) {
			t.Errorf("IMEX channel %v, cuMemCreate of a fabric handle: %d", channel, made.Handle)
		}
	default:
		t.Logf("cuMemCreate of a fabric handle: %d, supported %d", made.Handle, made.Fabric)
	}
	checkExports(t, made, pid, string(run("topo", "--json", "--state.dir="+dir)))
}

// checkExports: DMA-BUFs are exported by the open modules, of any GPU memory that may be registered.
func checkExports(t *testing.T, made madeAllocations, pid int, topology string) {
	open := strings.Contains(topology, `"open"`)
	if open != (made.DMABUF == 1) {
		t.Errorf("open modules %v, the driver exports DMA-BUFs: %d", open, made.DMABUF)
	}
	for name, one := range map[string][2]int{
		"cuMemAlloc": made.Malloc, "cuMemCreate": made.Created, "two handles of cuMemCreate": made.TwoHandles,
		"an expandable segment of PyTorch": made.Torch,
	} {
		switch {
		case !open && one[0] == 0:
			t.Errorf("%s: exported by the proprietary modules", name)
		case open && one[0] != 0:
			t.Errorf("%s: not exported: %d", name, one[0])
		}
		if one[0] != 0 {
			continue
		}
		info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", pid, one[1]))
		if m := exporterInFdinfo.FindSubmatch(info); err != nil || m == nil || string(m[1]) != "nv_dmabuf" {
			t.Errorf("%s: exporter in %q, %v: the exporter counts those of nv_dmabuf", name, info, err)
		}
	}
	if made.DMABUF == 0 && made.Malloc[0] != cudaNotSupported {
		t.Logf("cuMemAlloc without DMA-BUF: %d", made.Malloc[0])
	}
}
