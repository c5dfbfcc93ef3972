package netlink

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink/nl"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot/qp"
)

const storage = 128 // struct __kernel_sockaddr_storage

// socket returns a socket address as the kernel writes it: the family in the order of the host, a port or P_Key and the
// address in that of the network.
func socket(family uint16, text string) []byte {
	b := make([]byte, storage)
	binary.NativeEndian.PutUint16(b, family)
	binary.BigEndian.PutUint16(b[2:], 20049)
	a := netip.MustParseAddr(text)
	at := 8
	if family == syscall.AF_INET {
		at = 4
	}
	copy(b[at:], a.AsSlice())
	return b
}

// connection returns an entry of RES_CM_ID_GET in the kernel's order (fill_res_cm_id_entry). Numbers and types are sent
// together, and no address is sent before it is resolved.
func connection(number uint32, kind, state byte, far []byte, more ...[]byte) []byte {
	const portSpace, source, id = 32, 33, 69
	var pair, peer []byte
	if number > 0 {
		pair = slices.Concat(Attr(nldevAttrResLQPN, u32(number)), Attr(nldevAttrResType, []byte{kind}))
	}
	if far != nil {
		peer = Attr(nldevAttrResDstAddr, far)
	}
	return Attr(nldevAttrResCMEntry, slices.Concat(Attr(nl.RDMA_NLDEV_ATTR_PORT_INDEX, u32(1)), pair,
		Attr(portSpace, u32(0x106)), Attr(nldevAttrResState, []byte{state}),
		Attr(source, socket(syscall.AF_INET, "10.0.0.1")), peer, Attr(id, u32(4)), slices.Concat(more...)))
}

func TestParseConnections(t *testing.T) {
	const rc, ud = 2, 4
	const connected, disconnected, listens = 5, 6, 8
	ipv4, ipv6 := socket(syscall.AF_INET, "10.0.0.17"), socket(syscall.AF_INET6, "fd00::17")
	ofProcess, ofKernel := Attr(nldevAttrResPID, u32(42)), Attr(nldevAttrResKernName, str("nvme_rdma"))
	one := qp.Connection{QPN: 17, Port: 1, PID: 42, Peer: "0000:0000:0000:0000:0000:ffff:0a00:0011"}
	kernel, six, infiniband := one, one, one
	kernel.PID = 0
	six.Peer = "fd00:0000:0000:0000:0000:0000:0000:0017"
	infiniband.Peer = "fe80:0000:0000:0000:b83f:d203:00ab:cde7"
	for name, c := range map[string]struct {
		entry []byte
		want  []qp.Connection
	}{
		"IPv4":           {connection(17, rc, connected, ipv4, ofProcess), []qp.Connection{one}},
		"of the kernel":  {connection(17, rc, connected, ipv4, ofKernel), []qp.Connection{kernel}},
		"IPv6":           {connection(17, rc, connected, ipv6, ofProcess), []qp.Connection{six}},
		"GID":            {connection(17, rc, connected, socket(familyIB, "fe80::b83f:d203:ab:cde7"), ofProcess), []qp.Connection{infiniband}},
		"disconnected":   {connection(17, rc, disconnected, ipv4, ofProcess), nil},
		"listens":        {connection(0, 0, listens, nil, ofProcess), nil},
		"no queue pair":  {connection(0, 0, connected, ipv4, ofProcess), nil},
		"datagrams":      {connection(17, ud, connected, ipv4, ofProcess), nil},
		"no address":     {connection(17, rc, connected, nil, ofProcess), nil},
		"zero":           {connection(17, rc, connected, socket(syscall.AF_INET6, "::"), ofProcess), nil},
		"other family":   {connection(17, rc, connected, socket(syscall.AF_UNIX, "10.0.0.17"), ofProcess), nil},
		"address is cut": {connection(17, rc, connected, ipv6[:23], ofProcess), nil},
	} {
		got, device, err := parseResources(resourcesMessage("mlx5_0", nldevAttrResCM, c.entry),
			nldevAttrResCM, nldevAttrResCMEntry, parseConnection)
		if err != nil || device != "mlx5_0" || !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v of %q, %v", name, got, device, err)
		}
	}
	_, _, malformed := parseResources(nil, nldevAttrResCM, nldevAttrResCMEntry, parseConnection)
	if !errors.Is(malformed, access.ErrMalformed) {
		t.Error(malformed)
	}
}

func FuzzParseConnections(f *testing.F) {
	f.Add(resourcesMessage("mlx5_0", nldevAttrResCM, connection(17, 2, 5, socket(syscall.AF_INET, "10.0.0.17"))))
	f.Fuzz(func(t *testing.T, msg []byte) {
		found, device, err := parseResources(msg, nldevAttrResCM, nldevAttrResCMEntry, parseConnection)
		if (err == nil) != (device != "") || len(found) > len(msg)/4 {
			t.Fatalf("%v of %q, %v", found, device, err)
		}
		for _, c := range found {
			if _, err := netip.ParseAddr(c.Peer); err != nil {
				t.Fatal(err)
			}
		}
	})
}
