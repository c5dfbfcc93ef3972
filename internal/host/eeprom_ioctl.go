package host

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/transceiver"
)

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
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	info := &moduleInfo{cmd: unix.ETHTOOL_GMODULEINFO}
	if err := ethtoolIoctl(fd, netdev, unsafe.Pointer(info)); err != nil {
		return nil, err
	}
	offset, err := imageOffset(info, ref)
	if err != nil {
		return nil, err
	}
	image := &moduleImage{cmd: unix.ETHTOOL_GMODULEEEPROM, offset: offset, length: uint32(ref.Length)}
	if err := ethtoolIoctl(fd, netdev, unsafe.Pointer(image)); err != nil {
		return nil, err
	}
	return image.data[:min(image.length, uint32(ref.Length))], nil
}

// imageOffset is the offset of a page in the image (net/ethtool/eeprom.c, fallback_set_params). A page that the image
// lacks is EINVAL, an image of another kind EOPNOTSUPP.
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
func ethtoolIoctl(fd int, netdev string, request unsafe.Pointer) error {
	if len(netdev) >= unix.IFNAMSIZ {
		return unix.ENODEV
	}
	r := &ifreq{data: request}
	copy(r.name[:], netdev)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(r)))
	runtime.KeepAlive(r)
	if errno != 0 {
		return errno
	}
	return nil
}
