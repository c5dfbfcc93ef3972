package infiniband

import (
	"fmt"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

var portDownReason = metric.Port("rdma_port_link_down_reason_info",
	"Reason reported by the driver for a netdev's link being down, always 1. Absent while the link is up, and where the driver reports none.",
	"ethtool netlink LINKSTATE_GET, ext_state and ext_substate", "netdev", "reason", "detail")

// linkStates are the texts of enum ethtool_link_ext_state and, by number, of the substates of each
// (include/uapi/linux/ethtool.h).
var linkStates = []struct {
	text      string
	substates []string // from 1
}{
	0: {"autonegotiation failed", []string{
		"no partner detected", "acknowledgement not received", "next page exchange failed",
		"no partner detected in force mode", "FEC mismatch during override", "no highest common denominator",
	}},
	1:  {"link training failed", []string{"frame lock not acquired", "link inhibit timeout", "partner did not set receiver ready", "remote side is not ready yet"}},
	2:  {"logical mismatch", []string{"no block lock", "no alignment marker lock", "no alignment status", "FC FEC not locked", "RS FEC not locked"}},
	3:  {"bad signal integrity", []string{"large number of physical errors", "unsupported rate", "serdes reference clock lost", "serdes analog loss of signal"}},
	4:  {"no cable", nil},
	5:  {"cable issue", []string{"unsupported cable", "cable test failure"}},
	6:  {"EEPROM issue", nil},
	7:  {"calibration failure", nil},
	8:  {"power budget exceeded", nil},
	9:  {"overheat", nil},
	10: {"module", []string{"CMIS module is not in state ModuleReady"}},
	11: {"OTP speed violation", nil},
	12: {"BMC request down", nil},
}

// downReason returns the texts of a link state; reason is empty where the driver reports none.
func downReason(s host.LinkState) (reason, detail string) {
	if s.ExtState == nil {
		return "", ""
	}
	if *s.ExtState >= uint64(len(linkStates)) {
		return fmt.Sprintf("unknown state %d", *s.ExtState), ""
	}
	state := linkStates[*s.ExtState]
	if s.ExtSubstate == nil || *s.ExtSubstate == 0 {
		return state.text, ""
	}
	if *s.ExtSubstate > uint64(len(state.substates)) {
		return state.text, fmt.Sprintf("unknown substate %d", *s.ExtSubstate)
	}
	return state.text, state.substates[*s.ExtSubstate-1]
}

// readLinkStates reads how often the links of the netdevs went down and, for those that are administratively up but
// have no link, why.
func readLinkStates(r *reading.Reader, netdevs []snapshot.Netdev, up bool) {
	for i := range netdevs {
		nd := &netdevs[i]
		s, made := shared.AskEthtool(r, source.LinkState, r.Host.Ethtool.LinkState, nd.Name)
		if !made {
			continue
		}
		nd.DownEvents = s.ExtDownCount
		if !up && (nd.Admin == nil || *nd.Admin) {
			nd.DownReason, nd.DownDetail = downReason(s)
		}
	}
}
