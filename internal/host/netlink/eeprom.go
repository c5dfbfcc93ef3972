package netlink

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host/access"
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

// EEPROMName returns the name of a page in errors and captures: ethtool/NETDEV/eeprom/ADDRESS-PAGE-BANK.
func EEPROMName(netdev string, ref transceiver.Ref) string {
	return "ethtool/" + netdev + eepromPage(ref)
}

func eepromPage(ref transceiver.Ref) string {
	return fmt.Sprintf("/eeprom/%02x-%02x-%d", ref.Address, ref.Page, ref.Bank)
}

// ModuleEEPROM reads bytes of a module.
func (c *EthtoolClient) ModuleEEPROM(_ context.Context, netdev string, ref transceiver.Ref) ([]byte, error) {
	return query(c.Here, "ethtool/"+netdev, eepromPage(ref), func() ([]byte, error) {
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

// moduleEEPROMRequest returns the attributes of a request. The bank is optional, and drivers without banks reject it.
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
	for t, v := range eachAttribute(msg) {
		if t != moduleEEPROMData {
			continue
		}
		if len(v) == 0 {
			return nil, unix.EIO
		}
		return v[:min(len(v), int(ref.Length))], nil
	}
	return nil, fmt.Errorf("%w: module EEPROM without data", access.ErrMalformed)
}

// Busy reports whether err is temporary: the firmware of the module is being written (net/ethtool/module.c), or its bus
// is in use.
func Busy(err error) bool { return errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EAGAIN) }

// Kernels before 5.13 have no MODULE_EEPROM_GET, only a flat image of the memory of SFF modules
// (include/uapi/linux/ethtool.h, ETHTOOL_GMODULEINFO and ETHTOOL_GMODULEEEPROM). Libraries read the whole image, which
// clears the latched flags in it. This code reads the same bytes as by page. CMIS modules have no image.
const (
	moduleSFF8079 = 1 // A0h
	moduleSFF8472 = 2 // A0h, A2h
	moduleSFF8636 = 3 // lower memory, then the upper halves of the pages
	moduleSFF8436 = 4 // the same

	moduleHalf    = 128
	moduleAddress = 256 // bytes of an I2C address
)

// moduleInfo is struct ethtool_modinfo.
type moduleInfo struct {
	cmd, kind, length uint32
	_                 [8]uint32
}

// moduleImage is struct ethtool_eeprom with room for the longest request.
type moduleImage struct {
	cmd, magic, offset, length uint32
	data                       [moduleHalf]byte
}

// ifreq is struct ifreq with a pointer.
type ifreq struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte
}

// moduleByIoctl reads bytes of an SFF module.
func moduleByIoctl(netdev string, ref transceiver.Ref) ([]byte, error) {
	info := &moduleInfo{cmd: unix.ETHTOOL_GMODULEINFO}
	if err := ethtoolIoctl(netdev, unsafe.Pointer(info)); err != nil {
		return nil, err
	}
	offset, err := imageOffset(info, ref)
	if err != nil {
		return nil, err
	}
	image := &moduleImage{cmd: unix.ETHTOOL_GMODULEEEPROM, offset: offset, length: uint32(ref.Length)}
	if err := ethtoolIoctl(netdev, unsafe.Pointer(image)); err != nil {
		return nil, err
	}
	return image.data[:min(image.length, uint32(ref.Length))], nil
}

// imageOffset returns the offset of a page in the image (net/ethtool/eeprom.c, fallback_set_params). A page that the
// image lacks is EINVAL, an image of another kind EOPNOTSUPP.
func imageOffset(info *moduleInfo, ref transceiver.Ref) (uint32, error) {
	offset := uint32(ref.Offset)
	switch info.kind {
	case moduleSFF8079, moduleSFF8472:
		if ref.Page != 0 {
			return 0, unix.EINVAL
		}
		if ref.Address == transceiver.AddressA2 {
			offset += moduleAddress
		}
	case moduleSFF8636, moduleSFF8436:
		if ref.Address != transceiver.AddressA0 {
			return 0, unix.EINVAL
		}
		offset += uint32(ref.Page) * moduleHalf
	default:
		return 0, unix.EOPNOTSUPP
	}
	if ref.Bank != 0 || offset+uint32(ref.Length) > info.length {
		return 0, unix.EINVAL
	}
	return offset, nil
}

// ethtoolIoctl makes a SIOCETHTOOL request. The kernel reads and writes the structure that starts with the command.
func ethtoolIoctl(netdev string, request unsafe.Pointer) error {
	if len(netdev) >= unix.IFNAMSIZ {
		return unix.ENODEV
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r := &ifreq{data: request}
	copy(r.name[:], netdev)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(r)))
	runtime.KeepAlive(r)
	if errno != 0 {
		return errno
	}
	return nil
}
