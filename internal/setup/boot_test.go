package setup

import (
	"testing"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

func TestStackAtBoot(t *testing.T) {
	peermem := func(n *snapshot.Node) { n.GDR.Peermem = "nvidia_peermem" }
	entry := func(pairs ...string) func(*snapshot.Node) { return both(peermem, addFiles(pairs...)) }
	checkRows(t, "peermem_persistent", stackNode, []rowCase{
		{name: "not loaded"},
		{name: "differs", node: entry("etc/modules-load.d/a.conf", "# nvidia_peermem\nmsr\n"), want: []string{
			`nvidia_peermem differs/info "no" want "yes" by machine; the module is loaded; set: echo nvidia_peermem > /etc/modules-load.d/nvidia-peermem.conf`,
		}},
		{name: "by modules-load.d", node: entry("etc/modules-load.d/a.conf", "msr\nnvidia-peermem\n"), want: []string{
			`nvidia_peermem ok "yes" want "yes" by machine; /etc/modules-load.d/a.conf`,
		}},
		{name: "by softdep", node: entry("etc/modprobe.d/nvidia.conf", "options nvidia nvidia-peermem\nsoftdep nvidia post: nvidia-uvm nvidia-peermem\n"), want: []string{
			`nvidia_peermem ok "yes" want "yes" by machine; /etc/modprobe.d/nvidia.conf`,
		}},
		{name: "only options", node: entry("etc/modprobe.d/nvidia.conf", "options nvidia nvidia-peermem\nblacklist nvidia-peermem\n"), want: []string{
			`nvidia_peermem differs/info "no" want "yes" by machine; the module is loaded; set: echo nvidia_peermem > /etc/modules-load.d/nvidia-peermem.conf`,
		}},
		{name: "by a service", node: entry("etc/systemd/system/multi-user.target.wants", "cron.service\nnvidia-peermem.service"), want: []string{
			`nvidia_peermem ok "yes" want "yes" by machine; service nvidia-peermem.service`,
		}},
		{name: "by the operator", node: entry("run/nvidia/driver", "bin\netc"), want: []string{
			`nvidia_peermem ok "yes" want "yes" by machine; /run/nvidia/driver: driver container of the GPU operator`,
		}},
		{name: "unreadable", node: entry("etc/modules-load.d/a.conf", "!permission"), want: []string{
			`nvidia_peermem unknown "" want "yes" by machine; /etc/modules-load.d/a.conf: permission`,
		}},
		{name: "not visible", node: both(peermem, func(n *snapshot.Node) { delete(n.Setup.Files, "etc/modules-load.d") }), want: []string{
			`nvidia_peermem unknown "" want "yes" by machine; no directory modules-load.d: /etc and /usr/lib of the host are not visible, or modules are loaded in another way`,
		}},
		{name: "accepted by the site", node: peermem, site: "no", want: []string{`nvidia_peermem ok "no" want "no" by site; the module is loaded`}},
	})
	m0 := func(n *snapshot.Node) { n.InfiniBand.Devices[0].Ports[0].Netdev = []snapshot.Netdev{{Name: "ib0"}} }
	checkRows(t, "modules_persistent", stackNode, []rowCase{
		{name: "no interface"},
		{name: "built in", node: both(m0, func(n *snapshot.Node) { n.Modules.Modules[1].BuiltIn = true })},
		{name: "differs", node: m0, want: []string{
			`ib_ipoib differs/info "no" want "yes" by machine; the module is loaded; set: echo ib_ipoib > /etc/modules-load.d/ib_ipoib.conf`,
		}},
		{name: "by rdma-core", node: both(m0, addFiles("etc/rdma/modules/infiniband.conf", "# comment\nib_ipoib\nib_umad\n")), want: []string{
			`ib_ipoib ok "yes" want "yes" by machine; /etc/rdma/modules/infiniband.conf`,
		}},
		{name: "by openibd", node: both(m0, addFiles("etc/infiniband/openib.conf", "ONBOOT=yes\nIPOIB_LOAD=yes\n")), want: []string{
			`ib_ipoib ok "yes" want "yes" by machine; /etc/infiniband/openib.conf`,
		}},
		{name: "not by openibd", node: both(m0, addFiles("etc/infiniband/openib.conf", "IPOIB_LOAD=no\n")), want: []string{
			`ib_ipoib differs/info "no" want "yes" by machine; the module is loaded; set: echo ib_ipoib > /etc/modules-load.d/ib_ipoib.conf`,
		}},
		{name: "unreadable", node: both(m0, addFiles("etc/rdma/modules", "!permission")), want: []string{
			`ib_ipoib unknown "" want "yes" by machine; /etc/rdma/modules: permission`,
		}},
	})
}

// TestServicesAtBoot: a service that runs is enabled; where that is not visible it is unknown.
func TestServicesAtBoot(t *testing.T) {
	const wants, unit = "etc/systemd/system/network.target.wants", "usr/lib/systemd/system/opensm.service"
	opensm := func(n *snapshot.Node) { n.Setup.Launchers = []hostdata.Launcher{{Name: "opensm"}} }
	checkRows(t, "services_at_boot", stackNode, []rowCase{
		{name: "none runs", node: addFiles(unit, "", wants, "")},
		{name: "enabled", node: both(opensm, addFiles(wants, "opensm.service")), want: []string{
			`opensm ok "enabled" want "enabled" by machine; /` + wants + `/opensm.service`,
		}},
		{name: "init script", node: both(opensm, addFiles("etc/rc3.d", "S13opensmd")), want: []string{
			`opensm ok "enabled" want "enabled" by machine; /etc/rc3.d/S13opensmd`,
		}},
		{name: "not enabled", node: both(opensm, addFiles(wants, "", unit, "")), want: []string{
			`opensm differs/info "not enabled" want "enabled" by machine; opensm runs; set: systemctl enable opensm`,
		}},
		{name: "no unit", node: both(opensm, addFiles(wants, "")), want: []string{
			`opensm unknown "" want "enabled" by machine; no unit of opensm is visible: another unit or a script starts it`,
		}},
		{name: "unreadable", node: both(opensm, addFiles(wants, "!permission", unit, "")), want: []string{
			`opensm unknown "" want "enabled" by machine; /` + wants + `: permission`,
		}},
		{name: "openibd", node: both(flavour("ofed"), addFiles(wants, "", "etc/init.d/openibd", "")), want: []string{
			`openibd differs/info "not enabled" want "enabled" by machine; the driver of MLNX_OFED is loaded; set: systemctl enable openibd`,
		}},
		{name: "openibd, with the kernel's driver", node: addFiles(wants, "", "etc/init.d/openibd", "")},
	})

	umad := func(loaded, known bool) func(*snapshot.Node) {
		return func(n *snapshot.Node) {
			n.Modules.Modules = append(n.Modules.Modules, hostdata.Module{Name: "ib_umad", Loaded: loaded, Known: known})
		}
	}
	madFlags := func(n *snapshot.Node) { n.Setup.MADFlags = []string{"--collector.neighbour.subnet"} }
	diags := addFiles("etc/infiniband-diags", "ibdiag.conf")
	checkRows(t, "umad_loaded", stackNode, []rowCase{
		{name: "nothing needs it", node: umad(false, true)},
		{name: "loaded", node: both(umad(true, true), diags), want: []string{
			`ib_umad ok "loaded" want "loaded" by machine; /etc/infiniband-diags exists`,
		}},
		{name: "not loaded", node: both(umad(false, true), opensm), want: []string{
			`ib_umad differs/info "not loaded" want "loaded" by machine; opensm runs; set: ` + loadUMAD,
		}},
		{name: "a flag of the exporter", node: both(umad(false, true), madFlags), want: []string{
			`ib_umad differs/info "not loaded" want "loaded" by machine; --collector.neighbour.subnet of this exporter; set: ` + loadUMAD,
		}},
		{name: "fabric mode", node: both(umad(false, true), addFiles("etc/systemd/system/multi-user.target.wants", fabricUnit)), want: []string{
			`ib_umad differs/info "not loaded" want "loaded" by machine; rdma_exporter-fabric.service is enabled; set: ` + loadUMAD,
		}},
		{name: "unknown", node: both(umad(false, false), diags), want: []string{
			`ib_umad unknown "" want "loaded" by machine; it is not known whether the module is loaded`,
		}},
		{name: "no InfiniBand port", node: both(umad(false, true), diags, func(n *snapshot.Node) {
			n.InfiniBand.Devices[0].Ports[0].LinkLayer = "Ethernet"
		})},
	})
	byHand := func(changes ...func(*snapshot.Node)) func(*snapshot.Node) {
		return both(append(changes, umad(true, true), diags)...)
	}
	const wantsOpenibd, conf = "etc/systemd/system/sysinit.target.wants", "etc/infiniband/openib.conf"
	byOpenibd := []string{`ib_umad ok "yes" want "yes" by machine; /` + wantsOpenibd + `/openibd.service`}
	lost := []string{
		`ib_umad differs/info "no" want "yes" by machine; the module is loaded, and /etc/infiniband-diags exists; set: ` + bootUMAD,
	}
	checkRows(t, "modules_persistent", stackNode, []rowCase{
		{name: "ib_umad, nothing needs it", node: umad(true, true)},
		{name: "ib_umad, not loaded", node: both(umad(false, true), diags)},
		{name: "ib_umad, built in", node: byHand(umad(true, true), func(n *snapshot.Node) {
			n.Modules.Modules[len(n.Modules.Modules)-1].BuiltIn = true
		})},
		{name: "ib_umad, by hand", node: byHand(), want: lost},
		{name: "ib_umad, by rdma-core", node: byHand(addFiles("etc/rdma/modules/infiniband.conf", "ib_umad")), want: []string{
			`ib_umad ok "yes" want "yes" by machine; /etc/rdma/modules/infiniband.conf`,
		}},
		{name: "ib_umad, by openibd", node: byHand(addFiles(wantsOpenibd, "openibd.service")), want: byOpenibd},
		{name: "ib_umad, openibd is not enabled", node: byHand(addFiles("etc/init.d/openibd", "modprobe ib_umad", wantsOpenibd, "")), want: lost},
		{name: "ib_umad, not by openibd", node: byHand(addFiles(wantsOpenibd, "openibd.service", conf, "UMAD_LOAD=no")), want: lost},
		{name: "ib_umad, by the unit of opensm", node: byHand(addFiles(wants, "opensm.service", unit, "ExecStartPre=modprobe ib_umad")), want: []string{
			`ib_umad ok "yes" want "yes" by machine; /` + wants + `/opensm.service`,
		}},
		{name: "ib_umad, not by the unit of opensm", node: byHand(addFiles(wants, "opensm.service", unit, "ExecStart=opensm")), want: []string{
			`ib_umad differs/info "no" want "yes" by machine; the module is loaded, and opensm is installed; set: ` + bootUMAD,
		}},
		{name: "ib_umad, enabled units not visible", node: byHand(addFiles("etc/init.d/openibd", "")), want: []string{
			`ib_umad unknown "" want "yes" by machine; no directory of enabled units: /etc of the host is not visible, or it has no systemd`,
		}},
		{name: "ib_umad, configuration of openibd unreadable", node: byHand(addFiles(wantsOpenibd, "openibd.service", conf, "!permission")), want: []string{
			`ib_umad unknown "" want "yes" by machine; /etc/infiniband/openib.conf: permission`,
		}},
		{name: "ib_umad, unreadable", node: byHand(addFiles("etc/rdma/modules", "!permission")), want: []string{
			`ib_umad unknown "" want "yes" by machine; /etc/rdma/modules: permission`,
		}},
	})
}
