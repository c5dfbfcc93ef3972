// Package sysfs knows the places of RDMA devices, their ports, netdevs and GPUs in sysfs.
package sysfs

import "strconv"

// ClassDir has an entry for each RDMA device.
const ClassDir = "sys/class/infiniband"

// NetDir has an entry for each netdev.
const NetDir = "sys/class/net/"

// PortDir returns the directory of a port of a device.
func PortDir(device string, n int) string {
	return ClassDir + "/" + device + "/ports/" + strconv.Itoa(n)
}

// PCIDir has an entry for each PCI function.
const PCIDir = "sys/bus/pci/devices/"

// VerbsDir has an entry for each verbs device.
const VerbsDir = "sys/class/infiniband_verbs"

// PassthroughDrivers are drivers of functions that this kernel does not use: passed through to a virtual machine or a
// process.
var PassthroughDrivers = []string{"vfio-pci", "mlx5_vfio_pci", "pci-stub", "pciback", "uio_pci_generic", "igb_uio"}

// EthtoolDir names the requests for a netdev, as captures do.
func EthtoolDir(netdev string) string { return "ethtool/" + netdev }

// NetlinkDir names the requests for a port, as captures do.
func NetlinkDir(name string, n int) string { return "rdma/" + name + "/" + strconv.Itoa(n) }
