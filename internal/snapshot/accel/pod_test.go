package accel

import "testing"

func TestDeviceOfPod(t *testing.T) {
	const gpu, mig = "GPU-8f6e0a1b-2c3d-4e5f-8a9b-0c1d2e3f4a5b", "MIG-1b2c3d4e-5555-4666-8777-888899990000"
	for id, want := range map[string]string{
		gpu:                    gpu,
		gpu + "::3":            gpu, // time slicing, MPS
		"MIG-" + gpu + "/1/0":  gpu, // MIG IDs before R470
		mig:                    mig,
		mig + "::0":            mig,
		"nvidia3":              "nvidia3", // GKE
		"nvidia0/gi2":          "nvidia0",
		"nvidia0/gi2/vgpu1":    "nvidia0",
		"0000:3b:02.1":         "0000:3b:02.1",
		"00000001:3b:1f.7":     "00000001:3b:1f.7",
		"mlx5_core.sf.4":       "mlx5_core.sf.4",
		"0":                    "", // a shared RDMA device
		"hca_shared_devices_a": "",
		"0000:3b:02.8":         "",
		"0000:3b:02.1 ":        "",
		"GPU-8f6e0a1b":         "",
		gpu + "::":             "",
		gpu + "\n":             "",
		"nvidia":               "",
		"":                     "",
	} {
		if got := DeviceOfPod(id); got != want {
			t.Errorf("DeviceOfPod(%q) = %q, want %q", id, got, want)
		}
	}
	for _, c := range []struct{ driver, device, want string }{
		{"gpu.nvidia.com", "gpu-0", "nvidia0"},
		{"gpu.nvidia.com", "gpu-12", "nvidia12"},
		{"gpu.nvidia.com", "gpu-3-mig-9-4-4", "nvidia3"},
		{"gpu.nvidia.com", "compute-domain-daemon-0", ""},
		{"gpu.example.com", "gpu-0", ""},
	} {
		if got := DeviceOfClaim(c.driver, c.device); got != c.want {
			t.Errorf("DeviceOfClaim(%q, %q) = %q, want %q", c.driver, c.device, got, c.want)
		}
	}
}
