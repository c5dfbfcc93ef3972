package site

// Key describes a key of the file, for the reference in docs/configuration.md. Texts are Markdown.
type Key struct {
	Name, Values, Default, Meaning string
}

const (
	globs     = "glob, or a list of globs"
	anything  = "matches all"
	notPinned = "nothing is expected"
)

// MatchKeys are those of match, of which all that are given have to match.
var MatchKeys = []Key{
	{"hostname", globs, anything, "the host's name as `hostname` prints it"},
	{"device", globs, anything, "name of the RDMA device"},
	{"board_id", globs, anything, "`board_id` of the device, the PSID of mlx5"},
	{"pci_address", globs, anything, "PCI address, as sysfs has it: `0000:18:00.0`; upper case or lower"},
	{"netdev", globs, anything, "network interface of the port; of a bond, each member: one that matches is enough"},
	{"port", globs, anything, "number of the port"},
	{"link_layer", globs, anything, "`InfiniBand` or `Ethernet`, upper case or lower"},
	{"gpu", globs, "no GPU", "index or UUID of a GPU, as the labels `gpu` and `UUID` have them; in `ignore` only, with `hostname` and `pci_address` at most"},
}

// CablingKeys are those of an entry of cabling, beside match.
var CablingKeys = []Key{
	{"system", "text", "none: it has to be given", "name of the switch, as LLDP tells it; case does not count, and a domain may be left out"},
	{"port_id", "text", "any port of it", "its port, by port ID or by the port's description"},
}

// PinKeys are those of a pin, beside match.
var PinKeys = []Key{
	{"rate", "`400Gb/s`, `400Gb`, `400G`; `2.5G`", "what the evidence says", "the data rate of the link. A number needs its unit"},
	{"lanes", "1 to 16", "what the evidence says", "the width of the link"},
	{"role", "`compute`, `other`, `nvlink_management`", "what the PCI tree says", "what the port is for"},
	{"active", "`true`, `false`", "`false`", "the port has to be ACTIVE"},
	{"subnet_manager", "`true`, `false`", "`false`", "a subnet manager is meant to run on the port"},
	{"present", "`true`, `false`", "`false`", "the device has to be there. `match` has to name it: `device` or `pci_address` without a glob, and `hostname` if need be"},
	{"roce", "`lossless`, `lossy`, `auto`", "`auto`", "whether RoCE traffic relies on PFC; `auto`: where like ports have PFC on"},
	{"congestion_control", "`dcqcn`, `zerotouch_rtt`, `off`", notPinned, "DCQCN, which reacts to ECN marks; zero-touch RoCE (ZTR-RTT), which reacts to round-trip times; none"},
	{"ofed", "glob of versions: `\"25.10-*\"`; `\"*\"` any", notPinned, "version of the out-of-tree stack that the host has to run. Its match has `hostname` only"},
	{"pkeys", "list: `[0x8001, 0x7fff]`", notPinned, "P_Keys that have to be in the port's table. `[]` takes an earlier pin back"},
}
