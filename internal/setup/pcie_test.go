package setup

import (
	"strings"
	"testing"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
)

// newHost returns a host with two devices of one model at 400 Gb/s and a GPU at the switch of the first, all with the
// recommended settings.
func newHost(change func(n *snapshot.Node)) *snapshot.Node {
	rate, off := 400e9, false
	n := &snapshot.Node{InfiniBand: &snapshot.InfiniBand{}, GDR: &accel.GDR{
		GPUs: []accel.GDRGPU{{Hops: []accel.PCIeHop{{Address: "0000:00:01.0"}, {Address: "0000:02:00.0"}}}},
	}, Setup: &hostdata.Setup{Files: map[string]hostdata.SetupFile{"proc/sys/kernel/numa_balancing": {Text: "0"}}}}
	for i, name := range []string{"mlx5_0", "mlx5_1"} {
		n.InfiniBand.Devices = append(n.InfiniBand.Devices, snapshot.Device{
			Name: name, Driver: "mlx5_core", HCAType: "MT4129", BoardID: "MT_1",
			PCIAddress: []string{"0000:01:00.0", "0000:81:00.0"}[i], FunctionType: snapshot.Physical,
			Ports: []snapshot.Port{{Number: 1, Rate: &rate, Role: "compute"}},
		})
		n.GDR.NICs = append(n.GDR.NICs, accel.GDRNIC{
			Device: name, Path: [][]string{{"0000:00:01.0", "0000:01:00.0"}, {"0000:80:01.0", "0000:81:00.0"}}[i],
			IOMMU: "identity", Settings: &accel.PCIeSettings{MaxPayload: 256, MaxReadRequest: 4096, RelaxedOrdering: true},
		})
		n.Setup.Files["sys/class/infiniband/"+name+"/device/link/l1_aspm"] = hostdata.SetupFile{Text: "0"}
	}
	n.GDR.NICs[0].Redirect = &off
	change(n)
	return n
}

// TestPCIe: each setting as wanted, different, unknown and without meaning for the machine.
func TestPCIe(t *testing.T) {
	on := true
	for name, k := range map[string]struct {
		change func(n *snapshot.Node)
		want   string // what is not ok: setting object state severity found wanted
		lacks  string // setting without any row
	}{
		"by the book":  {change: func(*snapshot.Node) {}},
		"read request": {change: func(n *snapshot.Node) { n.GDR.NICs[0].Settings.MaxReadRequest = 512 }, want: "max_read_request mlx5_0 differs info 512 4096 setpci -s 0000:01:00.0 CAP_EXP+8.w=5000:7000"},
		"read request, slow": {change: func(n *snapshot.Node) {
			n.InfiniBand.Devices[0].Ports[0].Rate, n.InfiniBand.Devices[1].Ports[0].Rate = nil, nil
		}, lacks: "max_read_request"},
		"payload of a sibling":  {change: func(n *snapshot.Node) { n.GDR.NICs[0].Settings.MaxPayload = 512 }, want: "max_payload mlx5_1 differs info 256 512 "},
		"ordering":              {change: func(n *snapshot.Node) { n.GDR.NICs[1].Settings.RelaxedOrdering = false }, want: "relaxed_ordering mlx5_1 differs info off on setpci -s 0000:81:00.0 CAP_EXP+8.w=0010:0010"},
		"ordering without GPUs": {change: func(n *snapshot.Node) { n.GDR.GPUs = nil }, lacks: "relaxed_ordering"},
		"other driver": {change: func(n *snapshot.Node) {
			n.InfiniBand.Devices[0].Driver, n.InfiniBand.Devices[1].Driver = "bnxt_en", "bnxt_en"
		}, lacks: "relaxed_ordering"},
		"no configuration": {
			change: func(n *snapshot.Node) { n.GDR.NICs[1].Settings = nil },
			want:   "max_read_request mlx5_1 unknown info  4096 |max_payload mlx5_1 unknown info  256 |relaxed_ordering mlx5_1 unknown info  on ",
		},
		"acs": {
			change: func(n *snapshot.Node) {
				n.GDR.NICs[0].Redirect, n.GDR.NICs[0].RedirectAt = &on, []string{"0000:00:01.0", "0000:00:02.0"}
			},
			want: "acs mlx5_0 differs warning on off setpci -s 0000:00:01.0 ECAP_ACS+6.w=0000; setpci -s 0000:00:02.0 ECAP_ACS+6.w=0000",
		},
		"acs unknown":     {change: func(n *snapshot.Node) { n.GDR.NICs[0].Redirect, n.GDR.NICs[0].Settings = nil, nil }, want: "max_read_request mlx5_0 unknown info  4096 |max_payload mlx5_0 unknown info  256 |relaxed_ordering mlx5_0 unknown info  on |acs mlx5_0 unknown info  off "},
		"iommu":           {change: func(n *snapshot.Node) { n.GDR.NICs[0].IOMMU = "DMA-FQ" }, want: "iommu_mode mlx5_0 differs warning DMA-FQ identity|none add iommu=pt to the kernel command line, and restart the host"},
		"iommu, far":      {change: func(n *snapshot.Node) { n.GDR.NICs[1].IOMMU = "DMA" }, want: "iommu_mode mlx5_1 differs info DMA identity|none add iommu=pt to the kernel command line, and restart the host"},
		"no iommu":        {change: func(n *snapshot.Node) { n.GDR.NICs[0].IOMMU = "" }},
		"Grace":           {change: func(n *snapshot.Node) { n.GDR.GPUs[0].Coupled, n.GDR.NICs[0].IOMMU = true, "DMA" }, lacks: "iommu_mode"},
		"virtual machine": {change: func(n *snapshot.Node) { n.GDR.Virtual = true }, lacks: "iommu_mode"},
		"ats": {
			change: func(n *snapshot.Node) { n.GDR.NICs[1].IOMMU, n.GDR.NICs[1].Settings.HasATS = "DMA", true },
			want: "iommu_mode mlx5_1 differs info DMA identity|none add iommu=pt to the kernel command line, and restart the host|ats mlx5_1 differs info off on " +
				"mlxconfig -d 0000:81:00.0 set ATS_ENABLED=true # NVIDIA; also ATS in the firmware setup of the host (VT-d, AMD-Vi), and no pci=noats at boot",
		},
		"ats is on": {
			change: func(n *snapshot.Node) {
				n.GDR.NICs[1].IOMMU, n.GDR.NICs[1].Settings.HasATS, n.GDR.NICs[1].Settings.ATS = "DMA", true, true
			},
			want: "iommu_mode mlx5_1 differs info DMA identity|none add iommu=pt to the kernel command line, and restart the host",
		},
		"ats, pass-through": {change: func(n *snapshot.Node) { n.GDR.NICs[1].Settings.HasATS = true }, lacks: "ats"},
		"aspm": {
			change: func(n *snapshot.Node) {
				n.Setup.Files["sys/class/infiniband/mlx5_0/device/link/l1_aspm"] = hostdata.SetupFile{Text: "1"}
			},
			want: "aspm_on_path mlx5_0 differs info l1 off echo 0 > /sys/bus/pci/devices/0000:01:00.0/link/l1_aspm; echo 0 > /sys/bus/pci/devices/0000:01:00.0/link/l0s_aspm",
		},
		"aspm unknown": {change: func(n *snapshot.Node) {
			n.Setup.Files["sys/class/infiniband/mlx5_0/device/link/l1_aspm"] = hostdata.SetupFile{Unread: "io"}
		}, want: "aspm_on_path mlx5_0 unknown info  off "},
		"no aspm": {change: func(n *snapshot.Node) { clear(n.Setup.Files) }, lacks: "aspm_on_path"},
		"balancing": {
			change: func(n *snapshot.Node) {
				n.Setup.Files["proc/sys/kernel/numa_balancing"] = hostdata.SetupFile{Text: "1"}
			},
			want: "numa_balancing host differs info 1 0 sysctl -w kernel.numa_balancing=0",
		},
		"balancing unknown": {change: func(n *snapshot.Node) {
			n.Setup.Files["proc/sys/kernel/numa_balancing"] = hostdata.SetupFile{Unread: "permission"}
		}, want: "numa_balancing host unknown info  0 "},
		"ignored": {change: func(n *snapshot.Node) {
			n.GDR.NICs[0].IOMMU, n.InfiniBand.Ignored = "DMA", []snapshot.PortID{{Device: "mlx5_0"}}
		}},
		"NVLink management": {change: func(n *snapshot.Node) { n.GDR.NICs[0].IOMMU, n.InfiniBand.Devices[0].ManagesNVLink = "DMA", true }},
		"no devices":        {change: func(n *snapshot.Node) { n.InfiniBand.Devices = nil }, lacks: "numa_balancing"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range Evaluate(newHost(k.change), nil) {
				if r.State != hostdata.SetupOK {
					got = append(got,
						strings.Join([]string{r.Setting, r.Object, string(r.State), r.Severity, r.Found, r.Wanted, r.Remedy}, " "))
				}
				if r.Setting == k.lacks {
					t.Errorf("%s: %+v", k.lacks, r)
				}
				if r.State == hostdata.SetupUnknown && r.Evidence == "" {
					t.Errorf("%s is unknown without a reason", r.Setting)
				}
			}
			if have := strings.Join(got, "|"); k.lacks == "" &&
				strings.ReplaceAll(have, " set the maximum payload size in the firmware setup of the host, or boot with pci=pcie_bus_perf", " ") != k.want {
				t.Errorf("%q, want %q", have, k.want)
			}
		})
	}
}
