package qos

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/collector/metric"
	"rdma_exporter/internal/host/dcb"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/snapshot"
)

const fromDCB = "rtnetlink RTM_GETDCB, DCB_CMD_IEEE_GET"

var (
	pfcEnabled = metric.Of(
		metric.EthernetPorts,
		metric.Beside("rdma_port_pfc_enabled_priorities", metric.Asks(source.DCB,
			metric.Port(
				"rdma_port_pfc_enabled",
				"1 for each priority with PFC enabled, absent for others. Where PFC is known but disabled, rdma_port_pfc_enabled_priorities is 0.",
				fromDCB+", pfc_en",
				"netdev",
				"priority",
			))),
	)
	pfcEnabledPriorities = metric.Of(
		metric.EthernetPorts,
		metric.Asks(source.DCB, metric.Port("rdma_port_pfc_enabled_priorities",
			"Number of priorities with PFC enabled. Absent where the driver does not report PFC.", fromDCB+", pfc_en",
			"netdev")),
	)
	pfcCapablePriorities = metric.Port("rdma_port_pfc_capable_priorities",
		"Maximum number of priorities with PFC enabled at the same time.", fromDCB+", pfc_cap", "netdev")
	dcbPFCFrames = metric.Port("rdma_port_dcb_pfc_frames_total",
		"PFC frames by priority as reported over DCB, read once a minute (on mlx5 as of the last read of the netdev's statistics). Only priorities with PFC enabled or frames counted.",
		fromDCB+", requests (transmit) and indications (receive)", "netdev", "priority", "direction")
	qosInfo = metric.Port("rdma_port_qos_info",
		"Traffic classification of a netdev, always 1. trust: dscp or pcp (what selects the priority of a received packet), empty where unknown. dcbx: DCBX mode, a list of host, lld_managed (firmware or switch), cee, ieee, static.",
		fromDCB+", APP table and DCBX mode; MLNX_OFED qos/trust", "netdev", "trust", "dcbx")
	priorityInfo = metric.Port("rdma_port_priority_info",
		"DSCPs mapped to a priority, always 1. Only priorities with PFC enabled, or with a DSCP that does not map to them by default. Default priority of a DSCP: its upper three bits where the driver reports all 64 DSCPs, else 0. Absent where the DSCP does not select the priority, and where the driver reports no DSCP.",
		fromDCB+", APP table, selector 5", "netdev", "priority", "dscps")
	classBandwidth = metric.Port("rdma_port_traffic_class_bandwidth_ratio",
		"Guaranteed share of the bandwidth of a traffic class (ETS). Only classes of priorities with PFC enabled or DSCPs of their own (rdma_port_priority_info). Absent for classes without ETS, and where one class has all the bandwidth.",
		fromDCB+", tc_tx_bw of classes with ETS", "netdev", "traffic_class")
	classSelection = metric.Port("rdma_port_traffic_class_selection_info",
		"Transmission selection of a traffic class in use without ETS, always 1. Only where other classes share the bandwidth. algorithm: strict (before those), cbs (credit-based shaper), vendor.",
		fromDCB+", tc_tsa", "netdev", "traffic_class", "algorithm")
	priorityClass = metric.Port("rdma_port_priority_traffic_class",
		"Traffic class of a priority with PFC enabled or DSCPs of its own (rdma_port_priority_info). Absent where it equals the priority, and where all priorities have the driver's default.",
		fromDCB+", prio_tc", "netdev", "priority")
	bufferBytes = metric.Port("rdma_port_buffer_bytes",
		"Size of a receive buffer of the port. Absent for buffers of size 0.", fromDCB+", DCB_ATTR_DCB_BUFFER",
		"netdev", "buffer")
	priorityBuffer = metric.Port("rdma_port_priority_buffer",
		"Number of the receive buffer of a priority with PFC enabled.", fromDCB+", DCB_ATTR_DCB_BUFFER", "netdev",
		"priority")
	notificationEnabled = metric.Of("rdma_port_pfc_enabled", metric.Asks(source.RoCEConfig,
		metric.Port("rdma_port_congestion_notification_enabled",
			"Whether congestion notification (DCQCN) is enabled for a priority. point: notification (answers marked packets with CNPs), reaction (reduces the rate). Only priorities with PFC enabled, and any where it is disabled.",
			"MLNX_OFED /sys/class/net/NETDEV/ecn/roce_{np,rp}/enable", "netdev", "priority", "point")))
	cnpInfo = metric.Port("rdma_port_cnp_info",
		"DSCP and 802.1p priority of the CNPs sent by a port, always 1.",
		"MLNX_OFED /sys/class/net/NETDEV/ecn/roce_np/{cnp_dscp,cnp_802p_prio}", "netdev", "dscp", "priority")
	trafficClassInfo = metric.Port("rdma_port_traffic_class_info",
		"Traffic class byte of all RoCE packets of a port, and the DSCP in it, always 1. Absent where none is set.",
		"MLNX_OFED /sys/class/infiniband/DEV/tc/N/traffic_class", "traffic_class", "dscp")
	rocePinInfo = metric.Of(
		metric.EthernetPorts,
		metric.Beside("rdma_port_pfc_enabled_priorities", metric.Port(
			"rdma_port_roce_pin_info",
			"RoCE settings pinned for a port in --config.file, always 1. roce: lossless, lossy or auto. congestion_control: dcqcn, zerotouch_rtt or off. Empty where not pinned. Absent where neither is pinned.",
			"--config.file",
			"roce",
			"congestion_control",
		)),
	)

	qosDescs = []*metric.Desc{
		pfcEnabled, pfcEnabledPriorities, pfcCapablePriorities, dcbPFCFrames, qosInfo, priorityInfo,
		classBandwidth, classSelection,
		priorityClass, bufferBytes, priorityBuffer, notificationEnabled, cnpInfo, trafficClassInfo, rocePinInfo,
	}
)

func emitQoS(qos *snapshot.QoS, s metric.Sink) {
	for i := range qos.Netdevs {
		q := &qos.Netdevs[i]
		e := qosEmitter{s: s, q: q, labels: []string{q.Device, strconv.Itoa(q.Port), q.Name}}
		e.emit()
	}
	for _, p := range qos.Ports {
		port := strconv.Itoa(p.Port)
		if c := p.TrafficClass; c != nil {
			s.Emit(trafficClassInfo, 1, p.Device, port, strconv.FormatUint(*c, 10), strconv.FormatUint(*c>>2, 10))
		}
		if p.PinnedRoCE != "" || p.PinnedCongestionControl != "" {
			s.Emit(rocePinInfo, 1, p.Device, port, p.PinnedRoCE, p.PinnedCongestionControl)
		}
	}
}

// qosEmitter emits the data of one netdev.
type qosEmitter struct {
	s      metric.Sink
	q      *snapshot.NetdevQoS
	labels []string
	marked [snapshot.Priorities]bool // with flow control, or with a non-default DSCP mapping
}

func (e *qosEmitter) put(d *metric.Desc, v float64, more ...string) {
	e.s.Emit(d, v, append(e.labels[:len(e.labels):len(e.labels)], more...)...)
}

func (e *qosEmitter) emit() {
	q := e.q
	if q.Trust != "" || q.DCBX != nil {
		e.put(qosInfo, 1, q.Trust, strings.Join(q.DCBX, ","))
	}
	e.pfc()
	e.priorities()
	e.classes()
	e.buffers()
	e.notification()
}

// lossless reports whether a priority has flow control.
func (e *qosEmitter) lossless(p int) bool { return e.q.PFC != nil && e.q.PFC.Enabled[p] }

func (e *qosEmitter) pfc() {
	pfc := e.q.PFC
	if pfc == nil {
		return
	}
	on := 0
	for p := range snapshot.Priorities {
		priority := strconv.Itoa(p)
		if pfc.Enabled[p] {
			on++
			e.put(pfcEnabled, 1, priority)
		}
		if pfc.Enabled[p] || pfc.Sent[p] > 0 || pfc.Received[p] > 0 {
			e.put(dcbPFCFrames, float64(pfc.Sent[p]), priority, "transmit")
			e.put(dcbPFCFrames, float64(pfc.Received[p]), priority, "receive")
		}
	}
	e.put(pfcEnabledPriorities, float64(on))
	e.put(pfcCapablePriorities, float64(pfc.Capable))
}

// allDSCPs is the number of DSCPs.
const allDSCPs = maxDSCP + 1

func (e *qosEmitter) priorities() {
	var to [snapshot.Priorities][]uint8
	known := e.q.DSCPs != nil && e.q.Trust == byDSCP
	if known {
		to = *e.q.DSCPs
	}
	n := 0
	for _, list := range to {
		n += len(list)
	}
	for p, list := range to {
		e.marked[p] = e.lossless(p) || slices.ContainsFunc(list, func(d uint8) bool {
			if n == allDSCPs {
				return int(d>>3) != p
			}
			return p != 0
		})
		if e.marked[p] && known {
			e.put(priorityInfo, 1, strconv.Itoa(p), ranges(list))
		}
	}
}

// ranges writes ascending numbers as 0-7,26.
func ranges(numbers []uint8) string {
	var out []string
	for i := 0; i < len(numbers); {
		first := numbers[i]
		last := first
		for i++; i < len(numbers) && numbers[i] == last+1; i++ {
			last++
		}
		if first == last {
			out = append(out, strconv.Itoa(int(first)))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", first, last))
		}
	}
	return strings.Join(out, ",")
}

// algorithmName names a transmission selection algorithm other than ETS.
func algorithmName(n uint64) string {
	switch n {
	case dcb.Strict:
		return "strict"
	case dcb.CreditBased:
		return "cbs"
	case dcb.Vendor:
		return "vendor"
	}
	return strconv.FormatUint(n, 10)
}

// defaultClasses are the default maps from priority to traffic class of drivers: identity, all in one, and that of
// mlx5, where priority 1 is the lowest (mlx5e_ets_init).
var defaultClasses = [][snapshot.Priorities]uint64{{0, 1, 2, 3, 4, 5, 6, 7}, {}, {1, 0, 2, 3, 4, 5, 6, 7}}

func (e *qosEmitter) classes() {
	c := e.q.Classes
	if c == nil {
		return
	}
	byDefault := slices.Contains(defaultClasses, c.OfPrio)
	var used, marked [snapshot.Priorities]bool
	for p, class := range c.OfPrio {
		if class >= snapshot.Priorities {
			continue
		}
		used[class], marked[class] = true, marked[class] || e.marked[p]
		if e.marked[p] && class != uint64(p) && !byDefault {
			e.put(priorityClass, float64(class), strconv.Itoa(p))
		}
	}
	if !sharing(c) {
		return
	}
	for i, algorithm := range c.Algorithm {
		class := strconv.Itoa(i)
		switch {
		case algorithm == dcb.Enhanced && marked[i]:
			e.put(classBandwidth, float64(c.Bandwidth[i])/100, class)
		case algorithm != dcb.Enhanced && used[i]:
			e.put(classSelection, 1, class, algorithmName(algorithm))
		}
	}
}

// sharing reports whether a class has a part of the bandwidth.
func sharing(c *snapshot.Classes) bool {
	for i, algorithm := range c.Algorithm {
		if b := c.Bandwidth[i]; algorithm == dcb.Enhanced && b > 0 && b < 100 {
			return true
		}
	}
	return false
}

func (e *qosEmitter) buffers() {
	b := e.q.Buffers
	if b == nil {
		return
	}
	for i, size := range b.Sizes {
		if size > 0 {
			e.put(bufferBytes, float64(size), strconv.Itoa(i))
		}
	}
	for p, buffer := range b.OfPrio {
		if e.lossless(p) {
			e.put(priorityBuffer, float64(buffer), strconv.Itoa(p))
		}
	}
}

func (e *qosEmitter) notification() {
	for p := range snapshot.Priorities {
		for _, point := range []struct {
			name string
			on   *uint64
		}{{"notification", e.q.Notification[p]}, {"reaction", e.q.Reaction[p]}} {
			if point.on != nil && (e.lossless(p) || *point.on == 0) {
				e.put(notificationEnabled, metric.BoolValue(*point.on != 0), strconv.Itoa(p), point.name)
			}
		}
	}
	if dscp, prio := e.q.CNPDSCP, e.q.CNPPriority; dscp != nil || prio != nil {
		text := func(v *uint64) string {
			if v == nil {
				return ""
			}
			return strconv.FormatUint(*v, 10)
		}
		e.put(cnpInfo, 1, text(dscp), text(prio))
	}
}
