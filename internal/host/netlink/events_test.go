package netlink

import (
	"encoding/binary"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/rooted"
)

// linkMessage returns the body of RTM_NEWLINK.
func linkMessage(family uint8, index, flags uint32, attributes ...[]byte) []byte {
	head := []byte{family, 0, 1, 0}
	head = binary.NativeEndian.AppendUint32(head, index)
	head = binary.NativeEndian.AppendUint32(head, flags)
	head = binary.NativeEndian.AppendUint32(head, 0xffffffff)
	return slices.Concat(append([][]byte{head}, attributes...)...)
}

func TestParseLinkEvent(t *testing.T) {
	name, ups, downs := Attr(unix.IFLA_IFNAME, str("eth0")), Attr(unix.IFLA_CARRIER_UP_COUNT, u32(7)),
		Attr(unix.IFLA_CARRIER_DOWN_COUNT, u32(6))
	const running = unix.IFF_UP | unix.IFF_LOWER_UP
	for _, c := range []struct {
		name string
		kind uint16
		msg  []byte
		want host.LinkEvent
		ok   bool
	}{
		{
			"up, with a carrier", unix.RTM_NEWLINK, linkMessage(unix.AF_UNSPEC, 5, running|unix.IFF_RUNNING, name, ups, downs),
			host.LinkEvent{Index: 5, Name: "eth0", Up: true, Carrier: true, CarrierUpCount: ptr(7), CarrierDownCount: ptr(6)},
			true,
		},
		{
			"up, without one", unix.RTM_NEWLINK,
			linkMessage(unix.AF_UNSPEC, 5, unix.IFF_UP, Attr(unix.IFLA_MTU, u32(9000)), name, ups, downs),
			host.LinkEvent{Index: 5, Name: "eth0", Up: true, CarrierUpCount: ptr(7), CarrierDownCount: ptr(6)},
			true,
		},
		{"a kernel without the counts", unix.RTM_NEWLINK, linkMessage(unix.AF_UNSPEC, 5, 0, name), host.LinkEvent{Index: 5, Name: "eth0"}, true},
		{"deleted", unix.RTM_DELLINK, linkMessage(unix.AF_UNSPEC, 5, 0, name), host.LinkEvent{Index: 5, Name: "eth0", Deleted: true}, true},
		{"taken from a bridge", unix.RTM_DELLINK, linkMessage(unix.AF_BRIDGE, 5, 0, name), host.LinkEvent{}, false},
		{"an address", unix.RTM_NEWADDR, linkMessage(unix.AF_UNSPEC, 5, 0, name), host.LinkEvent{}, false},
		{"nameless", unix.RTM_NEWLINK, linkMessage(unix.AF_UNSPEC, 5, 0), host.LinkEvent{Index: 5}, false},
		{"cut", unix.RTM_NEWLINK, linkMessage(unix.AF_UNSPEC, 5, 0)[:15], host.LinkEvent{}, false},
		{"empty", unix.RTM_NEWLINK, nil, host.LinkEvent{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := parseLinkEvent(c.kind, c.msg); ok != c.ok || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v, %v", got, ok)
			}
		})
	}
}

func TestParseDeviceEvent(t *testing.T) {
	device := slices.Concat(Attr(nl.RDMA_NLDEV_ATTR_DEV_INDEX, u32(3)), Attr(nl.RDMA_NLDEV_ATTR_DEV_NAME, str("mlx5_0")))
	for _, c := range []struct {
		name string
		msg  []byte
		want host.DeviceEvent
		ok   bool
	}{
		{"registered", slices.Concat(device, Attr(nldevAttrEventType, U8(0))), host.DeviceEvent{Type: host.DeviceRegistered, Index: 3, Device: "mlx5_0"}, true},
		{"renamed", slices.Concat(device, Attr(nldevAttrEventType, U8(4))), host.DeviceEvent{Type: host.DeviceRenamed, Index: 3, Device: "mlx5_0"}, true},
		{
			"netdev attached",
			slices.Concat(device, Attr(nl.RDMA_NLDEV_ATTR_PORT_INDEX, u32(1)), Attr(nl.RDMA_NLDEV_ATTR_NDEV_NAME, str("eth0")), Attr(nldevAttrEventType, U8(2))),
			host.DeviceEvent{Type: host.NetdevAttached, Index: 3, Device: "mlx5_0"},
			true,
		},
		{"no type", device, host.DeviceEvent{}, false},
		{"no device", Attr(nldevAttrEventType, U8(0)), host.DeviceEvent{}, false},
		{"empty", nil, host.DeviceEvent{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := parseDeviceEvent(c.msg); ok != c.ok || got != c.want {
				t.Errorf("%+v, %v", got, ok)
			}
		})
	}
}

func FuzzParseEvents(f *testing.F) {
	f.Add(uint16(unix.RTM_NEWLINK),
		linkMessage(unix.AF_UNSPEC, 5, 1, Attr(unix.IFLA_IFNAME, str("eth0")), Attr(unix.IFLA_CARRIER_UP_COUNT, u32(1))))
	f.Add(uint16(0), slices.Concat(Attr(nl.RDMA_NLDEV_ATTR_DEV_INDEX, u32(3)), Attr(nldevAttrEventType, U8(0))))
	f.Fuzz(func(t *testing.T, kind uint16, msg []byte) {
		if e, ok := parseLinkEvent(kind, msg); ok && e.Name == "" {
			t.Fatalf("%+v", e)
		}
		if e, ok := parseDeviceEvent(msg); !ok && e != (host.DeviceEvent{}) {
			t.Fatalf("%+v", e)
		}
	})
}

func TestNetdevsOfANetwork(t *testing.T) {
	const text = "Inter-|   Receive                            |  Transmit\n face |bytes    packets errs|bytes\n    lo: 0 0 0 0\n  eth0:12 3 4\n"
	got := rooted.ParseNetdevs([]byte(text))
	if !slices.Equal(got, []string{"lo", "eth0"}) {
		t.Errorf("%q", got)
	}
}

func FuzzNetdevs(f *testing.F) {
	f.Add([]byte("Inter-|   Receive  |  Transmit\n face |bytes\n    lo: 1 2\n  eth0:3 4\n"), []byte(nil))
	f.Add([]byte(":"), slices.Concat(Attr(nl.RDMA_NLDEV_ATTR_DEV_INDEX, u32(3)),
		Attr(nl.RDMA_NLDEV_ATTR_DEV_NAME, str("mlx5_0"))))
	f.Fuzz(func(t *testing.T, text, msg []byte) {
		for _, name := range rooted.ParseNetdevs(text) {
			if strings.ContainsAny(name, ":\n") {
				t.Errorf("%q", name)
			}
		}
		if name, _, err := parseDevice(msg); (err == nil) != (name != "") {
			t.Errorf("%q, %v", name, err)
		}
	})
}
