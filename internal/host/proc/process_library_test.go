package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/snapshot/accel"
)

const ucxMaps = "1-2 r-xp 0 fd:00 1 /usr/lib/ucx/libuct_ib.so.0\n"

func written(b *bool) string {
	if b == nil {
		return "unknown"
	}
	return fmt.Sprint(*b)
}

// TestDeviceNodes: those below the root directory of the process, which may be that of a container.
func TestDeviceNodes(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string
		links map[string]string
		want  string // of RDMA devices, of IMEX channels
	}{
		{"none", []string{"etc/hostname"}, nil, "false false"},
		{"both", []string{"dev/infiniband/uverbs0", "dev/nvidia-caps-imex-channels/channel0"}, nil, "true true"},
		{"other nodes", []string{"dev/infiniband/rdma_cm", "dev/nvidia-caps-imex-channels/channel"}, nil, "false false"},
		{"no number", []string{"dev/infiniband/uverbs-1", "dev/nvidia-caps-imex-channels/channelx"}, nil, "false false"},
		{"a file in place of the directory", []string{"dev/infiniband"}, nil, "false false"},
		{"a link inside", []string{"run/ib/uverbs3"}, map[string]string{"dev/infiniband": "/run/ib"}, "true false"},
		{"a link to itself", []string{"etc/hostname"}, map[string]string{"dev/infiniband": "infiniband"}, "unknown false"},
		{"a link out of the container", []string{"etc/hostname"}, map[string]string{"dev/infiniband": "../../../../../run/ib"}, "false false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, table := NewProcessTree(t)
			files := map[string]string{"maps": ucxMaps}
			for _, name := range c.files {
				files["root/"+name] = ""
			}
			p.Process(42, []string{"/dev/nvidia0"}, files)
			if err := os.MkdirAll(filepath.Join(p.Dir, "run/ib/uverbs0"), 0o755); err != nil { // of the host
				t.Fatal(err)
			}
			for name, target := range c.links {
				at := filepath.Join(p.Dir, "proc/42/root", name)
				if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(target, at); err != nil {
					t.Fatal(err)
				}
			}
			found, refused, err := table.Processes(t.Context(), nil, false)
			if len(found) != 1 || refused || err != nil {
				t.Fatalf("%+v %v %v", found, refused, err)
			}
			if got := written(found[0].RDMANodes) + " " + written(found[0].IMEXChannels); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestLibraryProcesses: a process with a GPU or an RDMA device and a library is kept; its libraries are read again
// after a time.
func TestLibraryProcesses(t *testing.T) {
	p, table := NewProcessTree(t)
	now := time.Now()
	table.now = func() time.Time { return now }
	p.Process(41, []string{"/dev/nvidia0"}, nil)
	p.Process(42, []string{"/dev/nvidia0"}, map[string]string{"maps": ncclMaps})
	p.Process(43, []string{"/dev/infiniband/uverbs0"}, map[string]string{"maps": ucxMaps})
	p.Process(44, nil, map[string]string{"maps": ucxMaps})
	check := func(want string) {
		t.Helper()
		found, _, err := table.Processes(t.Context(), nil, false)
		var got []string
		for _, one := range found {
			got = append(got, fmt.Sprint(one.PID, one.Libraries, one.HasNCCL))
		}
		if strings.Join(got, "; ") != want || err != nil {
			t.Errorf("%q %v, want %q", got, err, want)
		}
	}
	check("42 [nccl] true; 43 [ucx] false")
	p.Process(42, nil, map[string]string{"maps": ncclMaps + "1-2 r-xp 0 fd:00 1 /opt/lib/libnixl.so\n"})
	check("42 [nccl] true; 43 [ucx] false")
	now = now.Add(librariesKept)
	check("42 [nccl nixl] true; 43 [ucx] false")
}

// TestCapabilities: those of a process in another user namespace than the initial one do not apply to devices.
func TestCapabilities(t *testing.T) {
	p, table := NewProcessTree(t)
	for pid, user := range map[int]string{41: initialUsers, 42: "user:[4026532871]", 43: ""} {
		p.Process(pid, nil, map[string]string{"ns/x": "", "maps": ucxMaps})
		if user == "" {
			continue
		}
		if err := os.Symlink(user, filepath.Join(p.Dir, "proc", fmt.Sprint(pid), "ns/user")); err != nil {
			t.Fatal(err)
		}
	}
	for pid := 41; pid < 44; pid++ {
		p.Process(pid, []string{"/dev/infiniband/uverbs0"}, nil)
		if err := os.WriteFile(filepath.Join(p.Dir, "proc", fmt.Sprint(pid), "status"),
			[]byte(statusOf(0)+"CapEff:\t00000000a80425fb\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found, _, err := table.Processes(t.Context(), nil, false)
	if len(found) != 3 || err != nil {
		t.Fatalf("%+v %v", found, err)
	}
	of := func(p accel.Process) string {
		if p.Capabilities == nil {
			return "unknown"
		}
		return fmt.Sprintf("%#x", *p.Capabilities)
	}
	if got := of(found[0]) + " " + of(found[1]) + " " + of(found[2]); got != "0xa80425fb 0x0 unknown" {
		t.Error(got)
	}
}
