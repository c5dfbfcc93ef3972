package incidents

import "time"

// Small fleets, for what does not leave a host or a rail.
var (
	eight     = []int{8}
	smallRoCE = []spec{{cluster: "a", hosts: 12, ports: eight, layer: ethernet}}
	smallIB   = []spec{{cluster: "a", hosts: 12, ports: eight, layer: infiniBand}}
	dualRoCE  = []spec{{cluster: "a", hosts: 6, ports: eight, layer: ethernet, dual: true}}
	optical   = []spec{{cluster: "a", hosts: 6, ports: eight, layer: ethernet, optics: true}}
	blindRoCE = []spec{{cluster: "a", hosts: 16, ports: []int{2}, layer: ethernet, blind: true}}
	unplaced  = []spec{{cluster: "a", hosts: 6, ports: eight, layer: ethernet, unplaced: true}}
	rails16   = []spec{{cluster: "a", hosts: 16, ports: []int{2}, layer: ethernet}}
	twoRacks  = []spec{{cluster: "a", hosts: 32, ports: []int{2}, layer: ethernet}}
)

// several returns n pages.
func several(n int) score { return score{daemon: n, central: n} }

// edges are incidents at the edges of what folds into one alert: parts of a host, an order in time, facts that are
// missing, and those that must not fold.
var edges = []incident{
	// Parts of a host.
	{
		name: "half of the ports of a host", fleet: smallRoCE, bar: onePage, lasts: 20 * time.Minute,
		must:   &must{"critical RDMAPortDown", "instance=gpu-04:10879", 3 * time.Minute},
		events: []event{{0, unplug(wide, 0, 1, 2, 3)}},
	},
	{
		name: "half of the ports of a host, InfiniBand", fleet: smallIB, bar: onePage, lasts: 20 * time.Minute,
		must:   &must{"critical RDMAPortDown", "instance=gpu-04:10879", 3 * time.Minute},
		events: []event{{0, unplug(wide, 4, 5, 6, 7)}},
	},
	{
		name: "three ports of eight", fleet: smallRoCE, bar: onePage, lasts: 20 * time.Minute,
		must:   &must{"critical RDMAPortDown", "instance=gpu-04:10879", 3 * time.Minute},
		events: []event{{0, unplug(wide, 0, 3, 6)}},
	},
	{
		name: "both functions of a card", fleet: dualRoCE, bar: onePage, lasts: 20 * time.Minute,
		must:   &must{"critical RDMADeviceMissing", "card=0000:28:00 instance=gpu-04:10879", 5 * time.Minute},
		events: []event{{0, lose(wide, 2, 3)}},
	},
	{
		name: "both links of a card", fleet: dualRoCE, bar: onePage, lasts: 20 * time.Minute,
		must:   &must{"critical RDMAPortDown", "card=0000:28:00 instance=gpu-04:10879", 3 * time.Minute},
		events: []event{{0, unplug(wide, 2, 3)}},
	},
	{
		name: "two NICs below a PCIe switch", fleet: smallIB, bar: onePage, lasts: 20 * time.Minute,
		must:   &must{"critical RDMADeviceMissing", "instance=gpu-04:10879 pcie_switch=0000:10:00.0", 5 * time.Minute},
		events: []event{{0, lose(wide, 2, 3)}},
	},
	{
		name: "hot module, then its link", fleet: optical, bar: onePage, lasts: 30 * time.Minute,
		must:   &must{"critical RDMATransceiverHot", "device=mlx5_2 instance=gpu-04:10879 port=1", 13 * time.Minute},
		events: []event{{0, overheat(wide, 2)}, {10 * time.Minute, unplug(wide, 2)}},
	},
	// Several hosts.
	{
		name: "eight hosts boot without a subnet manager", fleet: smallIB,
		bar: onePage, lasts: 40 * time.Minute, stays: true,
		must: &must{"critical RDMANoSubnetManager", "subnet=fe80:0000:0000:0000", 20 * time.Minute},
		events: []event{
			{0, managers(gone)},
			{time.Minute, announce(rack...)},
			{2 * time.Minute, powerOff(rack...)},
			{12 * time.Minute, boot(rack...)},
			{12 * time.Minute, endMaintenance(rack...)},
		},
	},
	{
		name: "leaf of 16 hosts without LLDP", fleet: blindRoCE, bar: onePage, lasts: 20 * time.Minute, stays: true,
		must:   &must{"critical RDMAPortDown", "rail=1", 3 * time.Minute},
		events: []event{{0, leafDown(1)}},
	},
	{
		name: "power loss of two racks", fleet: twoRacks, bar: onePage, lasts: 20 * time.Minute,
		must:   &must{"critical RDMAExporterDown", "", 5 * time.Minute},
		events: []event{{0, powerOff(hostsBetween(0, 16)...)}},
	},
	// An order in time.
	{
		name: "ports of a leaf come back one by one", fleet: rails16,
		bar: onePage, lasts: 50 * time.Minute, stays: true,
		must: &must{"critical RDMAPortDown", "leaf=leaf-2", 3 * time.Minute},
		events: append([]event{{0, unplugRail(1, 16)}},
			oneByOne(16, 10*time.Minute, 2*time.Minute, plugOn(1))...),
	},
	{
		name: "ports of a leaf go down within 3m", fleet: rails16, bar: onePage, lasts: 25 * time.Minute, stays: true,
		must:   &must{"critical RDMAPortDown", "leaf=leaf-2", 4 * time.Minute},
		events: oneByOne(16, 0, 11*time.Second, unplugOn(1)),
	},
	{
		name: "a standing fault when its leaf restarts", fleet: rails16,
		bar: score{daemon: 1, central: 2}, least: 2, lasts: 50 * time.Minute,
		must: &must{"critical RDMAPortDown", "leaf=leaf-2", 23 * time.Minute},
		events: []event{
			{0, unplug(wide, 1)},
			{20 * time.Minute, leafDown(1)},
			{24 * time.Minute, leafUp(1)},
		},
	},
	{
		name: "a leaf restarts twice", fleet: rails16, bar: onePage, lasts: 35 * time.Minute, stays: true,
		must: &must{"critical RDMAPortDown", "leaf=leaf-2", 3 * time.Minute},
		events: []event{
			{0, leafDown(1)},
			{4 * time.Minute, leafUp(1)},
			{10 * time.Minute, leafDown(1)},
			{14 * time.Minute, leafUp(1)},
		},
	},
	{
		name: "cause that ends, effect that stays", fleet: smallRoCE, bar: several(2), lasts: 30 * time.Minute,
		must: &must{"critical RDMAPortDown", "device=mlx5_2 instance=gpu-04:10879 port=1", 17 * time.Minute},
		events: []event{
			{0, crash(wide, 2)},
			{8 * time.Minute, unplug(wide, 2)},
			{12 * time.Minute, recoverFirmware(wide, 2)},
		},
	},
	// What is not known.
	{
		name: "cable without rdma_place_info", fleet: unplaced, bar: onePage, least: 1, lasts: 20 * time.Minute,
		must:   &must{"critical RDMAPortDown", "device=mlx5_2 instance=gpu-04:10879 port=1", 3 * time.Minute},
		events: []event{{0, unplug(wide, 2)}},
	},
	{
		name: "half of a host without rdma_place_info", fleet: unplaced,
		bar: onePage, least: 1, lasts: 20 * time.Minute,
		must:   &must{"critical RDMAPortDown", "instance=gpu-04:10879", 3 * time.Minute},
		events: []event{{0, unplug(wide, 0, 1, 2, 3)}},
	},
	{
		name: "six faults and a gap of 12m without scrapes", fleet: smallRoCE,
		bar: score{daemon: 1, central: 6}, least: 6,
		lasts: 85 * time.Minute,
		events: []event{
			{0, unplug(0, 1)},
			{8 * time.Minute, unplug(1, 2)},
			{16 * time.Minute, unplug(2, 3)},
			{24 * time.Minute, unplug(3, 4)},
			{32 * time.Minute, unplug(4, 5)},
			{40 * time.Minute, unplug(5, 6)},
			{55 * time.Minute, unwatch},
			{67 * time.Minute, watch},
		},
	},
	{
		name: "gap of 20m without scrapes", fleet: smallRoCE, bar: noPage, lasts: 40 * time.Minute, silent: true,
		events: []event{{0, unwatch}, {20 * time.Minute, watch}},
	},
	// What must not fold.
	{
		name: "two cables of two hosts", fleet: smallRoCE,
		bar: score{daemon: 1, central: 2}, least: 2, lasts: 20 * time.Minute,
		must:   &must{"critical RDMAPortDown", "device=mlx5_5 instance=gpu-08:10879 port=1", 4 * time.Minute},
		events: []event{{0, unplug(wide, 2)}, {time.Minute, unplug(7, 5)}},
	},
	{
		name: "cables of one host 10m apart", fleet: smallIB, bar: several(2), least: 2, lasts: 30 * time.Minute,
		must:   &must{"critical RDMAPortDown", "device=mlx5_5 instance=gpu-04:10879 port=1", 13 * time.Minute},
		events: []event{{0, unplug(wide, 2)}, {10 * time.Minute, unplug(wide, 5)}},
	},
	{
		name: "eight ports of one of two rails, one each 8m: the fourth names the rail", fleet: blindRoCE,
		bar: score{daemon: 1, central: 4}, least: 4, lasts: 64 * time.Minute,
		events: oneByOne(8, 0, 8*time.Minute, unplugOn(1)),
	},
	{
		name: "a cable and a GPU of two hosts", fleet: gpuRails,
		bar: score{daemon: 1, central: 2}, least: 2, lasts: 20 * time.Minute,
		must:   &must{"critical RDMADeviceMissing", "UUID=GPU-00000003-0002 gpu=2 instance=gpu-04:10879", 3 * time.Minute},
		events: []event{{0, loseGPU(wide, 2)}, {0, unplug(narrow, 2)}},
	},
	// What is planned.
	{
		name: "upgrade of the exporter, one host after the other", fleet: smallRoCE,
		bar: noPage, lasts: 20 * time.Minute, silent: true,
		events: rolling(12, time.Minute, 40*time.Second),
	},
	{
		name: "upgrade of the exporter, all at once", fleet: smallIB,
		bar: noPage, lasts: 15 * time.Minute, silent: true,
		events: []event{{0, stop(hostsBetween(0, 12)...)}, {2 * time.Minute, run(hostsBetween(0, 12)...)}},
	},
	{
		name: "firmware update of a drained rack", fleet: rails16, bar: noPage, lasts: 30 * time.Minute,
		events: []event{
			{-2 * time.Minute, announce(rack...)},
			{0, powerOff(rack...)},
			{12 * time.Minute, boot(rack...)},
			{16 * time.Minute, endMaintenance(rack...)},
		},
	},
}
