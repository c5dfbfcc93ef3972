package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/transceiver"
)

// ethtool netlink numbers of module EEPROMs (since Linux 5.13). For drivers that support only the flat image of the
// ioctl, the kernel answers from that image: SFF modules (net/ethtool/eeprom.c).
const (
	moduleEEPROMOffset  = 2
	moduleEEPROMLength  = 3
	moduleEEPROMPage    = 4
	moduleEEPROMBank    = 5
	moduleEEPROMAddress = 6
	moduleEEPROMData    = 7
)

// EEPROMName is the name of a page in errors and captures: ethtool/NETDEV/eeprom/ADDRESS-PAGE-BANK.
func EEPROMName(netdev string, ref transceiver.Ref) string {
	return "ethtool/" + netdev + eepromPage(ref)
}

func eepromPage(ref transceiver.Ref) string {
	return fmt.Sprintf("/eeprom/%02x-%02x-%d", ref.Address, ref.Page, ref.Bank)
}

// ModuleEEPROM reads bytes of a module.
func (c *ethtoolClient) ModuleEEPROM(_ context.Context, netdev string, ref transceiver.Ref) ([]byte, error) {
	return query(c.here, "ethtool/"+netdev, eepromPage(ref), func() ([]byte, error) {
		switch {
		case !ref.Valid():
			return nil, unix.EINVAL
		case !c.family.has(unix.ETHTOOL_GENL_NAME, unix.ETHTOOL_MSG_MODULE_EEPROM_GET):
			return moduleByIoctl(netdev, ref)
		}
		msg, err := c.query(unix.ETHTOOL_MSG_MODULE_EEPROM_GET, netdev, 0, moduleEEPROMRequest(ref)...)
		if err != nil {
			return nil, err
		}
		return parseModuleEEPROM(msg, ref)
	})
}

// moduleEEPROMRequest is the attributes of a request. The bank is optional, and drivers without banks reject it.
func moduleEEPROMRequest(ref transceiver.Ref) []*nl.RtAttr {
	attrs := []*nl.RtAttr{
		nl.NewRtAttr(moduleEEPROMOffset, nl.Uint32Attr(uint32(ref.Offset))),
		nl.NewRtAttr(moduleEEPROMLength, nl.Uint32Attr(uint32(ref.Length))),
		nl.NewRtAttr(moduleEEPROMPage, []byte{ref.Page}),
		nl.NewRtAttr(moduleEEPROMAddress, []byte{ref.Address}),
	}
	if ref.Bank != 0 {
		attrs = append(attrs, nl.NewRtAttr(moduleEEPROMBank, []byte{ref.Bank}))
	}
	return attrs
}

// parseModuleEEPROM parses the body of ETHTOOL_MSG_MODULE_EEPROM_GET_REPLY. A driver may return fewer bytes than
// requested, never more. None at all is an error on the module's bus: mlx5 returns the bytes that it read before the
// error (mlx5e_get_module_eeprom_by_page).
func parseModuleEEPROM(msg []byte, ref transceiver.Ref) ([]byte, error) {
	for t, v := range attrs(msg) {
		if t != moduleEEPROMData {
			continue
		}
		if len(v) == 0 {
			return nil, unix.EIO
		}
		return v[:min(len(v), int(ref.Length))], nil
	}
	return nil, fmt.Errorf("%w: module EEPROM without data", ErrMalformed)
}

// Busy reports whether err is temporary: the firmware of the module is being written (net/ethtool/module.c), or its bus
// is in use.
func Busy(err error) bool { return errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EAGAIN) }
