package foreign_test

// keptFields are texts of answers that stay as they are, with the reason.
var keptFields = map[string]string{
	"RDMA.Port.Netdev":                  "the name of a directory: interfaces are renamed in files",
	"RDMA.Stats[].Name":                 "",
	"Ethtool.NetdevStats[].Name":        "",
	"Ethtool.StandardStats[].Name":      "",
	"Devlink.Health[].Bus": "",
	"Devlink.Health[].Device": "",
	"GPUs.Read.GPUs[].PCIAddress": "",
	"GPUs.Read.GPUs[].NUMANode": "",
	"GPUs.Read.GPUs[].NVLinkErrors[].Name": "",
	"Processes[].Verbs[]": "",
	"Processes[].NCCL": "",
	"Pods[].Devices[]": "",
	"Tracer.Traced.Registrations[].Device": "",
	"Tracer.Traced.Registrations[].Function": "",
	"Tracer.Traced.Registrations[].Mechanism": "",
	"Tracer.Traced.Totals[].Device": "",
	"Tracer.Traced.Recent[].Device": "",
	"KernelLog.Events[].Kind": "",
	"KernelLog.Events[].PCIAddress": "",
	"KernelLog.Events[].Device": "",
	"KernelLog.Events[].Netdev": "",
}

// shownNowhere are hostile texts that no output has, with the reason.
var shownNowhere = map[string]string{}
