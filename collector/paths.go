package collector

import "strconv"

const classDir = "sys/class/infiniband"

const netDir = "sys/class/net/"

func portDir(device string, n int) string {
	return classDir + "/" + device + "/ports/" + strconv.Itoa(n)
}

const pciDir = "sys/bus/pci/devices/"

const verbsDir = "sys/class/infiniband_verbs"

// passthroughDrivers are drivers of functions that this kernel does not use: passed through to a virtual machine or a
// process.
var passthroughDrivers = []string{"vfio-pci", "mlx5_vfio_pci", "pci-stub", "pciback", "uio_pci_generic", "igb_uio"}

// ethtoolDir names the requests for a netdev, as captures do.
func ethtoolDir(netdev string) string { return "ethtool/" + netdev }

// netlinkDir names the requests for a port, as captures do.
func netlinkDir(name string, n int) string { return "rdma/" + name + "/" + strconv.Itoa(n) }
