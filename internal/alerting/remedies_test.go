package alerting_test

import (
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/rules"
)

// remedy is a row of the table in docs/runbooks/RDMAPortDown.md, or of an alert like it: what a host reports of its
// ports, and what the person on call is told to do.
type remedy struct {
	name             string
	series           []*family
	alert            string // "": RDMAPortDown
	diagnose, action string
	cable            bool // is the likely fault
}

// portDown returns the port of a device that was ACTIVE before. phys is its physical state; 0: unknown.
func portDown(device, driver, function, layer, netdev string, state, phys float64, more ...*family) []*family {
	port := []string{"device", device, "port", "1"}
	out := []*family{
		gauge("rdma_device_info", 1, "device", device, "driver", driver, "function_type", function,
			"pci_address", "0000:18:00.0"),
		gauge("rdma_port_info", 1, append(port, "netdev", netdev, "link_layer", layer, "role", "compute")...),
		gauge("rdma_port_state_id", state, port...),
		gauge("rdma_port_was_active", 1, port...),
	}
	if phys > 0 {
		out = append(out, gauge("rdma_port_physical_state_id", phys, port...))
	}
	return append(out, more...)
}

// familyOf returns a metric of the port of d0 and netdev eth0.
func familyOf(name string, value float64, pairs ...string) *family {
	return gauge(name, value, append([]string{"device", "d0", "port", "1", "netdev", "eth0"}, pairs...)...)
}

// Parts that rows share: of diagnose, and the end of each action.
const (
	kernelLog = " ; dmesg -T | grep -iE 'mlx|bnxt|irdma|ionic|efa|link' | tail -20 # as root"
	ethernet  = "rdma link show d0/1 ; ethtool eth0"
	infini    = "rdma link show d0/1 ; cat /sys/class/infiniband/d0/ports/1/phys_state"
	accept    = " If the port is to stay without a link, run rdma_exporter accept d0."
	reseat    = "Check that the switch port is enabled. Reseat the cable at both ends, then swap it, then the " +
		"transceiver, then the switch port." + accept
	manager = "The link is up, so that no cable is at fault. Check the subnet manager (sminfo, its log) and whether " +
		"it manages this port: partition, GUID, policy." + accept
	shared = "Look first for what they share, before you replace parts: the driver and firmware of the host (dmesg), " +
		"power and switches of the rack, the last change. If it is each for itself: "
	instances = "Compare with the other instances of the job. If only this one retransmits, stop and start it, which " +
		"moves it to other hardware; if all do, report the path to the provider."
	startManager = "tart the subnet manager (opensm, UFM, or that of a managed switch), or let its standby take over."
)

var remedies = []remedy{
	{
		name: "RoCE without carrier", series: portDown("d0", "mlx5_core", "physical", "Ethernet", "eth0", 1, 3),
		diagnose: ethernet + kernelLog, action: reseat, cable: true,
	},
	{
		name: "InfiniBand Polling", series: portDown("d0", "mlx5_core", "physical", "InfiniBand", "ib0", 1, 2),
		diagnose: infini + kernelLog, action: reseat, cable: true,
	},
	{
		name:     "INIT while the link recovers",
		series:   portDown("d0", "mlx5_core", "physical", "InfiniBand", "ib0", 2, 6),
		diagnose: infini + kernelLog, action: reseat, cable: true,
	},
	{
		name:     "bond whose members have no link",
		series:   portDown("d0", "mlx5_core", "physical", "Ethernet", "eth0", 1, 3, familyOf("rdma_bond_member_up", 0)),
		diagnose: ethernet + " ; grep . /proc/net/bonding/*" + kernelLog, action: reseat, cable: true,
	},
	{
		name:     "bond whose members have link",
		series:   portDown("d0", "mlx5_core", "physical", "Ethernet", "eth0", 1, 3, familyOf("rdma_bond_member_up", 1)),
		diagnose: ethernet + " ; grep . /proc/net/bonding/*" + kernelLog,
		action: "Members of the bond have link, so that no cable is at fault. Check the bond: its interface set up, " +
			"LACP on the switch, the state of each member (/proc/net/bonding)." + accept,
	},
	{
		name: "InfiniBand Disabled", series: portDown("d0", "mlx5_core", "physical", "InfiniBand", "ib0", 1, 3),
		diagnose: infini + kernelLog,
		action: "The port is disabled, or no cable is connected. Connect the cable, and enable the port at both ends: " +
			"mlxlink -d d0 -a UP here, ibportstate LID PORT enable for the switch port. Then check the firmware " +
			"settings of the adapter." + accept,
	},
	{
		name: "InfiniBand DOWN, LinkUp", series: portDown("d0", "mlx5_core", "physical", "InfiniBand", "ib0", 1, 5),
		diagnose: infini + " ; sminfo -C d0 -P 1" + kernelLog, action: manager,
	},
	{
		name: "ARMED, LinkUp", series: portDown("d0", "mlx5_core", "physical", "InfiniBand", "ib0", 3, 5),
		diagnose: infini + " ; sminfo -C d0 -P 1" + kernelLog, action: manager,
	},
	{
		name: "ARMED, physical state unknown", series: portDown("d0", "mlx5_core", "physical", "InfiniBand", "ib0", 3, 0),
		diagnose: infini + " ; sminfo -C d0 -P 1" + kernelLog, action: manager,
	},
	{
		name: "RoCE DOWN, LinkUp", series: portDown("d0", "vmw_pvrdma", "physical", "Ethernet", "eth0", 1, 5),
		diagnose: ethernet + kernelLog,
		action: "The link is up, so that no cable is at fault. Check the netdev and the messages of the driver " +
			"(ip -s link, dmesg)." + accept,
	},
	{
		name:     "virtual function, InfiniBand, LinkUp",
		series:   portDown("d0", "mlx5_core", "virtual", "InfiniBand", "ib0", 1, 5),
		diagnose: infini + " ; sminfo -C d0 -P 1" + kernelLog,
		action: "The port is that of a virtual function: on the hypervisor check its link state policy and GUIDs " +
			"(ip link show) and the port of its physical function. The link is up: check that the subnet manager " +
			"supports virtual ports (opensm: virt_enabled 2). In a cloud, report the port to the provider." + accept,
	},
	{
		name:     "virtual function, InfiniBand, Polling",
		series:   portDown("d0", "mlx5_core", "virtual", "InfiniBand", "ib0", 1, 2),
		diagnose: infini + kernelLog,
		action: "The port is that of a virtual function: on the hypervisor check its link state policy and GUIDs " +
			"(ip link show) and the port of its physical function. Repair a cable only if that port is down as well. " +
			"In a cloud, report the port to the provider." + accept,
	},
	{
		name:     "virtual function, RoCE",
		series:   portDown("d0", "mlx5_core", "virtual", "Ethernet", "eth0", 1, 3),
		diagnose: ethernet + kernelLog,
		action: "The port is that of a virtual function: on the hypervisor check its link state policy " +
			"(ip link show) and the port of its physical function. Repair a cable only if that port is down as well. " +
			"In a cloud, report the port to the provider." + accept,
	},
	{
		name:     "subfunction",
		series:   portDown("d0", "mlx5_core", "subfunction", "Ethernet", "eth0", 1, 3),
		diagnose: ethernet + kernelLog,
		action: "The port is that of a subfunction: on the host of its physical function check its state " +
			"(devlink port show) and the port of the physical function. Repair a cable only if that port is down as " +
			"well." + accept,
	},
	{
		name: "EFA", series: portDown("d0", "efa", "physical", "Unknown", "", 1, 3),
		diagnose: infini + kernelLog,
		action: "The device has no cable: drain the host, stop and start the instance, which moves it to other " +
			"hardware, and report the device to the provider." + accept,
	},
	{
		name: "software device", series: portDown("d0", "rxe", "software", "Ethernet", "eth0", 1, 3),
		diagnose: ethernet + kernelLog,
		action: "The device is software on top of a netdev: repair the link of that one. A software device that no job " +
			"needs is removed by rdma link delete." + accept,
	},
	{
		name: "Omni-Path", series: portDown("d0", "hfi1", "physical", "InfiniBand", "ib0", 1, 2),
		diagnose: infini + kernelLog,
		action:   reseat, cable: true,
	},
	{
		name: "mlx4", series: portDown("d0", "mlx4_core", "physical", "InfiniBand", "ib0", 1, 2),
		diagnose: infini + " ; grep . /sys/bus/pci/devices/0000:18:00.0/mlx4_port*" + kernelLog,
		action: "Compare the port type first (mlx4_port1, mlx4_port2 of the PCI device: ib, eth or auto): with another " +
			"type than that of the switch no link comes up. If they agree, check the switch port and the cable." + accept,
	},
	{
		name: "transceiver fault",
		series: portDown("d0", "bnxt_en", "physical", "Ethernet", "eth0", 1, 3,
			familyOf("rdma_transceiver_state", 1, "state", "fault")),
		diagnose: ethernet + kernelLog,
		action:   "Reseat the transceiver, which reports a fault, then replace it." + accept,
	},
	{
		name: "cage empty",
		series: portDown("d0", "bnxt_en", "physical", "Ethernet", "eth0", 1, 3,
			familyOf("rdma_transceiver_state", 1, "state", "absent")),
		diagnose: ethernet + kernelLog,
		action:   "Insert a transceiver or cable into the cage." + accept,
	},
	{
		name: "link layer differs from that of the siblings",
		series: portDown("d0", "mlx5_core", "physical", "Ethernet", "eth0", 1, 3,
			gauge("port:rdma_port_link_layer:alike", 1, "device", "d0", "port", "1", "link_layer", "Ethernet"),
			gauge("port:rdma_port_link_layer:odd", 1, "port", "1", "link_layer", "Ethernet")),
		diagnose: ethernet + kernelLog,
		action: "The cable is not at fault: the port has another link layer than its switch. Drain the host and set the " +
			"link type: mlxconfig -d 0000:18:00.0 set LINK_TYPE_P1=1 (InfiniBand); LINK_TYPE_P2 for the second port of a " +
			"card. Then reset the card: mlxfwreset -d 0000:18:00.0 reset, or power the host off and on." + accept,
	},
	{
		name:   "INIT, LinkUp",
		series: portDown("d0", "mlx5_core", "physical", "InfiniBand", "ib0", 2, 5), alert: "RDMANoSubnetManager",
		diagnose: "sminfo -C d0 -P 1 ; ibstat d0 # as root", action: "S" + startManager,
	},
	{
		name: "INIT, LinkUp, LID of a subnet manager",
		series: portDown("d0", "mlx5_core", "physical", "InfiniBand", "ib0", 2, 5,
			gauge("rdma_port_sm_lid", 7, "device", "d0", "port", "1")),
		alert: "RDMANoSubnetManager", diagnose: "sminfo -C d0 -P 1 ; ibstat d0 # as root",
		action: "Check that the subnet manager that has configured the port before (LID 7) runs and sweeps (sminfo, " +
			"its log). If not, s" + startManager,
	},
	{
		name: "INIT, LinkUp beside ACTIVE",
		series: append(portDown("d0", "mlx5_core", "physical", "InfiniBand", "ib0", 2, 5),
			portDown("d1", "mlx5_core", "physical", "InfiniBand", "ib1", 4, 5)...),
		alert: "RDMANoSubnetManager", diagnose: "sminfo -C d0 -P 1 ; ibstat d0 # as root",
		action: "If other ports of the same subnet are ACTIVE, check switch, switch port and partitions of these ports. " +
			"Else s" + startManager,
	},
	{
		name:   "INIT, LinkUp, virtual function",
		series: portDown("d0", "mlx5_core", "virtual", "InfiniBand", "ib0", 2, 5), alert: "RDMANoSubnetManager",
		diagnose: "sminfo -C d0 -P 1 ; ibstat d0 # as root",
		action: "The ports are those of virtual functions: on the hypervisor check their GUIDs and link state policy " +
			"(ip link show), and that the subnet manager runs and supports virtual ports (opensm: virt_enabled 2). In a " +
			"cloud, report the ports to the provider.",
	},
	{
		name: "whole host",
		series: append(portDown("d0", "mlx5_core", "physical", "InfiniBand", "ib0", 1, 2),
			portDown("d1", "mlx5_core", "physical", "InfiniBand", "ib1", 1, 5)...),
		diagnose: infini + kernelLog, action: shared + reseat, cable: true,
	},
	{
		name: "whole host, LinkUp",
		series: append(portDown("d0", "mlx5_core", "physical", "InfiniBand", "ib0", 1, 5),
			portDown("d1", "mlx5_core", "physical", "InfiniBand", "ib1", 3, 5)...),
		diagnose: infini + " ; sminfo -C d0 -P 1" + kernelLog, action: manager,
	},
	{
		name: "whole host, EFA",
		series: append(portDown("d0", "efa", "physical", "Unknown", "", 1, 3),
			portDown("d1", "efa", "physical", "Unknown", "", 1, 3)...),
		diagnose: infini + kernelLog,
		action: "The device has no cable: drain the host, stop and start the instance, which moves it to other " +
			"hardware, and report the device to the provider." + accept,
	},
	{
		name: "EFA retransmits",
		series: portDown("d0", "efa", "physical", "Unknown", "", 4, 5,
			gauge("port:rdma_retransmissions:warning", 0.03, "device", "d0", "port", "1")),
		alert: "RDMARetransmissions", diagnose: "rdma statistic show link d0/1", action: instances,
	},
	{
		name: "whole host, EFA retransmits",
		series: append(portDown("d0", "efa", "physical", "Unknown", "", 4, 5,
			gauge("port:rdma_retransmissions:warning", 0.03, "device", "d0", "port", "1")),
			portDown("d1", "efa", "physical", "Unknown", "", 4, 5,
				gauge("port:rdma_retransmissions:warning", 0.03, "device", "d1", "port", "1"))...),
		alert: "RDMARetransmissions", diagnose: "rdma statistic show link d0/1", action: instances,
	},
}

// TestRemedies: the remedy of a port fits driver, link layer, state and kind of function. Each text is compared as a
// whole; where no cable is at fault, none is to be reseated or swapped.
func TestRemedies(t *testing.T) {
	files, names, err := rules.Node()
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(n string) bool {
		return !slices.Contains([]string{
			"node/link.rules.yml", "node/symptoms.rules.yml", "node/faults.rules.yml", "node/alerts.rules.yml",
		}, n)
	})
	for _, c := range remedies {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e, err := alerting.New(alerting.Options{Dir: t.TempDir(), Instance: instance, Rules: files, Files: names})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			stepTo(t, e, t0(), c.series...) // texts of a pending alert are those of a firing one
			got := e.Alerts()
			if len(got) != 1 || c.alert != "" && got[0].Name != c.alert || c.alert == "" && got[0].Name != "RDMAPortDown" {
				t.Fatalf("%+v", got)
			}
			for name, want := range map[string]string{"diagnose": c.diagnose, "action": c.action} {
				if text := got[0].Annotations[name]; text != want {
					t.Errorf("%s\ngot  %s\nwant %s", name, text, want)
				}
			}
			action := strings.ToLower(got[0].Annotations["action"])
			if !c.cable && (strings.Contains(action, "reseat the cable") || strings.Contains(action, "swap")) {
				t.Errorf("no cable is at fault: %s", action)
			}
		})
	}
}
