package site

// Key describes a key of the file, for docs/configuration.md. Texts are Markdown.
type Key struct {
	Name, Values, Default, Meaning string
}

const (
	globs     = "glob, or a list of globs"
	anything  = "matches all"
	notPinned = "no expectation"
)

// MatchKeys are the keys of match. All that are set must match.
var MatchKeys = []Key{
	{"hostname", globs, anything, "host name, as printed by `hostname`"},
	{"device", globs, anything, "name of the RDMA device"},
	{"board_id", globs, anything, "`board_id` of the device (PSID of mlx5)"},
	{"pci_address", globs, anything, "PCI address as in sysfs: `0000:18:00.0`; case-insensitive"},
	{"netdev", globs, anything, "network interface of the port; of a bond, any of its members"},
	{"port", globs, anything, "port number"},
	{"link_layer", globs, anything, "`InfiniBand` or `Ethernet`; case-insensitive"},
	{"gpu", globs, "no GPU", "index or UUID of a GPU, as in the labels `gpu` and `UUID`; only in `ignore`, and only with `hostname` and `pci_address`"},
}

// CablingKeys are the keys of an entry of cabling, in addition to match.
var CablingKeys = []Key{
	{"system", "text", "none: required", "name of the switch, as announced by LLDP; case-insensitive, the domain is optional"},
	{"port_id", "text", "any port", "port of the switch: port ID or port description"},
}

// PinKeys are the keys of a pin, in addition to match.
var PinKeys = []Key{
	{"rate", "`400Gb/s`, `400Gb`, `400G`; `2.5G`", "from evidence", "data rate of the link, with its unit"},
	{"lanes", "1 to 16", "from evidence", "width of the link"},
	{"role", "`compute`, `other`, `nvlink_management`", "from the PCI tree", "role of the port"},
	{"active", "`true`, `false`", "from evidence", "whether the port must be ACTIVE; `false`: it is not in use ([account](check.md#the-account))"},
	{"subnet_manager", "`true`, `false`", "`false`", "a subnet manager is expected on the port"},
	{"present", "`true`, `false`", "`false`", "the device must be present. `match` must name it: `device` or `pci_address` without a glob, with `hostname` if needed"},
	{"roce", "`lossless`, `lossy`, `auto`", "`auto`", "whether RoCE traffic relies on PFC; `auto`: if similar ports have PFC enabled"},
	{"congestion_control", "`dcqcn`, `zerotouch_rtt`, `off`", notPinned, "DCQCN (reacts to ECN marks), zero-touch RoCE (ZTR-RTT, reacts to round-trip times), or none"},
	{"ofed", "glob of versions: `\"25.10-*\"`; `\"*\"` any", notPinned, "expected version of the out-of-tree stack. `match` may only have `hostname`"},
	{"pkeys", "list: `[0x8001, 0x7fff]`", notPinned, "expected P_Keys in the table of the port. `[]` cancels an earlier pin"},
}

// SwitchKeys are the keys of an entry of switches.
var SwitchKeys = []Key{
	{"switch", globs, "none: required", "node description of the InfiniBand switch, or its GUID as in the label `node_guid`; case-insensitive"},
	{"uplinks", "1 to 1024", "none: required", "number of its links to other switches"},
}

// RackKeys are the keys of an entry of racks, in addition to match.
var RackKeys = []Key{
	{"rack", "text, at most 128 bytes", "none: required", "name of the rack, as in the label `rack` of `rdma_place_info`"},
}

// PeerKeys are the keys of an entry of peers.
var PeerKeys = []Key{
	{"address", "IP address, GID, or `lid:N`", "none: required", "as the label `peer` of `rdma_port_peer_lost_total`"},
	{"name", "text, at most 128 bytes", "none: required", "host and device, as the label `name` of `rdma_port_peer_name_info`"},
}

// SetupKeys are the keys of an entry of setup, in addition to match.
var SetupKeys = []Key{
	{
		"want", "`SETTING: \"VALUE\"`, with the settings of [setup.md](setup.md)", "none: required",
		"value of each setting: a glob, or several separated by `|`; `any` accepts whatever is found, and removes the setting from the report. Settings of the host need a `match` with only `hostname`",
	},
}
