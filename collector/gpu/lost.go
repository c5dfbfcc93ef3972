package gpu

import (
	"slices"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot/accel"
)

var gpuLost = metric.Of("rdma_gpu_info", metric.Beside("rdma_gpu_info", metric.Host("rdma_gpu_lost_info",
	"GPU that is lost, always 1; absent for others. reason: off_bus (listed by NVML or bound to amdgpu before, missing in the PCI tree), "+
		"hidden (listed by NVML before or by its driver, now not), no_handle (counted by NVML, which cannot open it), no_driver (no driver "+
		"bound, unlike other GPUs). gpu is empty for GPUs of AMD, gpu and UUID where NVML has never listed it.",
	"nvmlDeviceGetCount, nvmlDeviceGetPciInfo, /sys/bus/pci/devices/ADDRESS/driver, /sys/class/kfd/kfd/topology/nodes/N/properties",
	"gpu", "UUID", "pci_bus_id", "reason")))

// lostNVIDIA finds GPUs that NVML has listed before, or that its driver lists, and that it does not list now, GPUs
// that it counts and cannot open, and GPUs of the PCI tree without a driver where others have one. A GPU that is bound
// to another driver, or is not in this container, is none. Nothing is lost after a reading that is not complete.
func lostNVIDIA(
	known []expect.GPURecord, r *shared.GPUReading, functions []accel.GPUFunction,
) (out []accel.LostGPU) {
	if r.NVML.Count == nil && len(r.Errs) > 0 || access.Unanswered(r.Failed()) {
		return nil
	}
	listed, before := map[string]bool{}, map[string]bool{}
	for i := range r.NVML.GPUs {
		listed[r.NVML.GPUs[i].PCIAddress] = true
	}
	onBus := map[string]accel.GPUFunction{}
	for _, f := range functions {
		onBus[f.PCIAddress] = f
	}
	drives := slices.ContainsFunc(functions, func(f accel.GPUFunction) bool { return f.OfDriver })
	for _, g := range known {
		if g.Driver == accel.DriverAMD {
			continue
		}
		f, there := onBus[g.PCIAddress]
		elsewhere := f.Driver == driverNVIDIA && drives && !f.OfDriver // not of this container
		before[g.PCIAddress] = true
		if listed[g.PCIAddress] || slices.Contains(sysfs.PassthroughDrivers, f.Driver) || elsewhere {
			continue
		}
		reason := accel.GPUHidden
		if !there && len(functions) > 0 {
			reason = accel.GPUOffBus
		}
		out = append(out, accel.LostGPU{
			GPUName: nameOf(g), PCIAddress: g.PCIAddress, Reason: reason,
		})
	}
	counted := r.NVML.Count != nil && *r.NVML.Count > uint64(len(r.NVML.GPUs))
	bound := slices.ContainsFunc(functions, func(f accel.GPUFunction) bool { return f.Driver == driverNVIDIA })
	for _, f := range functions {
		l := accel.LostGPU{PCIAddress: f.PCIAddress}
		switch {
		case f.Visible || before[f.PCIAddress]:
			continue
		case f.Driver == "" && bound:
			l.Reason = accel.GPUNoDriver
		case f.Driver == driverNVIDIA && counted:
			l.Reason = accel.GPUNoHandle
		case f.Driver == driverNVIDIA && f.OfDriver && len(listed) > 0:
			l.Reason = accel.GPUHidden
		default:
			continue
		}
		out = append(out, l)
	}
	return out
}

// driverNVIDIA is the driver of GPUs that NVML lists.
const driverNVIDIA = "nvidia"
