package netlink

import (
	"errors"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/transceiver"
)

func TestStructuresOfTheIoctl(t *testing.T) {
	for name, size := range map[string][2]uintptr{
		"ethtool_modinfo": {unsafe.Sizeof(moduleInfo{}), 44}, "ethtool_eeprom": {unsafe.Offsetof(moduleImage{}.data), 16},
		"ifreq": {unsafe.Sizeof(ifreq{}), 40},
	} {
		if size[0] != size[1] {
			t.Errorf("%s has %d bytes, want %d", name, size[0], size[1])
		}
	}
}

func TestImageOffset(t *testing.T) {
	const a0, a2 = transceiver.AddressA0, transceiver.AddressA2
	for _, c := range []struct {
		name         string
		kind, length uint32
		ref          transceiver.Ref
		want         uint32
		err          error
	}{
		{"SFP", moduleSFF8472, 512, transceiver.Ref{Address: a0, Offset: 20, Length: 16}, 20, nil},
		{"its monitors", moduleSFF8472, 512, transceiver.Ref{Address: a2, Offset: 96, Length: 10}, 352, nil},
		{"a page of them", moduleSFF8472, 512, transceiver.Ref{Address: a2, Page: 2, Offset: 128, Length: 10}, 0, unix.EINVAL},
		{"SFP without monitors", moduleSFF8079, 256, transceiver.Ref{Address: a2, Offset: 96, Length: 10}, 0, unix.EINVAL},
		{"QSFP", moduleSFF8636, 640, transceiver.Ref{Address: a0, Offset: 22, Length: 2}, 22, nil},
		{"page 0", moduleSFF8636, 640, transceiver.Ref{Address: a0, Offset: 128, Length: 128}, 128, nil},
		{"thresholds", moduleSFF8436, 640, transceiver.Ref{Address: a0, Page: 3, Offset: 128, Length: 128}, 512, nil},
		{"a flat one", moduleSFF8636, 256, transceiver.Ref{Address: a0, Page: 3, Offset: 128, Length: 128}, 0, unix.EINVAL},
		{"another address", moduleSFF8636, 640, transceiver.Ref{Address: a2, Offset: 0, Length: 1}, 0, unix.EINVAL},
		{"a bank", moduleSFF8636, 640, transceiver.Ref{Address: a0, Bank: 1, Page: 1, Offset: 128, Length: 1}, 0, unix.EINVAL},
		{"another kind", 9, 640, transceiver.Ref{Address: a0, Length: 1}, 0, unix.EOPNOTSUPP},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := imageOffset(&moduleInfo{kind: c.kind, length: c.length}, c.ref)
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("%d, %v; want %d, %v", got, err, c.want, c.err)
			}
		})
	}
}

// TestIoctlOfANetdevWithoutModules uses the running kernel.
func TestIoctlOfANetdevWithoutModules(t *testing.T) {
	for netdev, want := range map[string]error{
		"lo": unix.EOPNOTSUPP, "none0": unix.ENODEV, "a-name-that-is-too-long": unix.ENODEV,
	} {
		t.Run(netdev, func(t *testing.T) {
			b, err := moduleByIoctl(netdev, transceiver.Ref{Address: transceiver.AddressA0, Length: 1})
			if !errors.Is(err, want) && !errors.Is(err, unix.EPERM) {
				t.Errorf("%x, %v", b, err)
			}
		})
	}
}
