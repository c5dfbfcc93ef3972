package evidence

import "strings"

// FabricFault is what a sweep of an InfiniBand fabric has found: the alert that fires for it after a while, how to look
// at it, and what to do.
type FabricFault struct {
	Alert       string // empty: none
	Diagnose    string // read-only commands
	Action      string
	DrainReason string // why jobs need not leave hosts
}

// FabricObject is the object of a fault of a fabric.
type FabricObject struct {
	Host       string // that sweeps
	GUID, Port string // of a node, 0008:f105:0000:1000, and its port; empty: the whole fabric
}

const (
	// The LID of a port by the node GUID: that of a switch, or of the port of an adapter.
	lidOfPort = `lid=$(ibnetdiscover | awk -v RS= '/-$GUID"\t/'` +
		` | sed -nE 's/^(Switch|\[$PORT\]\().* lid ([0-9]+) lmc.*/\2/p') ; `
	cleanFabricLink = "The repair takes the link down: drain a host at its end first. Clean and reseat the cable, then " +
		"swap it. If the errors stay, swap the transceiver at the end named second, which sends, then the port named first."
	retransmitted = "The link carries data, with retransmissions, and jobs at its ends go on."
)

// fabricFaults are the texts by fault: $GUID is the node GUID without colons, $NODE with them.
var fabricFaults = map[string]FabricFault{
	"unseen": {
		"RDMAFabricUnseen",
		"journalctl -u rdma_exporter-fabric -n 50 ; ls -l /dev/infiniband /sys/class/infiniband_mad ; ibstat",
		"Load ib_umad and give the exporter the right to open /dev/infiniband/umad*. Check the adapter and the cable of " +
			"$HOST. Restart an exporter whose sweep does not finish.",
		"Only monitoring of the fabric is missing; jobs are not affected by it.",
	},
	"partly_seen": {
		"RDMAFabricUnseen", "ibnetdiscover | tail ; ibqueryerrors",
		"See rdma_fabric_unanswered. Restart the management agent of a node that stays silent, or update its firmware. If " +
			"all counters are missing, correct the partition (--fabric.pkey-index) and check the subnet manager.",
		"Only monitoring of a part of the fabric is missing; jobs are not affected by it.",
	},
	"no_subnet_manager": {
		"RDMANoSubnetManager", "sminfo ; ibstat ; systemctl status opensm # where opensm runs here",
		"Start the subnet manager: opensm, UFM, or that of a switch. Then run a second one as standby, with a lower " +
			"priority.",
		"ACTIVE links carry on, and so do jobs; a host that is drained and restarted now does not rejoin the fabric.",
	},
	"switch_unreachable": {
		"RDMAFabricSwitchUnreachable", "ibswitches | grep 0x$GUID # no line: it does not answer",
		"Restore the switch: its power, its management agent, or all links to it. Drain the hosts that have no other " +
			"switch. If it was removed on purpose, run rdma_exporter accept $NODE on $HOST.",
		"The alert names a switch, not a host; hosts that have lost their ports have alerts of their own.",
	},
	"gone": {
		"RDMAFabricLinkDegraded", lidOfPort + `smpquery portinfo "$lid" $PORT | grep Link`,
		"Check that the host at the other end is up. Then reseat or replace the cable, then try another port. If the link " +
			"was removed on purpose, run rdma_exporter accept $NODE/$PORT on $HOST.",
		"A host that has lost a port has an alert of its own (RDMAPortDown); a link between two switches leaves hosts the " +
			"remaining links.",
	},
	"flapping": {
		"RDMAFabricLinkDegraded", lidOfPort + `perfquery "$lid" $PORT | grep LinkDowned`,
		"Check whether the host at the other end restarts again and again. If it does not, reseat the cable, then swap it.",
		"A host whose port flaps has an alert of its own (RDMALinkFlapping); a link between two switches leaves hosts the " +
			"remaining links.",
	},
	"degraded": {
		"RDMAFabricLinkDegraded", lidOfPort + `smpquery portinfo "$lid" $PORT | grep Link`,
		"The repair takes the link down: drain a host at its end first. Reseat the cable and clean its connectors, then " +
			"swap it with that of a good link. If many links of one switch are degraded, repair the switch or its firmware.",
		"The link carries data at a lower rate, and jobs at its ends go on.",
	},
	"link_errors": {
		"RDMAFabricLinkErrors", lidOfPort + `perfquery -x "$lid" $PORT ; perfquery "$lid" $PORT`, cleanFabricLink,
		retransmitted,
	},
	"receive_errors": {
		"RDMAFabricLinkErrors", lidOfPort + `perfquery --rcverr "$lid" $PORT`, cleanFabricLink, retransmitted,
	},
	"settings_differ": {
		"", lidOfPort + `smpquery portinfo "$lid" $PORT | grep Link # at both ends`,
		"Set the lower end as the other one and reset the link. If the lower setting is intended, set both ends alike.",
		"The link works at the lower of the two settings.",
	},
	"errors": { // below the limits of the alerts
		"", lidOfPort + `perfquery -x "$lid" $PORT`,
		"Watch whether the counters keep rising. Symbol errors: clean and reseat the cable. Transmit discards: check the " +
			"far end for a slow receiver, and for a port that went down.",
		"The link carries data, and jobs at its ends go on.",
	},
	"credit_loop": {
		"", "ibdiagnet -r --skip_plugin all # section Routing: credit loops",
		"Check the routing for credit loops: the engine of the subnet manager (updn, ftree, ar_updn), its root GUIDs, and " +
			"what was cabled or configured last. Restart the jobs that hang.",
		"The cause is the routing of the fabric, not a host.",
	},
	"oversubscribed": {
		"RDMAFabricOversubscribed", "iblinkinfo -S 0x$GUID",
		"Repair the missing and degraded links of this switch: cables and transceivers of its uplinks, or the switch at " +
			"their other end. If they were removed on purpose, run rdma_exporter accept on $HOST.",
		"Hosts of this switch work, with less bandwidth to others.",
	},
}

// OfFabric is a fault of a fabric, on an object: "gone", "link_errors". It panics for an unknown one.
func OfFabric(fault string, at FabricObject) FabricFault {
	f, ok := fabricFaults[fault]
	if !ok {
		panic("no fault of a fabric is " + fault)
	}
	fill := strings.NewReplacer(
		"$GUID", strings.ReplaceAll(at.GUID, ":", ""), "$NODE", at.GUID, "$PORT", at.Port, "$HOST", at.Host)
	for _, text := range []*string{&f.Diagnose, &f.Action, &f.DrainReason} {
		*text = fill.Replace(*text)
	}
	return f
}
