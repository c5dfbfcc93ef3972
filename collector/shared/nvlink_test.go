package shared

import (
	"strings"
	"sync"
	"testing"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/site"
)

// registrations are files of devices that register again, with a count of VPD reads.
type registrations struct {
	host.Files
	mu    sync.Mutex
	inode uint64
	vpd   int
}

func (r *registrations) Identity(string) (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inode, nil
}

func (r *registrations) Read(path string, buf []byte) ([]byte, error) {
	if strings.HasSuffix(path, "/vpd") {
		r.mu.Lock()
		r.vpd++
		r.mu.Unlock()
	}
	return r.Files.Read(path, buf)
}

func nvlinkTree(vendor, class, vpd string) string {
	const dir = "sys/devices/pci0000:02/0000:02:01.0/0000:05:00.0"
	return "-- " + sysfs.ClassDir + "/mlx5_0 -> ../../devices/pci0000:02/0000:02:01.0/0000:05:00.0/infiniband/mlx5_0 --\n" +
		"-- " + dir + "/infiniband/mlx5_0/device -> ../.. --\n-- " + dir + "/device --\n0x1021\n" +
		"-- " + dir + "/vendor --\n" + vendor + "\n-- " + dir + "/class --\n" + class + "\n-- " + dir + "/vpd " + vpd
}

func TestNVLinkManagement(t *testing.T) {
	// identifier "x", a field V3 "SMDL=SW_MNG", the end; the same for a NIC, without the mark
	const (
		marked  = "@hex --\n8201 0078 900e 0056 330b 534d 444c 3d53 575f 4d4e 4778\n"
		plain   = "@hex --\n8201 0078 9006 0056 3303 4e49 4378\n"
		refused = "!EACCES --\n"
	)
	for _, c := range []struct {
		name, tree string
		want       bool
		issues     int
	}{
		{"marked", nvlinkTree("0x15b3", "0x020700", marked), true, 0},
		{"a NIC", nvlinkTree("0x15b3", "0x020700", plain), false, 0},
		{"Ethernet", nvlinkTree("0x15b3", "0x020000", marked), false, 0},
		{"another maker's", nvlinkTree("0x8086", "0x020700", marked), false, 0},
		{"not permitted", nvlinkTree("0x15b3", "0x020700", refused), false, 1},
		{"none", nvlinkTree("0x15b3", "0x020700", "!ENOENT --\n"), false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := collectortest.ReaderOf(t, c.tree)
			v := newNVLink(noSettings)
			if got := v.identify(r).ManagesNVLink; got != c.want || len(r.Issues) != c.issues {
				t.Errorf("%v, issues %v", got, r.Issues)
			}
		})
	}
}

func noSettings(site.Subject) site.Settings { return site.Settings{} }

// TestPinnedRole: a pinned role takes precedence, and VPD is not read.
func TestPinnedRole(t *testing.T) {
	for role, want := range map[string]bool{"nvlink_management": true, "compute": false, "other": false} {
		t.Run(role, func(t *testing.T) {
			r := collectortest.ReaderOf(t, nvlinkTree("0x15b3", "0x020700", "@hex --\n78\n"))
			files := &registrations{Files: r.Host.Files, inode: 1}
			r.Host.Files = files
			v := newNVLink(func(s site.Subject) site.Settings {
				if s.Device != "mlx5_0" || s.PCIAddress == "" {
					t.Errorf("asked of %+v", s)
				}
				return site.Settings{Role: role}
			})
			if got := v.identify(r).ManagesNVLink; got != want || files.vpd != 0 {
				t.Errorf("%v, read %d times", got, files.vpd)
			}
		})
	}
}

// TestVPDOfARegistration: VPD is read once per registration of a device.
func TestVPDOfARegistration(t *testing.T) {
	r := collectortest.ReaderOf(t, nvlinkTree("0x15b3", "0x020700", "@hex --\n78\n"))
	files := &registrations{Files: r.Host.Files, inode: 1}
	r.Host.Files = files
	v := newNVLink(noSettings)
	for i, want := range []int{1, 1, 2, 2} {
		files.inode = uint64(1 + i/2)
		v.identify(r)
		if files.vpd != want {
			t.Errorf("call %d: read %d times, want %d", i, files.vpd, want)
		}
	}
	v.drop(nil)
	if v.identify(r); files.vpd != 3 {
		t.Errorf("after it was gone: read %d times", files.vpd)
	}
}

// panickingFiles are files of which one causes a panic.
type panickingFiles struct {
	host.Files
	name string
}

func (f panickingFiles) Read(path string, buf []byte) ([]byte, error) {
	if strings.HasSuffix(path, f.name) {
		panic("odd bytes")
	}
	return f.Files.Read(path, buf)
}

// Identity distinguishes devices of the same name.
func (f panickingFiles) Identity(string) (uint64, error) { return 1, nil }

// TestPanicOfVPD: a panic beside the reading of devices ends neither the program nor the reading.
func TestPanicOfVPD(t *testing.T) {
	vpd := collectortest.ReaderOf(t, nvlinkTree("0x15b3", "0x020700", "@hex --\n78\n"))
	vpd.Host.Files = panickingFiles{vpd.Host.Files, "/vpd"}
	if newNVLink(noSettings).identify(vpd).ManagesNVLink || len(vpd.Issues) != 1 ||
		vpd.Issues[0].Reason != string(access.Panic) {
		t.Errorf("%v", vpd.Issues)
	}
}
