package pci

import (
	"encoding/binary"
	"iter"
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
	configHeader    = 64
	configIDs       = 16
	firstCapability = 0x34
	capPCIe         = 0x10
	pcieDevCtl      = 8
	pcieLength      = 0x3c
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

// capability finds the PCI Express capability; 0: none.
func capability(b []byte) int {
	for at := range capabilities(b) {
		if b[at] == capPCIe {
			return at
		}
	}
	return 0
}

// capabilities returns the offsets of the list. It is at most as long as there is room for entries of 4 bytes.
func capabilities(b []byte) iter.Seq[int] {
	return func(yield func(int) bool) {
		if len(b) <= firstCapability {
			return
		}
		at := int(b[firstCapability]) &^ 3
		for range (256 - configHeader) / 4 {
			if at < configHeader || at+2 > len(b) || !yield(at) {
				return
			}
			at = int(b[at+1]) &^ 3
		}
	}
}

// PublicConfig keeps the registers up to the class and the header type, the lists of capabilities, and the content of
// those that ParseConfig reads. Others are zeros: the Device Serial Number is the GUID of some adapters, and a vendor
// may write anything into its own. Nothing is left of what is shorter than a header.
func PublicConfig(b []byte) []byte {
	out := make([]byte, len(b))
	keep := func(at, n int) {
		if at < len(b) {
			copy(out[at:min(at+n, len(b))], b[at:])
		}
	}
	if len(b) < configHeader {
		return nil
	}
	keep(0, configIDs)
	keep(firstCapability, 1)
	for at := range capabilities(b) {
		if keep(at, 2); b[at] == capPCIe {
			keep(at, pcieLength)
		}
	}
	for at, id := range extendedCapabilities(b) {
		if keep(at, 4); id == extCapACS || id == extCapATS {
			keep(at, 8)
		}
	}
	return out
}

// extended finds an extended capability; 0: none.
func extended(b []byte, id uint32) int {
	for at, found := range extendedCapabilities(b) {
		if found == id {
			return at
		}
	}
	return 0
}

// extendedCapabilities returns the offsets and ids of the list: a header has a 16-bit id, a 4-bit version, and the
// offset of the next one.
func extendedCapabilities(b []byte) iter.Seq2[int, uint32] {
	return func(yield func(int, uint32) bool) {
		at := extCapBase
		for range (4096 - extCapBase) / 8 {
			if at < extCapBase || at+4 > len(b) {
				return
			}
			header := binary.LittleEndian.Uint32(b[at:])
			if header == 0 || header == 0xffffffff || !yield(at, header&0xffff) {
				return
			}
			at = int(header>>20) &^ 3
		}
	}
}
