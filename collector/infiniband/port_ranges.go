package infiniband

import (
	"fmt"
	"math"
	"regexp"
	"unicode"
	"unicode/utf8"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

// span is the valid range of a number. A value outside is malformed, and absent.
type span struct{ lowest, highest uint64 }

// Ranges of port values by their standards.
var (
	// IBA 14.2.5.6, PortInfo.PortState; 0 is used only in Set and is no port state; 5 is the kernel's ACTIVE_DEFER.
	portStates     = span{1, 5}
	physicalStates = span{0, 15}             // IBA 14.2.5.6, PortPhysicalState: 4 bits; Omni-Path has some of its own
	lids           = span{0, math.MaxUint32} // IBA 4.1.1: 16 bits; Omni-Path: 32
	lidMasks       = span{0, 7}              // IBA 4.1.3: 3 bits
	nodeTypes      = span{1, 7}              // enum rdma_node_type, include/rdma/ib_verbs.h
	// ETH_MIN_MTU and the MTU of lo (include/uapi/linux/if_ether.h, drivers/net/loopback.c).
	mtus = span{68, 65536}
)

// within returns a number if it is in its range, else nil.
func within(r reading.Reads, dir, name string, n *uint64, s span) *uint64 {
	if n != nil && (*n < s.lowest || *n > s.highest) {
		r.Issue(access.ErrGarbled(dir+"/"+name, fmt.Append(nil, *n)))
		return nil
	}
	return n
}

// inRange drops invalid values of a port.
func inRange(r reading.Reads, dir string, p *snapshot.Port) {
	p.State = within(r, dir, "state", p.State, portStates)
	p.PhysicalState = within(r, dir, "phys_state", p.PhysicalState, physicalStates)
	p.LID = within(r, dir, "lid", p.LID, lids)
	p.SMLID = within(r, dir, "sm_lid", p.SMLID, lids)
	p.LMC = within(r, dir, "lid_mask_count", p.LMC, lidMasks)
	p.Capabilities = capabilities(r, dir, "cap_mask", p.Capabilities)
}

// capabilities are CapabilityMask (32 bits) with CapabilityMask2 (16 bits) above it (IBA 14.2.5.6). All ones are read
// from a device that is gone.
func capabilities(r reading.Reads, dir, name string, n *uint64) *uint64 {
	if n != nil && uint32(*n) == math.MaxUint32 {
		r.Issue(access.ErrGarbled(dir+"/"+name, fmt.Appendf(nil, "%#x", *n)))
		return nil
	}
	return within(r, dir, name, n, span{0, 1<<48 - 1})
}

// Formats of identity texts.
var (
	guids     = regexp.MustCompile(`^[0-9a-f]{4}(:[0-9a-f]{4}){3}$`)  // "%04x:%04x:%04x:%04x" of node_guid_show, drivers/infiniband/core/sysfs.c
	firmwares = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._ ()-]*$`) // IB_FW_VERSION_NAME_MAX: 31 letters
)

const (
	firmwareLength = 31
	nameLength     = 128
)

// identityText reads an identity text that some drivers lack or leave empty.
func identityText(r reading.Reads, path string, length int, form *regexp.Regexp) string {
	return validText(r, path, r.Optional(path), length, form)
}

// validText returns an identity text that was read; empty if it is malformed.
func validText(r reading.Reads, path, text string, length int, form *regexp.Regexp) string {
	if text == "" {
		return ""
	}
	printable := utf8.ValidString(text)
	for _, c := range text {
		printable = printable && unicode.IsPrint(c)
	}
	if !printable || len(text) > length || form != nil && !form.MatchString(text) {
		r.Issue(access.ErrGarbled(path, []byte(text)))
		return ""
	}
	return text
}
