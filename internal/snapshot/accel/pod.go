package accel

import (
	"regexp"
	"sync"
)

// Pod is a pod with devices that the kubelet has allocated to it. The kubelet's PodResources API has no UID of the pod.
type Pod struct {
	Namespace string
	Name      string
	Devices   []string // as DeviceOfPod returns them, sorted
}

// Device IDs of device plugins. A suffix ::N is a replica of a GPU shared by time slicing or MPS. An older MIG ID names
// the GPU: MIG-GPU-UUID/INSTANCE/INSTANCE. The plugin of GKE names the device node: nvidia0, nvidia0/gi1 (MIG),
// nvidia0/vgpu1 (shared).
//
// They are compiled when the kubelet is asked first.
var allocated = sync.OnceValue(func() []*regexp.Regexp {
	const uuid = `[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`
	return []*regexp.Regexp{
		regexp.MustCompile(`^(?:MIG-)?(GPU-` + uuid + `)(?:/[0-9]+/[0-9]+)?(?:::[0-9]+)?$`),
		regexp.MustCompile(`^(MIG-` + uuid + `)(?:::[0-9]+)?$`),
		regexp.MustCompile(`^(nvidia[0-9]{1,4})(?:/[a-z]+[0-9]+)*$`),
		regexp.MustCompile(`^([0-9a-f]{4,8}:[0-9a-f]{2}:[0-1][0-9a-f]\.[0-7]|[a-z0-9_]+\.sf\.[0-9]{1,9})$`),
	}
})

// DeviceOfPod returns the device that an allocated ID of a device plugin names: GPU-UUID or MIG-UUID, the node of a GPU
// (nvidia0), the PCI address of a function (0000:3b:02.1, the plugin for SR-IOV) or the auxiliary device of a
// subfunction (mlx5_core.sf.4). Empty: it names no device (shared RDMA devices, CPUs).
func DeviceOfPod(id string) string {
	for _, form := range allocated() {
		if m := form.FindStringSubmatch(id); m != nil {
			return m[1]
		}
	}
	return ""
}

// nvidiaDRA is NVIDIA's driver for dynamic resource allocation. Its names of GPUs contain their minor numbers.
const nvidiaDRA = "gpu.nvidia.com"

var claimedGPU = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^gpu-([0-9]{1,4})(?:-mig-[0-9-]+)?$`)
})

// DeviceOfClaim is DeviceOfPod for a device of a resource claim (dynamic resource allocation). The names of other
// drivers than NVIDIA's are not known to identify a device.
func DeviceOfClaim(driver, device string) string {
	if driver != nvidiaDRA {
		return ""
	}
	if m := claimedGPU().FindStringSubmatch(device); m != nil {
		return "nvidia" + m[1]
	}
	return ""
}
