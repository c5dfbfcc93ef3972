package main

import (
	"regexp"
	"slices"
)

// never matches no message: an entry without a text goes by the function alone.
var never = regexp.MustCompile(`[^\x00-\x{10FFFF}]`)

// vendorIn is an entry for what a driver prints in functions: an expression of "FILE FUNCTION".
func vendorIn(driver, printers, reason string) quiet {
	return quiet{driver: driver, form: never, function: regexp.MustCompile(printers), reason: reason}
}

// vendorSays is an entry for what a driver says.
func vendorSays(driver, form, reason string) quiet {
	return quiet{driver: driver, form: regexp.MustCompile(form), reason: reason}
}

// Reasons of several drivers.
const (
	asked     = "a request of an administrator or a tool that the driver refuses"
	optional  = "flow rules, offloads, filters and queue settings: the interface works without"
	functions = "virtual functions and their requests"
	timing    = "hardware clock and time stamps"
	confusion = "an inconsistency of the software, none of the device"
	detail    = "detail of a failure that another line reports"
	noSupport = "a feature that the device or its firmware lacks"
	verbs     = "a verb that was refused: a timeout of its command has its own line"
	teardown  = "part of a shutdown or of a reset, whose failure another line reports"
	memory    = "the kernel had no memory or no mapping: it says so itself"
	linkState = "settings and state of the link, which metrics report"
	module    = "a registration that fails with the load of the module, which has its own line"
	debug     = "debug facilities and statistics"
	sizes     = "fewer queues, rings or interrupts than wished: the interface works with fewer"
)

// quietOfVendors are those of drivers other than mlx4 and mlx5.
var quietOfVendors = slices.Concat(quietOfAnyVendor, quietOfBroadcom, quietOfIntel, quietOfPensando, quietOfClouds,
	quietOfHisilicon)

var vendors = `^drivers/(?:net/ethernet/(?:broadcom|intel|pensando|amazon|microsoft|hisilicon|chelsio|qlogic)|infiniband/hw/(?:bnxt_re|irdma|ionic|efa|erdma|hns|mana|cxgb4|qedr))/`

var quietOfAnyVendor = []quiet{
	vendorIn("", vendors+`.*_(?:ethtool|ethtool_fdir)\.c `, asked),
	vendorIn("", vendors+`.*(?:[_/]devlink(?:_port)?|/devlink/port)\.c `, "devlink: ports, parameters and reporters, and what a user asks of them"),
	vendorIn("", vendors+`.*(?:_ptp|_ptp_hw|_dpll|_gnss|_txclk|_tspll|_phc)\.c `, timing),
	vendorIn("", vendors+`.*(?:_debugfs|_dfx|_coredump|_hwmon|_fwlog|/counters|_restrack)\.c `, debug),
	vendorIn("", vendors+`.*(?:_sriov|_virtchnl_pf|_virtchnl_fdir|/ice_virtchnl|/virtchnl|/fdir|_vf_lib|/rss|/queues|_vfr|_vf_mbx|_sf_eth)\.c `, functions),
	vendorIn("", vendors+`.*(?:_tc|_tc_lib|_eswitch|_eswitch_br|_arfs|_fltr|_flex_pipe|_vsi_vlan_lib|_ddp|_xdp|_xsk|/xsk|_bpf|_rx_filter|_dcb|_dcb_lib|_dcb_nl|_comm_rss)\.c `, optional),
	vendorIn("", vendors+`.*_lag\.c `, "bonding of interfaces, whose state metrics report"),
	vendorIn("", vendors+`.*_(?:fw|fw_update)\.c `, "an update of the firmware that an administrator runs"),
}

var quietOfBroadcom = []quiet{
	vendorSays("bnxt_en", `firmware reset event, data1|^Firmware %s reset event`, "recognised with Fatal and Non-fatal; Solicited is asked for by an administrator"),
	vendorSays("bnxt_en", `^Chip temperature has gone|^Temperature \(In Celsius\)|Thermal threshold type`, "recognised as high temperature with above; below is its end, the rest its detail"),
	vendorSays("bnxt_en", `^hwrm req_type 0x%x seq id|^cmdq\[%#x\]=%#x status|^FW returned busy`, "a command that the firmware refuses, also on healthy hosts"),
	vendorSays("ionic", `^Failed to start queues: `, "an administrator changes the queues: the link stays down until they fit"),
	vendorSays("bnxt_en", `^Discarding out of seq response|cookie sent=|^CMD bit %d was not requested|^Invalid hwrm seq id`, "the late answer of a command, whose timeout has its own line"),
	vendorSays("bnxt_en", `^Device requests max timeout of`, "a property of the firmware that each load prints"),
	vendorSays("bnxt_en", `^Unqualified SFP\+ module detected|^Module part number`, "a module of another vendor works; the line on its transmitter is recognised"),
	vendorSays("bnxt_en", `^NIC Link is Down|^Ethernet link disabled|phy settings?\b|can't update link|^Link speed %d no longer|failed to update link|^Cannot obtain link state|^Speed change not supported`, linkState),
	vendorSays("bnxt_en", `^fw_health_status|^Firmware reset already in progress|^Please update firmware|^bnxt_fw_reset_task\(\) called|^OP-TEE not supported|^PCI restore|^Failed to save PCI state|^pcie_flr\(\) failed`, detail),
	vendorIn("bnxt_en", `bnxt\.c (?:__bnxt_reserve_rings|bnxt_check_rings|bnxt_reserve_rings|bnxt_set_dflt_rings|bnxt_set_ring_params|bnxt_alloc_one_rx_ring\w*|bnxt_cancel_reservations|bnxt_irq_affinity\w+|bnxt_set_xps_mapping|bnxt_request_irq)$`, sizes),
	vendorIn("bnxt_en", `bnxt\.c (?:__bnxt_open_nic|__bnxt_setup_vnic\w*|bnxt_init_chip|bnxt_setup_nitroa0_vnic|bnxt_set_tpa|hwrm_ring_\w+|bnxt_hwrm_ring_alloc|bnxt_hwrm_vnic_alloc|bnxt_init_int_mode|bnxt_init_msix|`+
		`bnxt_half_open_nic|bnxt_hwrm_if_change|bnxt_alloc_ctx_mem|bnxt_set_vnic_mru_p5|bnxt_hwrm_vnic_rss_cfg_p5|bnxt_backing_store_cfg_v2|bnxt_fw_init_one_p2|bnxt_hwrm_func_qcaps|bnxt_get_registered_vfs|bnxt_queue_start|bnxt_tph_update|bnxt_hwrm_realloc_rss_ctx_vnic)$`, detail),
	vendorIn("bnxt_en", `bnxt\.c (?:bnxt_alloc_rfs_vnics|bnxt_cfg_one_usr_fltr|bnxt_cfg_rx_mode|bnxt_rfs_capable|bnxt_setup_mq_tc|bnxt_hwrm_tunnel\w+|bnxt_start_xmit|bnxt_tpa_\w+|bnxt_init_one)$`, optional),
	vendorSays("bnxt_en", `SRIOV|\bVF\b|PF is unavailable`, functions),
	vendorSays("bnxt_en", `^1PPS|PTP`, timing),
	vendorSays("bnxt_en", `VPD|hwmon`, debug),
	vendorSays("bnxt_en", `Failed to register auxiliary driver|Cannot register to netdevice_notifier`, module),
	vendorSays("bnxt_en", `(?i)alloc|^init'ed rx ring`, memory),
	vendorIn("bnxt_en", `bnxt/bnxt_hwrm\.c |bnxt_ulp\.c |bnxt\.c bnxt_async_event_process$`, confusion),
	vendorIn("bnxt_en", `bnxt_re/ib_verbs\.c |bnxt_re/qplib_sp\.c `, verbs),
	vendorIn("bnxt_en", `bnxt_re/qplib_(?:fp|rcfw|res)\.c `, confusion),
	vendorIn("bnxt_en", `bnxt_re/main\.c bnxt_re_(?:dev_uninit|net_\w+_free)$`, teardown),
	vendorSays("bnxt_en", `^DBR pacing disabled|^Failed to (?:query CC defaults|setup CC|query hwrm qcaps)|cos queue|QoS may not|^no (?:cos|tc) for`, noSupport),
	vendorIn("bnxt_en", `bnxt_re/main\.c `, confusion),
}

var quietOfIntel = []quiet{
	vendorSays("ice", `auxiliary_driver_register|register (?:PCI|SF) driver|[Ff]ailed to (?:register netdev notifier|create (?:LAG )?workqueue)`, module),
	vendorSays("ice", `^cqp opcode = |^bad init_state|CEQE|Unexpected CQ type|^expected irq`, "completions that are late or unknown, and commands that the device refuses"),
	vendorIn("ice", `irdma/(?:cm|verbs|utils)\.c |irdma/main\.c irdma_log_invalid_mtu$`, verbs),
	vendorSays("ice", `^ICE OICR event notification|^Q1 Resource Check`, "detail of the line after it; a check of resources ends with no reset"),
	vendorIn("ice", `/ice_(?:lib|base|irq|txrx)\.c `, "a part of a start or rebuild, whose failure another line reports, or a setting of queues"),
	vendorIn("ice", `devlink/health\.c |ice_debugfs\.c |ice_nvm\.c `, debug),
	vendorSays("ice", `(?i)RDMA (?:is not supported|QSet|filtering|Invalid VSI|Qset)|^incorrect reset request`, noSupport),
	vendorSays("ice", `(?i)\bMTU\b|qdisc|MQPRIO|channel|\bTC\b|TC%d|qcount|num_queues|rate\b|Tx ?Time|loopback|LLDP|bridge|switch rule|flow director|tc-flower|flower|VLAN|FDB|promisc|MAC filter|\bMAC\b|Rx rule|checksum|\bTSO\b|RSS|XDP|CPU RMAP|ADQ|802\.1ad|VSI failed, ch|VSI failure|parent VSI|Invalid VSI|Tunnel|netdev features`, optional),
	vendorSays("ice", `(?i)PHY|physical link down|Could not handle link event|^Get link status error`, linkState),
	vendorSays("ice", `(?i)^can't (?:open|stop|suspend|probe)|not ready|while reset is in progress|^Failed stop|^Failed to close VSI`, teardown),
	vendorSays("ice", `(?i)Queue event error|control queue type|failed to rebuild|VSI \(type|enable VSI failed|has 0 [RT]x queues|requesting FW|Tx topology|register (?:netdev|PCI|SF)|link aggregation|workqueue|magic|cache line|device MSI-X vectors\. wanted`, detail),
	vendorSays("i40e", `(?i)\bVFs?\b|VF%|iwarp`, functions),
	vendorIn("i40e", `i40e_client\.c |i40e_virtchnl_pf\.c `, functions),
	vendorIn("i40e", `i40e_txrx\.c `, optional),
	vendorSays("i40e", `(?i)\bMTU\b|filter|\bTC\b|TC%d|rate\b|channel|switch mode|switch config|UDP port|mask|unsupported key|loopback|\bRSS\b|FDIR|\bFD\b|traffic class|promiscuous|L2fwd|tunnel|hw_tc_offload|IPv6|Tenant|transport are|num_queues|hw_channel|parent vsi`, optional),
	vendorSays("i40e", `(?i)phy |set phy|link speed|total-port-shutdown|mac config|DCB|MFS for port|^Refer to`, linkState),
	vendorSays("i40e", `(?i)PCI-Express bandwidth|different PCI-e link|pre-production|partition bw`, "a property of the host that each load prints; the width of the link is a metric"),
	vendorSays("i40e", `(?i)^Failed to (?:delete client|destroy the HMC)|vsi|VEB|queue|magic|MAC address|workqueue`, detail),
	vendorSays("idpf", `(?i)vectors?\b|queues? are|workqueue|unique device ID|allocat|Vector distribution`, sizes),
	vendorSays("idpf", `(?i)VFs|SR-IOV`, functions),
	vendorSays("idpf", `(?i)promiscuous|netdev features|MAC (?:filter|address)|could not \w+ queues in pair|link event|soft reset cause|hard reset cause|TxQ not found|completion type|RX ptypes|singleq|XSk`, optional),
	vendorSays("idpf", `(?i)^PTP`, timing),
	vendorSays("idpf", `(?i)transaction|cookie|VC reply|Async message|event msg|Unknown event|marker packets|Virtchnl (?:major|minor)|Failed to enable vport`, "an answer of the control plane that came late or is unknown: its request times out with its own line"),
}

var quietOfPensando = []quiet{
	vendorSays("ionic", `^%s \(%d\) failed: %s|^Posting of|^DEV_CMD %s \(%d\) error|^opcode %u error|^admin pos|^wait status`, "recognised where the firmware does not answer or is halted; else it refuses a command"),
	vendorSays("ionic", `^%s request_reset: error`, "recognised with the name of the device before it"),
	vendorIn("ionic", `ionic_datapath\.c `, confusion),
	vendorIn("ionic", `ionic_lif\.c (?:ionic_(?:alloc_qcq_interrupt|intr_alloc|qcq_alloc|lif_alloc|lif_queue_identify)|ionic_register_rxq_info)$|ionic_port_init$`, detail),
	vendorSays("ionic", `CMB|cmb`, "memory of the controller for queues: the host's is used instead"),
	vendorSays("ionic", `SRIOV|\bVFs?\b`, functions),
	vendorIn("ionic", `ionic_txrx\.c `, memory),
	vendorSays("ionic", `OOM|workqueue`, memory),
	vendorSays("ionic", `rx_?mode|bad qcq|TX queue partner|ionic stop is not posted|Notifyq|Reset event dropped|link state|bad MAC addr`, confusion),
}

var quietOfClouds = []quiet{
	vendorSays("efa", `^Failed to process command|(?i)^Failed to (?:create|destroy|modify|query|register|de-?register|alloc|dealloc|get|set|submit [gs]et_feature)|isn't supported|unsupported aenq`, verbs),
	vendorSays("efa", `(?i)handlers pointer|Completion context|Invalid timeout|wrong offset|Unknown event|MSI-X \(out of|unimplemented`, confusion),
	vendorSays("efa", `(?i)map|dma`, memory),
	vendorSays("ena", `^Reading reg failed|^Reg read`, "5.10 prints it without the device: the lines of ena_netdev.c that follow have it"),
	vendorIn("ena", `ena_eth_com\.[ch] `, confusion),
	vendorSays("ena", `LLQ|llq|descs?_|entry[ _]size|header location|placement policy|host mode policy`, "queues in host memory instead of the device's, also on healthy hosts"),
	vendorSays("ena", `(?i)hash|RSS|indirect|key len|proto|\bMTU\b|xdp|moderation|interrupt delay|intr_delay|host attributes|offload|queue size|link state|num [rt]x queues|IRQs to CPUs|cap(?:ability|abilities)`, optional),
	vendorSays("ena", `(?i)metrics|ENI stats|get stats|debug area|host info|SS count|PHC`, debug),
	vendorSays("ena", `(?i)alloc|memory|refill|buffers?\b|\bmap\b|Page is NULL|_info (?:info )?is not NULL|workqueue|tx bufs|DMA address`, memory),
	vendorSays("ena", `(?i)^Admin command failed|^Failed to process command|^Failed to (?:submit get_feature|config AENQ|create IO|destroy)|^Command was aborted|unsupported aenq`, "a command that the device refuses; a timeout has its own line"),
	vendorSays("ena", `(?i)invalid queue|Qid|Command id|Completion context|handlers|wrong offset|Invalid timeout|already enabled|Unknown event|req id|burst`, confusion),
	vendorSays("ena", `(?i)Resetting the device|device reset request|napi handler|TX timeout on invalid|queue creation|mac address are different|device max mtu`, detail),
	vendorIn("ena", `ena_com\.c `, "5.10 prints it without the device: the lines of ena_netdev.c that follow have it"),
	vendorSays("mana", `(?i)^Command 0x%x failed with status|^HWC: Failed hw_channel req|^Failed to send mana message`, "a command that the host refuses; a timeout has its own line"),
	vendorIn("mana", `hw/mana/(?:main|mr|qp|cq|wq)\.c `, verbs),
	vendorIn("mana", `mana/gdma_main\.c |mana/hw_channel\.c `, detail),
	vendorSays("mana", `(?i)memory|page pool|rxbp|RX pre-alloc|RX buffers|\bmap\b|linearize|nonlinear|workqueue`, memory),
	vendorSays("mana", `(?i)dropped|CQE type|RX coalescing|pkt len|indirection|RSS|netif_set_real|filter|bandwidth|TX OOB|max queues`, optional),
	vendorSays("mana", `(?i)stats|counters|link config|PHY`, debug),
	vendorSays("mana", `(?i)destroy|deregister|unregister|disable vPort|tearing down|fence|No net device`, teardown),
	vendorSays("mana", `(?i)create|vPort|adev service|net notifier|Invalid query result|WQ object`, detail),
	vendorIn("erdma", `erdma_verbs\.c `, verbs),
}

var quietOfHisilicon = []quiet{
	vendorSays("hns3", `^[A-Z0-9_]+_(?:INT|RINT|RPT|STS|ST\d?)(?:_\w+)?$|^MAC_AFIFO_TNL_INT_R$|^(?:AXI|ECC)\d: |^0x%08x$|^reg_value:|unknown module|_ecc_mbit_err found|imp_rd_data_poison_err found`, "part of a report of a hardware error that is recognised"),
	vendorIn("hns3", `hclge_err\.c `, "a query for a report of a hardware error: the report itself is recognised"),
	vendorIn("hns3", `hclge_(?:dbg|dcb|tm|ptp|regs)\w*\.c |hns_roce_bond\.[ch] |hclge_comm_tqp_stats\.c `, debug),
	vendorIn("hns3", `hns3vf/|hclge_mbx\.c |hclgevf_`, functions),
	vendorIn("hns3", `hns_roce_(?:mr|qp|cq|srq|ah|pd|hem|alloc|db)\.c `, verbs),
	vendorIn("hns3", `hns_roce_hw_v1\.c `, "hip06, which drivers left in 5.16: a start that fails is recognised"),
	vendorIn("hns3", `hns_roce_hw_v2\.c (?:check_\w+|config_\w+|fill_\w+|free_mr_\w+|get_op_\w+|modify_qp_\w+|set_\w+|alloc_eq_buf|hns_roce_set_sl|hns_roce_v2_(?:clear_hem|destroy_\w+|drain_\w+|frmr\w+|modify_\w+|post_(?:recv|send)|query_\w+|set_\w+|config_scc_param|qp_flow_control_init))$`, verbs),
	vendorIn("hns3", `hns_roce_(?:hw_v2|main|cmd)\.c `, detail),
	vendorIn("hns3", `hnae3\.c `, confusion),
	vendorSays("hns3", `SFP is absent|sfp|SFP`, "a port without a module"),
	vendorSays("hns3", `(?i)\bv(?:f|port)\b|vf%|vport%|\bVF\b`, functions),
	vendorSays("hns3", `(?i)loopback|\bregs?\b|register|stats?\b|debug|dump|dfx|statistic|diagnosis|\bled\b|service task is scheduled`, debug),
	vendorSays("hns3", `(?i)\bfd\b|traffic class|sync [um]c address|tcam|protocol type|key set|hfunc|tx_rate|mac_address|real_num|old channel|flow|rule|vlan|\bmac\b|\brss\b|promisc|GRO|tqp|tc\b|mtu|buffer|waterline|threshold|pause|umv|cls|user-def|prio|manager|ring param|coalesc|switch param|ethertype|queue id`, optional),
	vendorSays("hns3", `(?i)phy|tp port|mdio|link|autoneg|auto neg|speed|fec|wol|wake`, linkState),
	vendorSays("hns3", `(?i)alloc|memory|page pool|skb|frag|map`, memory),
	vendorSays("hns3", `(?i)vector|irq|MSI|rcb|soft reset|rst|reset type|DMA mask|workqueue|ring|channels|xps|debugfs|net open|error interrupts|ras interrupts|function status|compatible features|hw resource|not support|SRIOV|xmit|uninitialized|not initialized|VFs|media|pci device-id`, detail),
}
