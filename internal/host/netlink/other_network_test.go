package netlink

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/host/source"
)

const devHeading = "Inter-|   Receive\n face |bytes\n"

// TestNetwork: the interfaces of this process have to be those in the sys tree.
func TestNetwork(t *testing.T) {
	for _, c := range []struct{ name, own, hardware, software, foreign string }{
		{"the host", "    lo: 0\n  eth0: 0\n", "eth0", "lo", ""},
		{"a container", "    lo: 0\n  eth0: 0\n", "eth0 ens0f0np0", "lo cni0", "ens0f0np0"},
		{"a network without interfaces", "    lo: 0\n", "eth0", "lo", "eth0"},
		{"an interface of software that has just come", "    lo: 0\n  eth0: 0\n", "eth0", "lo veth7", ""},
		{"one that has just gone", "    lo: 0\n  eth0: 0\n veth7: 0\n", "eth0", "lo", ""},
		{"a tree without interfaces", "    lo: 0\n", "", "", ""},
		{"a container whose interface has the name of the host's only one", "    lo: 0\n  eth1: 0\n", "eth1", "lo", "eth1"},
		{"an interface that goes at this moment", "    lo: 0\n  eth2: 0\n", "eth2", "lo", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			put := func(path, content string) {
				t.Helper()
				path = filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			put("own", devHeading+c.own)
			put("proc/version", "Linux\n")
			for _, name := range strings.Fields(c.hardware) {
				put("sys/class/net/"+name+"/device/vendor", "0x15b3\n")
				put("sys/class/net/"+name+"/address", "b8:3f:d2:00:00:01:ff:ff\n")
			}
			for _, name := range strings.Fields(c.software) {
				put("sys/class/net/"+name+"/address", "\n")
			}
			if err := os.MkdirAll(filepath.Join(root, "sys/class/net"), 0o755); err != nil {
				t.Fatal(err)
			}
			tree, err := rooted.Open(rooted.Paths{RootFS: root})
			if err != nil {
				t.Fatal(err)
			}
			n := &network{files: tree, own: filepath.Join(root, "own"), address: func(netdev string) (net.HardwareAddr, error) {
				switch netdev {
				case "eth1":
					return net.HardwareAddr{2, 0x42, 0xac, 0x11, 0, 2}, nil
				case "eth2":
					return nil, syscall.ENODEV
				}
				return net.HardwareAddr{0xb8, 0x3f, 0xd2, 0, 0, 1}, nil
			}}
			err = n.same()
			if (c.foreign != "") != errors.Is(err, access.ErrOtherNetwork) ||
				err != nil && !strings.Contains(err.Error(), c.foreign+" is in sys/class/net") {
				t.Error(err)
			}
			asked := false
			_, refused := query(n, "ethtool/eth0", "", func() (int, error) { asked = true; return 1, nil })
			if err != nil &&
				(access.ReasonOf(refused) != access.Permission || source.DCB.NeedsAfter(refused) != access.HostNetwork) {
				t.Error(refused)
			}
			if asked != (err == nil) || !errors.Is(refused, err) {
				t.Errorf("asked %v, %v", asked, refused)
			}
			listening := map[string]func(context.Context) error{
				"events": func(ctx context.Context) error { return OpenEvents(n, 0).Links(ctx, func() {}, nil) },
				"LLDP": func(ctx context.Context) error {
					return lldpSocket{n}.Receive(ctx, nil, func(int, func()) error { return errors.New("here") }, nil, nil)
				},
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			for what, listen := range listening {
				if refused := listen(ended); errors.Is(refused, access.ErrOtherNetwork) != (err != nil) {
					t.Errorf("%s: %v", what, refused)
				}
			}
			if err := tree.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNetworkAgain: the check is repeated after a second if it found another network, otherwise after a minute.
func TestNetworkAgain(t *testing.T) {
	root := t.TempDir()
	for path, content := range map[string]string{
		"own": devHeading + "    lo: 0\n", "sys/class/net/eth0/device/vendor": "0x15b3\n", "proc/version": "Linux\n",
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := rooted.Open(rooted.Paths{RootFS: root})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	synctest.Test(t, func(t *testing.T) {
		n := &network{files: tree, own: filepath.Join(root, "own")}
		if err := n.same(); !errors.Is(err, access.ErrOtherNetwork) {
			t.Fatal(err)
		}
		if err := os.WriteFile(n.own, []byte(devHeading+"    lo: 0\n  eth0: 0\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := n.same(); err == nil {
			t.Error("the interfaces are compared at each request")
		}
		time.Sleep(doubtInterval)
		if err := n.same(); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(n.own, []byte(devHeading+"    lo: 0\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(networkInterval / 2)
		if err := n.same(); err != nil {
			t.Error("the interfaces are compared at each request")
		}
		time.Sleep(networkInterval)
		if err := n.same(); !errors.Is(err, access.ErrOtherNetwork) {
			t.Error(err)
		}
	})
}

// TestHardwareAddress uses the running kernel.
func TestHardwareAddress(t *testing.T) {
	if a, err := hardwareAddress("lo"); err != nil || a.String() != "00:00:00:00:00:00" {
		t.Errorf("lo: %v, %v", a, err)
	}
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		if len(i.HardwareAddr) != 6 {
			continue
		}
		if a, err := hardwareAddress(i.Name); err != nil || a.String() != i.HardwareAddr.String() {
			t.Errorf("%s: %v, %v, net says %v", i.Name, a, err, i.HardwareAddr)
		}
	}
	for _, name := range []string{"none", strings.Repeat("n", 16)} {
		if a, err := hardwareAddress(name); err == nil {
			t.Errorf("%s: %v", name, a)
		}
	}
}
