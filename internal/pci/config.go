package pci

import (
	"bytes"
	"encoding/binary"
)

// Config is the facts of a function that only configuration space has (include/uapi/linux/pci_regs.h).
type Config struct {
	MaxPayload      int  // bytes: Device Control
	MaxReadRequest  int  // bytes: Device Control
	RelaxedOrdering bool // the function may set the attribute: Device Control
	// ATS: the function requests translations from the IOMMU and keeps them: ATS Control, Enable. HasATS: it has the
	// capability.
	ATS, HasATS bool
	// Redirect: ACS sends peer-to-peer traffic to the root: ACS Control, P2P Request Redirect, P2P Completion Redirect or
	// P2P Egress Control (pci_bridge_has_acs_redir, drivers/pci/p2pdma.c).
	Redirect bool
}

const (
	firstCapability = 0x34
	capPCIe         = 0x10
	extCapSerial    = 0x03
	pcieDevCtl      = 8
	extCapBase      = 0x100
	extCapACS       = 0x0d
	acsControl      = 6
	acsRedirect     = 1<<2 | 1<<3 | 1<<5
	extCapATS       = 0x0f
	atsControl      = 6
	atsEnable       = 1 << 15
)

// ParseConfig parses the file config. Without CAP_SYS_ADMIN the kernel returns only the first 64 bytes, without any
// capability: ok is false. It is also false for a conventional PCI function and for one that has fallen off the bus.
func ParseConfig(b []byte) (c Config, ok bool) {
	at := capability(b)
	if at == 0 || len(b) < at+pcieDevCtl+2 {
		return Config{}, false
	}
	control := binary.LittleEndian.Uint16(b[at+pcieDevCtl:])
	c.MaxPayload, c.MaxReadRequest = 128<<(control>>5&7), 128<<(control>>12&7)
	c.RelaxedOrdering = control&(1<<4) != 0
	if at := extended(b, extCapACS); at != 0 && len(b) >= at+acsControl+2 {
		c.Redirect = binary.LittleEndian.Uint16(b[at+acsControl:])&acsRedirect != 0
	}
	if at := extended(b, extCapATS); at != 0 && len(b) >= at+atsControl+2 {
		c.HasATS, c.ATS = true, binary.LittleEndian.Uint16(b[at+atsControl:])&atsEnable != 0
	}
	return c, true
}

// capability finds the PCI Express capability; 0: none. The list is at most as long as there is room for entries of 4
// bytes.
func capability(b []byte) int {
	if len(b) <= firstCapability {
		return 0
	}
	at := int(b[firstCapability]) &^ 3
	for range (256 - 64) / 4 {
		if at < 64 || at+2 > len(b) {
			return 0
		}
		if b[at] == capPCIe {
			return at
		}
		at = int(b[at+1]) &^ 3
	}
	return 0
}

// WithoutSerial removes the Device Serial Number: it is the GUID of some adapters.
func WithoutSerial(b []byte) []byte {
	b = bytes.Clone(b)
	if at := extended(b, extCapSerial); at != 0 {
		clear(b[at+4 : min(at+12, len(b))])
	}
	return b
}

// extended finds an extended capability: its header has a 16-bit id, a 4-bit version, and the offset of the next one.
func extended(b []byte, id uint32) int {
	at := extCapBase
	for range (4096 - extCapBase) / 8 {
		if at < extCapBase || at+4 > len(b) {
			return 0
		}
		header := binary.LittleEndian.Uint32(b[at:])
		if header == 0 || header == 0xffffffff {
			return 0
		}
		if header&0xffff == id {
			return at
		}
		at = int(header>>20) &^ 3
	}
	return 0
}
