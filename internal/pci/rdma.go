package pci

import (
	"slices"
	"strings"
)

// RDMAKind is the RDMA capability of a PCI function; empty: none or unknown.
type RDMAKind string

// The kinds.
const (
	RDMAOnly     RDMAKind = "rdma"     // made for RDMA: an InfiniBand or Omni-Path adapter, EFA
	RDMAEthernet RDMAKind = "ethernet" // an Ethernet controller that supports RDMA and may not be intended for it
)

// PCI classes (include/linux/pci_ids.h), without the programming interface.
const (
	classEthernet   = "0x0200"
	classNetwork    = "0x0280" // of ConnectX-3 VPI, with any link layer
	classInfiniBand = "0x0207"
	classFabric     = "0x0208" // hfi1
	classSerialIB   = "0x0c06" // qib
)

// ethernetRDMA are the device IDs of Ethernet controllers with an RDMA driver, by vendor; nil: all of the vendor. From
// the drivers' ID tables: mlx4 and mlx5 (all of the vendor's Ethernet controllers), bnxt_en, ice, i40e (X722 only),
// idpf, qede, cxgb4, hns3, be2net (Skyhawk), ionic, mana.
var ethernetRDMA = map[string][]string{
	"0x15b3": nil,
	"0x1425": nil,
	"0x14e4": {"0x1614", "0x16d6", "0x16d7", "0x16d8", "0x16ed", "0x16ef", "0x16f0", "0x16f1", "0x1750", "0x1751", "0x1752", "0x1760", "0x1806", "0x1807", "0x1819", "0xd802"},
	"0x8086": {
		"0x124c", "0x124d", "0x124e", "0x124f", "0x12d1", "0x12d2", "0x12d3", "0x12d5", "0x12d8", "0x12d9", "0x12da",
		"0x12dc", "0x1452", "0x145c", "0x1591", "0x1592", "0x1593", "0x1599", "0x159a", "0x159b", "0x188a", "0x188b",
		"0x188c", "0x188d", "0x188e", "0x1890", "0x1891", "0x1892", "0x1893", "0x1894", "0x37ce", "0x37cf", "0x37d0",
		"0x37d1", "0x37d2", "0x37d3",
	},
	"0x1077": {"0x1629", "0x1634", "0x1636", "0x1644", "0x1654", "0x1656", "0x165c", "0x1664", "0x1666", "0x8070", "0x8080", "0x8084"},
	"0x19e5": {"0xa222", "0xa224", "0xa225", "0xa226", "0xa227", "0xa228"},
	"0x10df": {"0x0720", "0x0728"},
	"0x1dd8": {"0x1002", "0x1003"},
	"0x1414": {"0x00ba"},
}

// rdmaOnly are vendors and device IDs of RDMA functions with other classes: EFA, ERDMA.
var rdmaOnly = []string{"0x1d0f0xefa0", "0x1d0f0xefa1", "0x1d0f0xefa2", "0x1d0f0xefa3", "0x1ded0x107f"}

// RDMAKindOf classifies a function by its files vendor, device and class.
func RDMAKindOf(vendor, device, class string) RDMAKind {
	is := func(prefix string) bool { return strings.HasPrefix(class, prefix) }
	if is(classInfiniBand) || is(classSerialIB) || is(classFabric) && vendor == "0x8086" ||
		slices.Contains(rdmaOnly, vendor+device) {
		return RDMAOnly
	}
	if devices, ok := ethernetRDMA[vendor]; ok && (is(classEthernet) || is(classNetwork)) &&
		(devices == nil || slices.Contains(devices, device)) {
		return RDMAEthernet
	}
	return ""
}
