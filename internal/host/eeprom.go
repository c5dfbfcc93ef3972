package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/transceiver"
)

// ethtool netlink numbers of module EEPROMs (since Linux 5.13). The kernel answers in the name of drivers that know no pages but the
// ioctl's flat image, as far as that reaches: SFF modules (net/ethtool/eeprom.c).
const (
	ethtoolMsgModuleEEPROMGet = 31

	moduleEEPROMOffset  = 2
	moduleEEPROMLength  = 3
	moduleEEPROMPage    = 4
	moduleEEPROMBank    = 5
	moduleEEPROMAddress = 6
	moduleEEPROMData    = 7
)

// EEPROMName is how errors and captures call what a request reads of: ethtool/NETDEV/eeprom/ADDRESS-PAGE-BANK.
func EEPROMName(netdev string, ref transceiver.Ref) string {
	return fmt.Sprintf("ethtool/%s/eeprom/%02x-%02x-%d", netdev, ref.Address, ref.Page, ref.Bank)
}

// ModuleEEPROM asks for bytes of a module.
func (c *ethtoolClient) ModuleEEPROM(_ context.Context, netdev string, ref transceiver.Ref) ([]byte, error) {
	name := EEPROMName(netdev, ref)
	if !ref.Valid() {
		return nil, &Error{"ask", name, unix.EINVAL}
	}
	if !c.family.has(ethtoolFamily, ethtoolMsgModuleEEPROMGet) {
		b, err := moduleByIoctl(netdev, ref)
		if err != nil {
			return nil, &Error{"ask", name, err}
		}
		return b, nil
	}
	msg, err := c.ask(ethtoolMsgModuleEEPROMGet, netdev, 0, moduleEEPROMRequest(ref)...)
	if err != nil {
		return nil, &Error{"ask", name, err}
	}
	b, err := parseModuleEEPROM(msg, ref)
	if err != nil {
		return nil, &Error{"ask", name, err}
	}
	return b, nil
}

// moduleEEPROMRequest is the attributes of a request. The bank is optional, and drivers without banks refuse it.
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

// parseModuleEEPROM reads the body of ETHTOOL_MSG_MODULE_EEPROM_GET_REPLY. A driver may give less than was asked for, never more.
// Nothing at all is an error of the module's bus: mlx5 answers with as many bytes as it got before it
// (mlx5e_get_module_eeprom_by_page).
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

// ModuleEEPROM answers EPROTONOSUPPORT.
func (NoNetlink) ModuleEEPROM(context.Context, string, transceiver.Ref) ([]byte, error) {
	return nil, &Error{"ask", "ethtool", unix.EPROTONOSUPPORT}
}

// Busy says whether err is that of a device which has no time now: the firmware of a module is being written
// (net/ethtool/module.c), or its bus is taken.
func Busy(err error) bool { return errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EAGAIN) }
