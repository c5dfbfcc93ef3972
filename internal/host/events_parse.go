package host

import (
	"encoding/binary"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// parseLinkEvent parses RTM_NEWLINK and RTM_DELLINK: struct ifinfomsg, then attributes. Families other than AF_UNSPEC
// are bridge ports. Their removal does not remove the interface.
func parseLinkEvent(kind uint16, msg []byte) (e LinkEvent, ok bool) {
	if kind != unix.RTM_NEWLINK && kind != unix.RTM_DELLINK || len(msg) < unix.SizeofIfInfomsg ||
		msg[0] != unix.AF_UNSPEC {
		return e, false
	}
	flags := binary.NativeEndian.Uint32(msg[8:])
	e = LinkEvent{
		Index: uint64(binary.NativeEndian.Uint32(msg[4:])), Deleted: kind == unix.RTM_DELLINK,
		Up: flags&unix.IFF_UP != 0, Carrier: flags&unix.IFF_LOWER_UP != 0,
	}
	attributes{
		unix.IFLA_IFNAME:             &e.Name,
		unix.IFLA_CARRIER_UP_COUNT:   &e.CarrierUpCount,
		unix.IFLA_CARRIER_DOWN_COUNT: &e.CarrierDownCount,
	}.decode(msg[unix.SizeofIfInfomsg:])
	return e, e.Name != ""
}

// parseDeviceEvent parses the attributes of RDMA_NLDEV_CMD_MONITOR.
func parseDeviceEvent(msg []byte) (e DeviceEvent, ok bool) {
	var kind, index *uint64
	attributes{
		nldevAttrEventType: &kind, nl.RDMA_NLDEV_ATTR_DEV_INDEX: &index,
		nl.RDMA_NLDEV_ATTR_DEV_NAME: &e.Device,
	}.decode(msg)
	if kind == nil || index == nil {
		return DeviceEvent{}, false
	}
	e.Type, e.Index = DeviceEventType(*kind), *index
	return e, true
}
