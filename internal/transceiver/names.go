package transceiver

import "fmt"

// formFactors are the identifiers of SFF-8024, table 4-1. If one stands for several form factors, decoding determines
// the exact one.
var formFactors = map[uint8]string{
	0x01: "GBIC", 0x02: "soldered", 0x03: "SFP", 0x04: "300-pin XBI", 0x05: "XENPAK", 0x06: "XFP", 0x07: "XFF",
	0x08: "XFP-E", 0x09: "XPAK", 0x0A: "X2", 0x0B: "DWDM-SFP", 0x0C: "QSFP", 0x0D: "QSFP+", 0x0E: "CXP", 0x0F: "HD 4X",
	0x10: "HD 8X", 0x11: "QSFP28", 0x12: "CXP2", 0x13: "CDFP", 0x14: "HD 4X fanout", 0x15: "HD 8X fanout", 0x16: "CDFP",
	0x17: "microQSFP", 0x18: "QSFP-DD", 0x19: "OSFP", 0x1A: "SFP-DD", 0x1B: "DSFP", 0x1C: "OcuLink x4",
	0x1D: "OcuLink x8", 0x1E: "QSFP", 0x1F: "SFP-DD", 0x20: "SFP", 0x21: "OSFP-XD", 0x22: "ELSFP", 0x23: "CDFP x4",
	0x24: "CDFP x8", 0x25: "CDFP x16",
}

// layouts are the memory layouts of these identifiers. SFP-DD (1Ah) has its own layout, DWDM-SFP (0Bh) does not follow
// SFF-8472.
var layouts = map[uint8]Layout{
	0x03: SFF8472, 0x0C: SFF8636, 0x0D: SFF8636, 0x11: SFF8636,
	0x18: CMIS, 0x19: CMIS, 0x1B: CMIS, 0x1E: CMIS, 0x1F: CMIS, 0x20: CMIS, 0x21: CMIS, 0x23: CMIS, 0x24: CMIS, 0x25: CMIS,
}

func layoutOf(identifier uint8) Layout { return layouts[identifier] }

// connectors are those of SFF-8024, table 4-3.
var connectors = map[uint8]string{
	0x01: "SC", 0x02: "FC style 1", 0x03: "FC style 2", 0x04: "BNC/TNC", 0x05: "FC coax", 0x06: "Fiberjack",
	0x07: "LC", 0x08: "MT-RJ",
	0x09: "MU", 0x0A: "SG", 0x0B: "optical pigtail", 0x0C: "MPO 1x12", 0x0D: "MPO 2x16", 0x20: "HSSDC II",
	0x21: "copper pigtail",
	0x22: "RJ45", noConnector: "no separable connector", 0x24: "MXC 2x16", 0x25: "CS", 0x26: "SN",
	0x27: "MPO 2x12", 0x28: "MPO 1x16",
}

const noConnector = 0x23

// specification is an extended specification of SFF-8024, table 4-4.
type specification struct {
	name  string
	media Media
}

// specifications are the extended compliance codes of SFF modules (00h:192, A0h:36).
var specifications = map[uint8]specification{
	0x01: {"100G AOC or 25GAUI C2M AOC", ActiveOptical}, 0x02: {"100GBASE-SR4 or 25GBASE-SR", MultiMode},
	0x03: {"100GBASE-LR4 or 25GBASE-LR", SingleMode}, 0x04: {"100GBASE-ER4 or 25GBASE-ER", SingleMode},
	0x05: {"100GBASE-SR10", MultiMode}, 0x06: {"100G CWDM4", SingleMode}, 0x07: {"100G PSM4", SingleMode},
	0x08: {"100G ACC or 25GAUI C2M ACC", ActiveCopper}, 0x0B: {"100GBASE-CR4 or 25GBASE-CR CA-25G-L", PassiveCopper},
	0x0C: {"25GBASE-CR CA-25G-S", PassiveCopper}, 0x0D: {"25GBASE-CR CA-25G-N", PassiveCopper},
	0x10: {"40GBASE-ER4", SingleMode}, 0x11: {"4x10GBASE-SR", MultiMode}, 0x12: {"40G PSM4", SingleMode},
	0x16: {"10GBASE-T", TwistedPair}, 0x17: {"100G CLR4", SingleMode}, 0x18: {"100G AOC or 25GAUI C2M AOC", ActiveOptical},
	0x19: {"100G ACC or 25GAUI C2M ACC", ActiveCopper}, 0x1A: {"100GE-DWDM2", SingleMode},
	0x1C: {"10GBASE-T short reach", TwistedPair},
	0x1D: {"5GBASE-T", TwistedPair}, 0x1E: {"2.5GBASE-T", TwistedPair}, 0x1F: {"40G SWDM4", MultiMode},
	0x20: {"100G SWDM4", MultiMode},
	0x21: {"100G PAM4 BiDi", MultiMode}, 0x22: {"4WDM-10", SingleMode}, 0x23: {"4WDM-20", SingleMode},
	0x24: {"4WDM-40", SingleMode},
	0x25: {"100GBASE-DR", SingleMode}, 0x26: {"100G-FR or 100GBASE-FR1", SingleMode},
	0x27: {"100G-LR or 100GBASE-LR1", SingleMode},
	0x28: {"100G-SR1", MultiMode}, 0x29: {"100GBASE-SR1, 200GBASE-SR2 or 400GBASE-SR4", MultiMode},
	0x2A: {"100GBASE-FR1", SingleMode},
	0x2B: {"100GBASE-LR1", SingleMode}, 0x30: {"50GAUI, 100GAUI-2 or 200GAUI-4 ACC", ActiveCopper},
	0x31: {"50GAUI, 100GAUI-2 or 200GAUI-4 AOC", ActiveOptical},
	0x32: {"50GAUI, 100GAUI-2 or 200GAUI-4 ACC", ActiveCopper},
	0x33: {"50GAUI, 100GAUI-2 or 200GAUI-4 AOC", ActiveOptical},
	0x3F: {"100GBASE-CR1, 200GBASE-CR2 or 400GBASE-CR4", PassiveCopper},
	0x40: {"50GBASE-CR, 100GBASE-CR2 or 200GBASE-CR4", PassiveCopper},
	0x41: {"50GBASE-SR, 100GBASE-SR2 or 200GBASE-SR4", MultiMode},
	0x42: {"50GBASE-FR or 200GBASE-DR4", SingleMode}, 0x43: {"200GBASE-FR4", SingleMode}, 0x44: {"200G PSM4", SingleMode},
	0x45: {"50GBASE-LR", SingleMode}, 0x46: {"200GBASE-LR4", SingleMode}, 0x47: {"400GBASE-DR4", SingleMode},
	0x48: {"400GBASE-FR4", SingleMode}, 0x49: {"400GBASE-LR4-6", SingleMode},
}

// hostInterface is an electrical interface of a CMIS module.
type hostInterface struct {
	name string
	rate int // Gb/s per lane
}

// hostInterfaces are those of SFF-8024, table 4-5, for Ethernet and InfiniBand with 10 Gb/s per lane or more.
var hostInterfaces = map[uint8]hostInterface{
	0x03: {"XFI", 10}, 0x04: {"SFI", 10}, 0x05: {"25GAUI C2M", 25}, 0x06: {"XLAUI C2M", 10}, 0x07: {"XLPPI", 10},
	0x08: {"LAUI-2 C2M", 25}, 0x09: {"50GAUI-2 C2M", 25}, 0x0A: {"50GAUI-1 C2M", 50}, 0x0B: {"CAUI-4 C2M", 25},
	0x0C: {"100GAUI-4 C2M", 25}, 0x0D: {"100GAUI-2 C2M", 50}, 0x0E: {"200GAUI-8 C2M", 25}, 0x0F: {"200GAUI-4 C2M", 50},
	0x10: {"400GAUI-16 C2M", 25}, 0x11: {"400GAUI-8 C2M", 50}, 0x14: {"25GBASE-CR CA-25G-L", 25},
	0x15: {"25GBASE-CR CA-25G-S", 25},
	0x16: {"25GBASE-CR CA-25G-N", 25}, 0x17: {"40GBASE-CR4", 10}, 0x18: {"50GBASE-CR", 50}, 0x19: {"100GBASE-CR10", 10},
	0x1A: {"100GBASE-CR4", 25}, 0x1B: {"100GBASE-CR2", 50}, 0x1C: {"200GBASE-CR4", 50}, 0x1D: {"400G CR8", 50},
	0x1E: {"200GBASE-CR1", 200}, 0x1F: {"400GBASE-CR2", 200}, 0x20: {"LEI-100G-PAM4-1", 100},
	0x21: {"LEI-200G-PAM4-2", 100},
	0x22: {"LEI-400G-PAM4-4", 100}, 0x23: {"LEI-800G-PAM4-8", 100}, 0x2E: {"IB QDR", 10}, 0x2F: {"IB FDR", 14},
	0x30: {"IB EDR", 25},
	0x31: {"IB HDR", 50}, 0x32: {"IB NDR", 100}, 0x41: {"CAUI-4 C2M without FEC", 25},
	0x42: {"CAUI-4 C2M with RS FEC", 25},
	0x43: {"50GBASE-CR2 with RS FEC", 25}, 0x44: {"50GBASE-CR2 with Fire code FEC", 25},
	0x45: {"50GBASE-CR2 without FEC", 25},
	0x46: {"100GBASE-CR1", 100}, 0x47: {"200GBASE-CR2", 100}, 0x48: {"400GBASE-CR4", 100}, 0x49: {"800GBASE-CR8", 100},
	0x4B: {"100GAUI-1-S C2M", 100}, 0x4C: {"100GAUI-1-L C2M", 100}, 0x4D: {"200GAUI-2-S C2M", 100},
	0x4E: {"200GAUI-2-L C2M", 100},
	0x4F: {"400GAUI-4-S C2M", 100}, 0x50: {"400GAUI-4-L C2M", 100}, 0x51: {"800GAUI-8-S C2M", 100},
	0x52: {"800GAUI-8-L C2M", 100},
	0x55: {"1.6TAUI-16-S C2M", 100}, 0x56: {"1.6TAUI-16-L C2M", 100}, 0x57: {"800GBASE-CR4", 200},
	0x58: {"1.6TBASE-CR8", 200},
	0x74: {"CEI-112G-LINEAR-PAM4", 100}, 0x80: {"200GAUI-1 C2M", 200}, 0x81: {"400GAUI-2 C2M", 200},
	0x82: {"800GAUI-4 C2M", 200},
	0x83: {"1.6TAUI-8 C2M", 200}, 0xA0: {"IB XDR", 200},
}

// The kinds of media interfaces: 00h:85 of CMIS.
const (
	mediaTypeMMF    = 1
	mediaTypeSMF    = 2
	mediaTypeCopper = 3 // passive and linear active
	mediaTypeActive = 4
	mediaTypeBaseT  = 5
)

// mediaInterfaces are those of SFF-8024, tables 4-6 to 4-10, by kind.
var mediaInterfaces = map[uint8]map[uint8]string{
	mediaTypeMMF: {
		0x01: "10GBASE-SW", 0x02: "10GBASE-SR", 0x03: "25GBASE-SR", 0x04: "40GBASE-SR4", 0x05: "40GE SWDM4",
		0x06: "40GE BiDi", 0x07: "50GBASE-SR", 0x08: "100GBASE-SR10", 0x09: "100GBASE-SR4", 0x0A: "100GE SWDM4",
		0x0B: "100GE BiDi", 0x0C: "100GBASE-SR2", 0x0D: "100GBASE-SR1", 0x0E: "200GBASE-SR4", 0x0F: "400GBASE-SR16",
		0x10: "400GBASE-SR8", 0x11: "400GBASE-SR4", 0x12: "800GBASE-SR8", 0x1A: "400GBASE-SR4.2", 0x1B: "200GBASE-SR2",
		0x1D: "100GBASE-VR1", 0x1E: "200GBASE-VR2", 0x1F: "400GBASE-VR4", 0x20: "800GBASE-VR8",
	},
	mediaTypeSMF: {
		0x01: "10GBASE-LW", 0x02: "10GBASE-EW", 0x03: "10G-ZW", 0x04: "10GBASE-LR", 0x05: "10GBASE-ER", 0x06: "10G-ZR",
		0x07: "25GBASE-LR", 0x08: "25GBASE-ER", 0x09: "40GBASE-LR4", 0x0A: "40GBASE-FR", 0x0B: "50GBASE-FR",
		0x0C: "50GBASE-LR", 0x0D: "100GBASE-LR4", 0x0E: "100GBASE-ER4", 0x0F: "100G PSM4", 0x10: "100G CWDM4",
		0x11: "100G 4WDM-10", 0x12: "100G 4WDM-20", 0x13: "100G 4WDM-40", 0x14: "100GBASE-DR", 0x15: "100GBASE-FR1",
		0x16: "100GBASE-LR1", 0x17: "200GBASE-DR4", 0x18: "200GBASE-FR4", 0x19: "200GBASE-LR4", 0x1A: "400GBASE-FR8",
		0x1B: "400GBASE-LR8", 0x1C: "400GBASE-DR4", 0x1D: "400GBASE-FR4", 0x1E: "400G-LR4-10", 0x3E: "400ZR DWDM",
		0x3F: "400ZR", 0x40: "50GBASE-ER", 0x41: "200GBASE-ER4", 0x42: "400GBASE-ER8", 0x43: "400GBASE-LR4-6",
		0x44: "100GBASE-ZR", 0x46: "ZR400-OFEC-16QAM", 0x4D: "400GBASE-ZR", 0x55: "400GBASE-DR4-2", 0x56: "800GBASE-DR8",
		0x57: "800GBASE-DR8-2", 0x73: "200GBASE-DR1", 0x74: "200GBASE-DR1-2", 0x75: "400GBASE-DR2", 0x76: "400GBASE-DR2-2",
		0x77: "800GBASE-DR4", 0x78: "800GBASE-DR4-2", 0x79: "800GBASE-FR4-500", 0x7A: "800GBASE-FR4", 0x7B: "800GBASE-LR4",
		0x7C: "800GBASE-LR1", 0x7F: "1.6TBASE-DR8", 0x80: "1.6TBASE-DR8-2", 0x8F: "100G-DR1-LPO", 0x90: "200G-DR2-LPO",
		0x91: "400G-DR4-LPO", 0x92: "800G-DR8-LPO", 0x93: "400G-FR4-LPO",
	},
	mediaTypeCopper: {0x01: "copper cable", 0x02: "passive loopback", 0xBF: "passive loopback"},
	mediaTypeActive: {
		0x01: "active cable, BER below 1e-12", 0x02: "active cable, BER below 5e-5", 0x03: "active cable, BER below 2.6e-4",
		0x04: "active cable, BER below 1e-6", 0xBF: "active loopback",
	},
	mediaTypeBaseT: {0x01: "1000BASE-T", 0x02: "2.5GBASE-T", 0x03: "5GBASE-T", 0x04: "10GBASE-T"},
}

// named returns a name in a table, or else the number.
func named(name string, id uint8) string {
	if name == "" {
		return fmt.Sprintf("0x%02x", id)
	}
	return name
}

// moduleStates are those of CMIS 00h:3, bits 3–1.
var moduleStates = map[uint8]string{1: "low_power", 2: "power_up", 3: "ready", 4: "power_down", 5: "fault"}

const (
	moduleLowPower = 1
	moduleReady    = 3
)

// faults are the causes of CMIS 00h:41.
var faults = map[uint8]string{1: "tec_runaway", 2: "data_memory_corrupted", 3: "program_memory_corrupted"}

// dataPathStates are those of CMIS 11h:128–131.
var dataPathStates = map[uint8]string{
	1: "deactivated", 2: "init", 3: "deinit", dataPathActivated: "activated", 5: "tx_turn_on",
	6: "tx_turn_off", 7: "initialized",
}

const dataPathActivated = 4
