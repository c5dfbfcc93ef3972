package setup

import (
	"testing"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
)

// stackNode returns a host with one device, the kernel's own driver, and an empty modules-load.d.
func stackNode() *snapshot.Node {
	return &snapshot.Node{
		InfiniBand: &snapshot.InfiniBand{Devices: []snapshot.Device{{
			Name: "mlx5_0", FunctionType: snapshot.Physical, Ports: []snapshot.Port{{Number: 1, LinkLayer: "InfiniBand"}},
		}}},
		Modules: &hostdata.Modules{Modules: []hostdata.Module{
			{Name: "mlx5_core", Loaded: true, Flavour: "in-tree"}, {Name: "ib_ipoib", Loaded: true, Flavour: "in-tree"},
		}},
		GDR: &accel.GDR{},
		Setup: &hostdata.Setup{Files: map[string]hostdata.SetupFile{
			"proc/sys/kernel/osrelease": {Text: "6.8.0-49-generic"}, "etc/modules-load.d": {},
		}},
	}
}

func flavour(f string) func(*snapshot.Node) {
	return func(n *snapshot.Node) { n.Modules.Modules[0].Flavour = f }
}

func TestStack(t *testing.T) {
	const (
		dkms     = "var/lib/dkms/mlnx-ofed-kernel"
		dkmsDirs = "24.10.OFED.24.10.1.1.4\nkernel-6.8.0-45-generic-x86_64"
		here     = "lib/modules/6.8.0-49-generic/updates/dkms"
		other    = "lib/modules/6.8.0-45-generic/updates/dkms"
	)
	checkRows(t, "ofed_not_in_use", stackNode, []rowCase{
		{name: "not installed"},
		{name: "no mlx5", node: both(addFiles(dkms, dkmsDirs), func(n *snapshot.Node) { n.Modules.Modules[0].Loaded = false })},
		{name: "modules not read", node: both(addFiles(dkms, dkmsDirs), func(n *snapshot.Node) { n.Modules = nil })},
		{name: "in use", node: both(addFiles(dkms, dkmsDirs, here, "mlx5_core.ko.zst"), flavour("ofed")), want: []string{
			`mlx5_core ok "ofed" want "ofed" by machine; /lib/modules/6.8.0-49-generic has the modules of MLNX_OFED`,
		}},
		{name: "in use, without its packages visible", node: flavour("ofed")},
		{name: "build failed", node: addFiles(dkms, dkmsDirs, other, "mlx5_core.ko"), want: []string{
			`mlx5_core differs/warning/RDMAHostMisconfigured/driver "in-tree" want "ofed" by machine; /var/lib/dkms/mlnx-ofed-kernel/24.10.OFED.24.10.1.1.4 is not built for 6.8.0-49-generic; set: dkms install mlnx-ofed-kernel/24.10.OFED.24.10.1.1.4 -k 6.8.0-49-generic; update-initramfs -u || dracut -f; reboot`,
		}},
		{name: "package for another kernel", node: addFiles("lib/modules/5.14.0-427.el9.x86_64/extra", "mlnx-ofa_kernel"), want: []string{
			`mlx5_core differs/warning/RDMAHostMisconfigured/driver "in-tree" want "ofed" by machine; /lib/modules/5.14.0-427.el9.x86_64 has the modules of MLNX_OFED, /lib/modules/6.8.0-49-generic has not; set: mlnxofedinstall --add-kernel-support; reboot`,
		}},
		{name: "built, and the initramfs has the other one", node: addFiles(here, "mlx5_core.ko.xz\nmlx5_ib.ko.xz"), want: []string{
			`mlx5_core differs/warning/RDMAHostMisconfigured/driver "in-tree" want "ofed" by machine; /lib/modules/6.8.0-49-generic has the modules of MLNX_OFED; set: update-initramfs -u || dracut -f; reboot`,
		}},
		{name: "only its headers", node: addFiles("usr/src/ofa_kernel", "default")},
		{name: "unreadable", node: addFiles(dkms, "!permission"), want: []string{
			`mlx5_core unknown "" want "ofed" by machine; /var/lib/dkms/mlnx-ofed-kernel: permission`,
		}},
		{name: "accepted by the site", node: addFiles(dkms, dkmsDirs), site: "in-tree", want: []string{
			`mlx5_core ok "in-tree" want "in-tree" by site; /var/lib/dkms/mlnx-ofed-kernel/24.10.OFED.24.10.1.1.4 is not built for 6.8.0-49-generic`,
		}},
	})
	checkRows(t, "modules_of_other_kernel", stackNode, []rowCase{
		{name: "none built"},
		{name: "as wanted", node: addFiles(here, "nvidia.ko.zst\nnvidia-fs.ko", other, "nvidia.ko.zst"), want: []string{
			`nvidia ok "6.8.0-49-generic" want "6.8.0-49-generic" by machine`,
			`nvidia_fs ok "6.8.0-49-generic" want "6.8.0-49-generic" by machine`,
		}},
		{name: "by weak-updates", node: addFiles("lib/modules/6.8.0-49-generic/weak-updates", "gdrdrv.ko.xz", "lib/modules/6.8.0-45-generic/extra", "gdrdrv.ko.xz"), want: []string{
			`gdrdrv ok "6.8.0-49-generic" want "6.8.0-49-generic" by machine`,
		}},
		{name: "differs", node: addFiles(here, "nvidia.ko", other, "nvidia.ko\nnvidia-fs.ko"), want: []string{
			`nvidia ok "6.8.0-49-generic" want "6.8.0-49-generic" by machine`,
			`nvidia_fs differs/info "6.8.0-45-generic" want "6.8.0-49-generic" by machine; not in /lib/modules/6.8.0-49-generic, and not loaded; set: dkms autoinstall -k 6.8.0-49-generic`,
		}},
		{name: "loaded from the kernel's package", node: addFiles(other, "nvidia.ko", "sys/module/nvidia/taint", "POE"), want: []string{
			`nvidia ok "6.8.0-49-generic" want "6.8.0-49-generic" by machine`,
		}},
		{name: "the kernel's own is loaded", node: addFiles(other, "bnxt_re.ko", "sys/module/bnxt_re/taint", ""), want: []string{
			`bnxt_re differs/info "6.8.0-45-generic" want "6.8.0-49-generic" by machine; not in /lib/modules/6.8.0-49-generic, and the kernel's own is loaded; set: dkms autoinstall -k 6.8.0-49-generic`,
		}},
		{name: "unreadable", node: addFiles(other, "nvidia.ko", here, "!permission"), want: []string{
			`nvidia unknown "" want "6.8.0-49-generic" by machine; /lib/modules/6.8.0-49-generic/updates/dkms: permission`,
		}},
		{name: "kernel unknown", node: both(addFiles(other, "nvidia.ko"), func(n *snapshot.Node) { delete(n.Setup.Files, "proc/sys/kernel/osrelease") })},
		{name: "accepted by the site", node: addFiles(other, "nvidia.ko"), site: Any},
	})
}
