package umad

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/hosttest"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/mad"
)

// madMachine has a umad file for each line "DEVICE/PORT LINK_LAYER STATE".
func madMachine(t *testing.T, ports ...string) (string, *rooted.Tree) {
	t.Helper()
	dir, l := hosttest.Machine(t)
	hosttest.Put(t, dir, "sys/class/infiniband_mad/abi_version", "5\n")
	for i, p := range ports {
		f := strings.SplitN(p, " ", 3)
		device, port, _ := strings.Cut(f[0], "/")
		hosttest.Put(t, dir, fmt.Sprintf("sys/class/infiniband_mad/umad%d/ibdev", i), device+"\n")
		hosttest.Put(t, dir, fmt.Sprintf("sys/class/infiniband_mad/umad%d/port", i), port+"\n")
		hosttest.Put(t, dir, "sys/class/infiniband/"+device+"/node_guid", "0:"+device+"\n")
		hosttest.Put(t, dir, "sys/class/infiniband/"+device+"/ports/"+port+"/link_layer", f[1]+"\n")
		hosttest.Put(t, dir, "sys/class/infiniband/"+device+"/ports/"+port+"/state", f[2]+"\n")
	}
	return dir, l
}

func TestChooseMAD(t *testing.T) {
	ports := []string{
		"mlx5_0/1 Ethernet 4: ACTIVE", "mlx5_1/1 InfiniBand 1: DOWN", "mlx5_2/1 InfiniBand 2: INIT",
		"mlx5_3/1 InfiniBand 4: ACTIVE", "mlx5_4/2 InfiniBand 4: ACTIVE",
	}
	for _, tt := range []struct {
		ports  []string
		device string
		port   int
		want   string // or of the error
	}{
		{ports, "", 0, "mlx5_3/1 umad3"},
		{ports[:3], "", 0, "mlx5_2/1 umad2"},
		{ports[:2], "", 0, "mlx5_1/1 umad1"},
		{ports, "mlx5_1", 0, "mlx5_1/1 umad1"},
		{ports, "mlx5_4", 2, "mlx5_4/2 umad4"},
		{ports, "", 2, "mlx5_4/2 umad4"},
		{ports, "mlx5_0", 0, `no InfiniBand port for management datagrams matches device "mlx5_0", port 0 (empty and 0 match any): there are [mlx5_1/1 mlx5_2/1 mlx5_3/1 mlx5_4/2]`},
		{ports, "mlx5_3", 2, `no InfiniBand port for management datagrams matches device "mlx5_3", port 2`},
		{nil, "", 0, `no InfiniBand port for management datagrams matches device "", port 0 (empty and 0 match any): there are []`},
	} {
		t.Run(fmt.Sprintf("device=%s,port=%d,of=%d", tt.device, tt.port, len(tt.ports)), func(t *testing.T) {
			_, l := madMachine(t, tt.ports...)
			p, err := chooseMAD(l, tt.device, tt.port)
			got := fmt.Sprintf("%s/%d %s", p.Device, p.Port, p.file)
			if err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if want := map[bool]string{true: "0:" + p.Device}[err == nil]; p.GUID != want {
				t.Errorf("GUID %q, want %q", p.GUID, want)
			}
		})
	}
}

// TestFindMAD: a port is found by its node, under any name. Otherwise the error has the reason.
func TestFindMAD(t *testing.T) {
	was := MADPort{Device: "mlx5_1", Port: 1, GUID: "0:b"}
	for _, tt := range []struct {
		name  string
		ports []string // and the GUID of the device
		was   MADPort
		want  string // or of the error
	}{
		{"as it was", []string{"mlx5_0/1 InfiniBand 4: ACTIVE", "0:a", "mlx5_1/1 InfiniBand 4: ACTIVE", "0:b"}, was, "mlx5_1/1"},
		{"before the subnet manager", []string{"mlx5_0/1 InfiniBand 4: ACTIVE", "0:a", "mlx5_1/1 InfiniBand 2: INIT", "0:b"}, was, "mlx5_1/1"},
		{"another name", []string{"mlx5_1/1 InfiniBand 4: ACTIVE", "0:a", "mlx5_2/1 InfiniBand 4: ACTIVE", "0:b"}, was, "mlx5_2/1"},
		{"another port of it", []string{"mlx5_1/1 InfiniBand 4: ACTIVE", "0:b", "mlx5_1/2 InfiniBand 4: ACTIVE", "0:b"}, MADPort{Device: "mlx5_1", Port: 2, GUID: "0:b"}, "mlx5_1/2"},
		{"two of one GUID", []string{"mlx5_0/1 InfiniBand 4: ACTIVE", "0:b", "mlx5_1/1 InfiniBand 4: ACTIVE", "0:b"}, was, "mlx5_1/1"},
		{"no GUID", []string{"mlx5_0/1 InfiniBand 4: ACTIVE", "", "mlx5_1/1 InfiniBand 4: ACTIVE", ""}, MADPort{Device: "mlx5_1", Port: 1}, "mlx5_1/1"},
		{"down", []string{"mlx5_0/1 InfiniBand 4: ACTIVE", "0:a", "mlx5_1/1 InfiniBand 1: DOWN", "0:b"}, was, "mlx5_1/1 of node 0:b, the port of earlier sweeps, has no link"},
		{"not there", []string{"mlx5_0/1 InfiniBand 4: ACTIVE", "0:a", "mlx5_1/1 Ethernet 4: ACTIVE", "0:b"}, was, "mlx5_1/1 of node 0:b, the port of earlier sweeps, does not exist: there are [mlx5_0/1]"},
		{"another in its place", []string{"mlx5_1/1 InfiniBand 4: ACTIVE", "0:c"}, was, "mlx5_1/1 of node 0:b, the port of earlier sweeps, does not exist: there are [mlx5_1/1]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var ports []string
			for i := 0; i < len(tt.ports); i += 2 {
				ports = append(ports, tt.ports[i])
			}
			dir, _ := madMachine(t, ports...)
			for i := 0; i < len(tt.ports); i += 2 {
				device, _, _ := strings.Cut(tt.ports[i], "/")
				hosttest.Put(t, dir, "sys/class/infiniband/"+device+"/node_guid", tt.ports[i+1]+"\n")
			}
			p, err := FindMAD(rooted.Paths{RootFS: dir}, tt.was)
			got := fmt.Sprintf("%s/%d", p.Device, p.Port)
			if err != nil {
				got = err.Error()
			} else if p.GUID != tt.was.GUID {
				t.Errorf("GUID %q", p.GUID)
			}
			if got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
	dir, _ := hosttest.Machine(t)
	if _, err := FindMAD(rooted.Paths{RootFS: dir}, was); err == nil ||
		!strings.Contains(err.Error(), "check that the kernel module ib_umad is loaded") {
		t.Error(err)
	}
}

// asked counts the states that are read. Each is a query of the port.
type asked struct {
	host.Files
	states int
}

func (a *asked) ReadIn(dir, name string, buf []byte) ([]byte, error) {
	if name == "state" {
		a.states++
	}
	return a.Files.ReadIn(dir, name, buf)
}

// TestChooseMADQueriesLittle: a named port is found without a query, and only matching ports are queried.
func TestChooseMADQueriesLittle(t *testing.T) {
	_, l := madMachine(t, "mlx5_0/1 Ethernet 4: ACTIVE", "mlx5_1/1 InfiniBand 4: ACTIVE", "mlx5_2/1 InfiniBand 4: ACTIVE",
		"mlx5_2/2 InfiniBand 4: ACTIVE")
	for _, tt := range []struct {
		device string
		port   int
		want   int
	}{{"mlx5_1", 1, 0}, {"mlx5_2", 2, 0}, {"mlx5_2", 0, 2}, {"", 0, 3}} {
		t.Run(fmt.Sprintf("device=%s,port=%d", tt.device, tt.port), func(t *testing.T) {
			files := &asked{Files: l}
			if p, err := chooseMAD(files, tt.device, tt.port); err != nil || files.states != tt.want {
				t.Errorf("%+v %v, %d states are read, want %d", p, err, files.states, tt.want)
			}
		})
	}
}

func TestOpenMADFails(t *testing.T) {
	dir, _ := hosttest.Machine(t)
	_, _, err := OpenMAD(rooted.Paths{RootFS: dir}, "", 0)
	if err == nil || !strings.Contains(err.Error(), "list sys/class/infiniband_mad: no such file or directory: check that the kernel module ib_umad is loaded") {
		t.Error(err)
	}
	dir, _ = madMachine(t, "mlx5_0/1 InfiniBand 4: ACTIVE")
	_, _, err = OpenMAD(rooted.Paths{RootFS: dir}, "", 0)
	if !errors.Is(err, syscall.ENOENT) || !strings.Contains(err.Error(), "open dev/infiniband/umad0") {
		t.Error(err)
	}
	hosttest.Put(t, dir, "dev/infiniband/umad0", "not a device")
	_, p, err := OpenMAD(rooted.Paths{RootFS: dir}, "", 0)
	if !errors.Is(err, syscall.ENOTTY) || !strings.Contains(err.Error(), "register with dev/infiniband/umad0") ||
		p.Device != "mlx5_0" {
		t.Error(p, err)
	}
	if n := hosttest.Descriptors(t, dir); n > 8 { // of the two machines of this test
		t.Errorf("%d descriptors are open", n)
	}
	if err := os.WriteFile(filepath.Join(dir, "sys/class/infiniband_mad/abi_version"), []byte("6\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err = OpenMAD(rooted.Paths{RootFS: dir}, "", 0); err == nil ||
		!strings.Contains(err.Error(), `abi_version is "6", only 5 is supported`) {
		t.Error(err)
	}
}

// TestUMADLayout compares the encoded structs with include/uapi/rdma/ib_user_mad.h.
func TestUMADLayout(t *testing.T) {
	if size := unsafe.Sizeof(umadAgent{}); size != umadRegister>>16&0x3fff {
		t.Errorf("struct ib_user_mad_reg_req2 has %d bytes", size)
	}
	d := mad.Datagram{LID: 0x1234, QP: 1, PKeyIndex: 2}
	d.MAD[0], d.MAD[255] = 1, 9
	var got [HeaderSize + mad.Size]byte
	encodeUMAD(got[:], &d, 3, 1500*time.Millisecond)
	var want [HeaderSize + mad.Size]byte
	for at, v := range map[int]byte{23: 1, 24: 0x80, 25: 1, 28: 0x12, 29: 0x34, 64: 1, 319: 9} {
		want[at] = v
	}
	binary.NativeEndian.PutUint32(want[0:], 3)
	binary.NativeEndian.PutUint32(want[8:], 1500)
	binary.NativeEndian.PutUint16(want[56:], 2)
	if !bytes.Equal(got[:], want[:]) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
	var back mad.Datagram
	if !DecodeUMAD(got[:], &back) || back != d {
		t.Errorf("%+v, want %+v", back, d)
	}
	if DecodeUMAD(got[:HeaderSize+24], &back) {
		t.Error("a request that came back is no answer")
	}
	binary.NativeEndian.PutUint32(got[4:], uint32(syscall.ETIMEDOUT))
	if DecodeUMAD(got[:], &back) {
		t.Error("a request that timed out is no answer")
	}
}
