package foreign_test

// keptFields are texts of answers that stay as they are, with the reason.
var keptFields = map[string]string{
	"RDMA.Port.Netdev":                        joins,
	"RDMA.Stats[].Name":                       meaning,
	"RDMA.Connections[].Peer":                 "an address, formatted from its bytes: FuzzParseConnections",
	"Ethtool.NetdevStats[].Name":              meaning,
	"Ethtool.StandardStats[].Name":            meaning,
	"Devlink.Health[].Bus":                    joins,
	"Devlink.Health[].Device":                 joins,
	"GPUs.Read.GPUs[].PCIAddress":             joins,
	"GPUs.Read.GPUs[].NUMANode":               "a number, of sysfs",
	"GPUs.Read.GPUs[].NVLinkErrors[].Name":    meaning,
	"GPUs.GPUsReleased.By":                    "TestControl",
	"Processes[].Verbs[]":                     joins,
	"Processes[].NCCL":                        "digits and dots of the name of a file, by a regular expression of package host",
	"Processes[].DMABUFs[].Exporter":          meaning,
	"Pods[].Devices[]":                        joins,
	"Tracer.Pairs.Events[].Kind":              meaning,
	"Tracer.Pairs.Events[].Device":            joins,
	"Tracer.Traced.Registrations[].Device":    joins,
	"Tracer.Traced.Registrations[].Function":  joins,
	"Tracer.Traced.Registrations[].Mechanism": "a word of package host",
	"Tracer.Traced.Totals[].Device":           joins,
	"Tracer.Traced.Recent[].Device":           joins,
	"KernelLog.Events[].Kind":                 "a word of package kernellog",
	"KernelLog.Events[].PCIAddress":           joins,
	"Subnet.Counters.Stats[].Name":            meaning,
	"Subnet.PortFEC.Counts[].Name":            meaning,
}

const (
	joins   = "without it the object is not found; one more is hostile"
	meaning = "without it the value has no meaning; one more is hostile"
)

// emptyStays are texts that others stand for while they are empty.
var emptyStays = []string{
	"Processes[].Job", "Processes[].Container", "Processes[].Unit", "Subnet.Ends.FarDescription",
}

// more are the lists of answers to which an element is added of which every text is hostile.
var more = []string{
	"RDMA.Stats", "Ethtool.NetdevStats", "Ethtool.StandardStats", "Devlink.Health", "GPUs.Read.GPUs[].NVLinkErrors",
	"Processes[].Verbs", "Processes[].DMABUFs", "Pods", "Tracer.Pairs.Events",
	"Tracer.Traced.Registrations", "Tracer.Traced.Totals", "Tracer.Traced.Recent",
	"KernelLog.Events", "Subnet.Counters.Stats", "Subnet.PortFEC.Counts",
}

const (
	notExported = "only elements of known objects or names are shown"
	compared    = "compared with known texts, or searched for them"
)

// shownNowhere are hostile texts that only captures have, with the reason.
var shownNowhere = map[string]string{
	"Devlink.Health[].Bus":                    notExported,
	"Devlink.Health[].Device":                 notExported,
	"GPUs.Read.GPUs[].Capability":             compared,
	"GPUs.Read.GPUs[].Fabric.Cluster":         "only whether there is one",
	"GPUs.Read.GPUs[].NVLinkErrors[].Name":    notExported,
	"KernelLog.Events[].Kind":                 notExported,
	"KernelLog.Events[].Netdev":               notExported,
	"KernelLog.Events[].PCIAddress":           notExported,
	"KernelLog.Events[].Line":                 "capture --kernel-log",
	"Pods[].Devices[]":                        notExported,
	"Processes[].Libraries[]":                 compared,
	"Processes[].Topology":                    "parsed: numbers and PCI addresses",
	"Subnet.Counters.Stats[].Name":            notExported,
	"Subnet.PortFEC.Counts[].Name":            notExported,
	"Tracer.Pairs.Events[].Device":            notExported,
	"Tracer.Pairs.Events[].Event":             compared,
	"Tracer.Pairs.Events[].Kind":              notExported,
	"Tracer.Traced.Recent[].Job":              "set by the collector",
	"Tracer.Traced.Registrations[].Exporter":  compared,
	"Tracer.Traced.Registrations[].Function":  notExported,
	"Tracer.Traced.Registrations[].Mechanism": notExported,
	"LLDP system description":                 "not exported",
	"capture.json kernel":                     "of the capture only",
	"config netdev":                           compared,
	"etc/modules":                             compared,
	"proc/driver/nvidia/version":              "digits and dots",
	"sys/module/nvidia/taint":                 compared,
	"usr/lib/modules-load.d/fwupd-msr.conf":   compared,

	"sys/devices/pci…/enpNsNnpN/phys_port_name": compared,
	"sys/devices/pci…/hwmonN/name":              compared,
	"sys/devices/pci…/mlxN_N/node_desc":         compared,
}
