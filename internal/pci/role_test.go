package pci

import (
	"slices"
	"testing"
)

// Paths of an HGX board: a root port, a switch with its upstream and downstream ports, the function.
const (
	gpuBehindSwitch   = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0"
	nicBehindSwitch   = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0"
	nicOnOtherPort    = "sys/devices/pci0000:15/0000:15:02.0/0000:1a:00.0"
	nicOnOtherBridge  = "sys/devices/pci0000:70/0000:70:01.0/0000:71:00.0"
	nicInVMDDomain    = "sys/devices/pci0000:20/0000:20:05.5/pci10000:00/10000:00:02.0/10000:01:00.0"
	nicOfFlatVM       = "sys/devices/pci0000:00/0000:00:06.0"
	gpuOfFlatVM       = "sys/devices/pci0000:00/0000:00:07.0"
	subFunction       = nicBehindSwitch + "/mlx5_core.sf.4"
	virtualFunction   = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.2"
	platformDeviceNIC = "sys/devices/platform/HNS:00"
)

func TestFunctions(t *testing.T) {
	for path, want := range map[string][]string{
		gpuBehindSwitch:   {"0000:15:01.0", "0000:16:00.0", "0000:17:00.0", "0000:18:00.0"},
		subFunction:       {"0000:15:01.0", "0000:16:00.0", "0000:17:01.0", "0000:19:00.0"},
		nicInVMDDomain:    {"0000:20:05.5", "10000:00:02.0", "10000:01:00.0"},
		nicOfFlatVM:       {"0000:00:06.0"},
		platformDeviceNIC: nil,
		"":                nil,
	} {
		if got := Functions(path); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestRoleOf(t *testing.T) {
	for _, c := range []struct {
		name string
		nic  string
		gpus []string
		want Role
	}{
		{"a GPU on the same switch", nicBehindSwitch, []string{gpuBehindSwitch}, Compute},
		{"its virtual function", virtualFunction, []string{gpuBehindSwitch}, Compute},
		{"its sub-function", subFunction, []string{gpuBehindSwitch}, Compute},
		{"the second GPU is near", nicBehindSwitch, []string{"sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0", gpuBehindSwitch}, Compute},
		{"the same host bridge, another root port", nicOnOtherPort, []string{gpuBehindSwitch}, Other},
		{"another host bridge", nicOnOtherBridge, []string{gpuBehindSwitch}, Other},
		{"a GPU without a bridge is near none", nicOnOtherBridge, []string{gpuOfFlatVM}, Other},
		{"no GPU", nicBehindSwitch, nil, Unknown},
		{"a flat virtual machine", nicOfFlatVM, []string{gpuOfFlatVM}, Unknown},
		{"no PCI function", platformDeviceNIC, []string{gpuBehindSwitch}, Unknown},
		{"a software device", "", []string{gpuBehindSwitch}, Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := RoleOf(c.nic, c.gpus); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestIsAddress(t *testing.T) {
	for s, want := range map[string]bool{
		"0000:15:01.0": true, "10000:e1:00.7": true, "ffff:ff:1f.7": true,
		"0000:15:01.8": false, "15:01.0": false, "0000:15:01": false, "0000:15:01.0/x": false, "pci0000:15": false,
		"0000:1G:01.0": false, "0000:1A:01.0": false, "mlx5_core.sf.4": false, "": false,
	} {
		if got := IsAddress(s); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}

func TestIsGPU(t *testing.T) {
	for _, c := range []struct {
		vendor, class string
		want          bool
		what          string
	}{
		{"0x10de\n", "0x030200\n", true, "NVIDIA 3D controller"},
		{"0x10de", "0x030000", true, "NVIDIA VGA"},
		{"0x1002", "0x120000", true, "AMD Instinct: processing accelerator"},
		{"0x1da3", "0x120000", true, "Habana Gaudi"},
		{"0x10de", "0x068000", false, "NVSwitch: bridge"},
		{"0x10de", "0x040300", false, "audio of an NVIDIA card"},
		{"0x1002", "0x060400", false, "AMD bridge"},
		{"0x1a03", "0x030000", false, "ASPEED management controller"},
		{"0x102b", "0x030000", false, "Matrox"},
		{"0x8086", "0x030000", false, "Intel display"},
		{"0x15b3", "0x020700", false, "ConnectX"},
		{"", "", false, "nothing read"},
		{"0x10de", "", false, "class not read"},
	} {
		t.Run(c.what, func(t *testing.T) {
			if got := IsGPU(c.vendor, c.class); got != c.want {
				t.Error(got)
			}
		})
	}
}
