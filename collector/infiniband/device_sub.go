package infiniband

import (
	"strings"

	"rdma_exporter/internal/snapshot"
)

// markSubDevices marks the RDMA devices that another one has created on its own PCI function: mlx5's SMI device has the
// node GUID of its parent, and one lane (drivers/infiniband/hw/mlx5/main.c, mlx5_ib_add_sub_dev). Its port is a part of
// the parent's link. Of devices with the same function and GUID the one with most lanes is the parent; without a link,
// or with as many, the first whose name is not that of an SMI device.
func markSubDevices(devices []snapshot.Device) {
	type identity struct{ address, guid string }
	parents := map[identity]int{}
	for i := range devices {
		d := &devices[i]
		at := identity{d.PCIAddress, d.NodeGUID}
		if d.FunctionType != snapshot.Physical || at.address == "" || at.guid == "" {
			continue
		}
		j, twice := parents[at]
		switch {
		case !twice:
			parents[at] = i
		case isParent(d, &devices[j]):
			devices[j].FunctionType, parents[at] = snapshot.SubFunction, i
		default:
			d.FunctionType = snapshot.SubFunction
		}
	}
}

// isParent reports whether a device is the parent of an earlier one at its place.
func isParent(d, earlier *snapshot.Device) bool {
	mine, other := lanesOf(d), lanesOf(earlier)
	if mine == 0 || other == 0 || mine == other {
		return isNamedSMI(earlier) && !isNamedSMI(d)
	}
	return mine > other
}

// isNamedSMI reports whether a name is like those of the manual page of rdma-dev: rdma dev add smi1 type SMI parent
// ibp8s0f1.
func isNamedSMI(d *snapshot.Device) bool { return strings.HasPrefix(d.Name, "smi") }

// lanesOf returns the number of lanes of a device's widest port; 0: unknown.
func lanesOf(d *snapshot.Device) (most uint64) {
	for i := range d.Ports {
		if n := d.Ports[i].Lanes; n != nil {
			most = max(most, *n)
		}
	}
	return most
}
