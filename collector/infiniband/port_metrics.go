package infiniband

import (
	"rdma_exporter/collector/metric"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/snapshot"
)

var (
	portInfo = metric.Asks(source.Identity, metric.Port("rdma_port_info",
		"Port of an RDMA device, always 1; one series for each member of a bond. role: compute, other (storage, management), nvlink_management (no further metrics), unknown. role_source, strongest evidence first: site (configuration), topology_file (of NCCL), gpudirect (nearest NIC of a GPU), pcie_switch (shared with a GPU), siblings (most ports of the same board ACTIVE), vpd (nvlink_management only); empty where the role is unknown. The state of the port itself is no evidence. A compute role is kept in the state directory.",
		"ports/N/link_layer; RDMA netlink PORT_GET ndev_name, device/net/*/dev_port, gid_attrs/ndevs; --config.file; NCCL_TOPO_FILE, virtualTopology.xml; the PCI tree, /proc/1/net/route, PCI vpd",
		"netdev", "link_layer", "role", "role_source"))
	portLogicalState = metric.Asks(source.PortFiles, metric.Port("rdma_port_state_id",
		"Logical state of the port: 1 DOWN, 2 INIT, 3 ARMED, 4 ACTIVE, 5 ACTIVE_DEFER.",
		"RDMA netlink PORT_GET, ports/N/state; enum ib_port_state"))
	portPhysicalState = metric.Asks(source.PortFiles, metric.Port("rdma_port_physical_state_id",
		"Physical state of the port: 1 Sleep, 2 Polling, 3 Disabled (RoCE drivers report it for any port that is down), 4 PortConfigurationTraining, 5 LinkUp, 6 LinkErrorRecovery, 7 PhyTest; Omni-Path: 9 offline, 11 test.",
		"RDMA netlink PORT_GET, ports/N/phys_state; enum ib_port_phys_state"))
	portWasActive = metric.Asks(source.PortFiles, metric.Port("rdma_port_was_active",
		"Whether the port has been ACTIVE at any reading, in this run or in an earlier one recorded in the state directory.",
		"ports/N/state over time; the state directory"))
	portEarlierLayer = metric.Beside("rdma_port_state_id", metric.Port("rdma_port_earlier_link_layer_info",
		"Link layer of the port when it was first ACTIVE, as recorded in the state directory, while it has another one and other ports of its board have kept theirs. Absent for others.",
		"ports/N/link_layer over time; the state directory", "link_layer"))
	portPinnedActive = metric.Beside("rdma_port_state_id", metric.Port("rdma_port_pinned_active",
		"1 for a port pinned ACTIVE in --config.file. Absent for others.", "--config.file, active"))
	portAdminUp = metric.Beside("rdma_port_state_id", metric.Asks(source.Netdev, metric.Port("rdma_port_admin_up",
		"Whether the netdev of the port is administratively up (IFF_UP). For InfiniBand ports see rdma_port_ipoib_state_id.",
		"/sys/class/net/NETDEV/flags", "netdev")))
	portIPoIBState = metric.Of(metric.InfinibandPorts, metric.Beside("rdma_port_state_id", metric.Asks(source.Netdev,
		metric.Port("rdma_port_ipoib_state_id",
			"State of the IPoIB interface of an InfiniBand port: 0 administratively down, 1 up but not operational (broadcast group of its partition not joined), 2 operational. Absent without IPoIB; child interfaces of further P_Keys are not included.",
			"/sys/class/net/NETDEV/flags, operstate", "netdev"))))
	portCarrierChanges = metric.Port("rdma_port_carrier_changes_total",
		"Carrier changes of the port's netdev since it was created, administrative ones included.",
		"/sys/class/net/NETDEV/carrier_up_count, carrier_down_count", "netdev")
	portTransitions = metric.Beside(
		"rdma_port_state_id",
		metric.Asks(source.Netdev, metric.Port(
			"rdma_port_link_transitions_total",
			"Link transitions since the exporter first read the port, however short. Administrative changes are not counted; a carrier loss by reconfiguration in the driver (mlx5: MTU, ring size) is. to: up, down. netdev is empty for InfiniBand ports, counted from readings of the port state.",
			"/sys/class/net/NETDEV/carrier_up_count, carrier_down_count; rtnetlink RTNLGRP_LINK, flags; RDMA netlink PORT_GET, ports/N/state",
			"netdev",
			"to",
		)),
	)
	portDownEvents = metric.Beside(
		"rdma_port_state_id",
		metric.Asks(source.Netdev, metric.Port(
			"rdma_port_link_down_events_total",
			"Link-down events of the physical link counted by the driver. LINKSTATE_GET is read each minute and when the link changes. On InfiniBand ports only from 255 on, where link_downed saturates.",
			"ethtool netlink LINKSTATE_GET, ext_down_cnt (since Linux 6.12); else ethtool -S, link_down_events_phy of mlx5, link_down_events of bnxt_en",
			"netdev",
		)),
	)
	portRate = metric.Of("rdma_port_rate_bytes_per_second", metric.Asks(source.PortFiles,
		metric.Port("rdma_port_rate_bytes_per_second",
			"Data rate of the link. Absent while the link is down, and where the driver reports no valid rate.",
			"ports/N/rate; ethtool netlink LINKMODES speed on Ethernet")))
	portWidth = metric.Of(
		"rdma_port_rate_bytes_per_second",
		metric.Asks(source.PortFiles, metric.Port("rdma_port_width_lanes",
			"Lanes in use by the link. Absent while the link is down, and where the driver does not report lanes.",
			"ports/N/rate; ethtool netlink LINKMODES lanes on Ethernet")),
	)
	portLID = metric.Port("rdma_port_lid",
		"Local identifier (LID) of an InfiniBand port; 0 or 65535 while none is assigned.",
		"RDMA netlink PORT_GET, ports/N/lid")
	portSMLID = metric.Of(metric.InfinibandPorts, metric.Asks(source.PortFiles, metric.Port("rdma_port_sm_lid",
		"LID of the subnet manager that configured an InfiniBand port.", "RDMA netlink PORT_GET, ports/N/sm_lid")))
	portLMC = metric.Port("rdma_port_lid_mask_control",
		"LID mask control (LMC) of an InfiniBand port, 0 to 7: the port has 2^LMC LIDs.",
		"RDMA netlink PORT_GET, ports/N/lid_mask_count")
	portIsSM = metric.Of(
		metric.InfinibandPorts,
		metric.Asks(source.PortFiles, metric.Port("rdma_port_is_subnet_manager",
			"Whether a subnet manager runs on this InfiniBand port.",
			"RDMA netlink PORT_GET, ports/N/cap_mask bit 1 (IsSM), IBA PortInfo CapabilityMask")),
	)
	portPinnedSM = metric.Of(
		metric.InfinibandPorts,
		metric.Beside("rdma_port_is_subnet_manager", metric.Port("rdma_port_pinned_subnet_manager",
			"1 for an InfiniBand port on which --config.file expects a subnet manager. Absent for others.",
			"--config.file, subnet_manager")),
	)
	portGIDs = metric.Port("rdma_port_gid_entries",
		"GID table entries in use, by type: ib, roce_v1, roce_v2.", "ports/N/gid_attrs/types", "type")
	portPKeys = metric.Asks(source.PortTables, metric.Port("rdma_port_pkey_entries",
		"P_Key table entries in use, counted up to the eighth consecutive empty entry.", "ports/N/pkeys"))

	portDescs = []*metric.Desc{
		portInfo, portLogicalState, portPhysicalState, portWasActive, portPeersActive, portPinnedActive, portAdminUp,
		portEarlierLayer, portIPoIBState, portCarrierChanges, portTransitions, portDownEvents, portRate, portWidth,
		portLID, portSMLID, portLMC, portIsSM, portPinnedSM, portGIDs, portPKeys, portDownReason,
		portMTU, portActiveMTU, portRoCEv2GIDs, portRoCEv2GIDIndex, wireInfo, wireDuplicate, portPKeysMissing,
	}
)

func emitPort(s metric.Sink, d *snapshot.Device, p *snapshot.Port, port string) {
	metric.EmitIf(s, len(p.Netdev) == 0, portInfo, d.Name, port, "", p.LinkLayer, p.Role, p.RoleSource)
	for _, nd := range p.Netdev {
		s.Emit(portInfo, 1, d.Name, port, nd.Name, p.LinkLayer, p.Role, p.RoleSource)
		metric.EmitIf(s, nd.DownReason != "", portDownReason, d.Name, port, nd.Name, nd.DownReason, nd.DownDetail)
		if nd.CarrierUps != nil && nd.CarrierDowns != nil {
			s.Emit(portCarrierChanges, float64(*nd.CarrierUps+*nd.CarrierDowns), d.Name, port, nd.Name)
		}
		emitTransitions(s, nd.Transitions, d.Name, port, nd.Name)
		metric.EmitNumber(s, portDownEvents, nd.DownEvents, d.Name, port, nd.Name)
		switch {
		case p.LinkLayer == "InfiniBand":
			emitIPoIB(s, &nd, d.Name, port)
		case nd.Admin != nil:
			s.Emit(portAdminUp, metric.BoolValue(*nd.Admin), d.Name, port, nd.Name)
		}
	}
	emitTransitions(s, p.Transitions, d.Name, port, "")
	metric.EmitNumber(s, portLogicalState, p.State, d.Name, port)
	metric.EmitNumber(s, portPhysicalState, p.PhysicalState, d.Name, port)
	s.Emit(portWasActive, metric.BoolValue(p.WasActive), d.Name, port)
	metric.EmitIf(s, p.EarlierLayer != "", portEarlierLayer, d.Name, port, p.EarlierLayer)
	metric.EmitIf(s, p.PeersActive, portPeersActive, d.Name, port)
	metric.EmitIf(s, p.PinnedActive, portPinnedActive, d.Name, port)
	metric.EmitRate(s, portRate, p.Rate, d.Name, port)
	metric.EmitNumber(s, portWidth, p.Lanes, d.Name, port)
	if p.LinkLayer == "InfiniBand" {
		metric.EmitNumber(s, portLID, p.LID, d.Name, port)
		metric.EmitNumber(s, portSMLID, p.SMLID, d.Name, port)
		metric.EmitNumber(s, portLMC, p.LMC, d.Name, port)
		if p.Capabilities != nil {
			s.Emit(portIsSM, float64(*p.Capabilities>>1&1), d.Name, port)
		}
		metric.EmitIf(s, p.PinnedSM, portPinnedSM, d.Name, port)
	}
	for _, t := range []string{"ib", "roce_v1", "roce_v2"} {
		if n, ok := p.GIDs[t]; ok {
			s.Emit(portGIDs, float64(n), d.Name, port, t)
		}
	}
	metric.EmitNumber(s, portPKeys, p.PKeys, d.Name, port)
	metric.EmitNumber(s, portPKeysMissing, p.PKeysMissing, d.Name, port)
	emitMTU(s, d, p, port)
	emitRoCEv2GIDs(s, d, p, port)
}

// emitIPoIB emits the state of an IPoIB interface, unless it is down and it is unknown whether administratively.
func emitIPoIB(s metric.Sink, nd *snapshot.Netdev, device, port string) {
	switch {
	case nd.Joined == nil:
	case *nd.Joined:
		s.Emit(portIPoIBState, 2, device, port, nd.Name)
	case nd.Admin != nil:
		s.Emit(portIPoIBState, metric.BoolValue(*nd.Admin), device, port, nd.Name)
	}
}

func emitTransitions(s metric.Sink, t *snapshot.Transitions, labels ...string) {
	if t != nil {
		s.Emit(portTransitions, float64(t.Ups), append(labels, "up")...)
		s.Emit(portTransitions, float64(t.Downs), append(labels, "down")...)
	}
}
