package evidence

import (
	"fmt"
	"strings"

	"rdma_exporter/internal/words"
)

// fabricTexts are what is said of the faults of a swept fabric beside what their rules say: what else was measured, how
// to look at it, and why jobs need not leave hosts.
var fabricTexts = map[string]func(*Fault) Text{
	"fabric_switch_unreachable/switch": switchUnreachable,
	"fabric_link_degraded/gone":        linkGone,
	"fabric_link_degraded/rate":        linkBelowRate,
	"fabric_link_degraded/flapping":    linkFlaps,
	"fabric_link_errors/symbols":       fabricErrors(`perfquery -x "$lid" $PORT ; perfquery "$lid" $PORT`, "symbol_errors", "link_error_recoveries", "fec_uncorrectable_blocks"),
	"fabric_link_errors/errors":        fabricErrors(`perfquery -x "$lid" $PORT ; perfquery "$lid" $PORT`, "symbol_errors", "link_error_recoveries"),
	"fabric_link_errors/receive":       fabricErrors(`perfquery --rcverr "$lid" $PORT`, "receive_errors", "receive_remote_physical_errors"),
	"fabric_link_errors/ber":           fabricErrors(`perfquery -T "$lid" $PORT`, "fec_corrected_symbols", "fec_uncorrectable_blocks"),
	"fabric_link_errors/counters":      fabricErrors(`perfquery -x "$lid" $PORT ; perfquery "$lid" $PORT`, "transmit_discards", "excessive_buffer_overrun_errors", "vl15_dropped", "link_downed"),
	"fabric_oversubscribed/uplinks":    oversubscribed,
	"fabric_subnet_manager/hangs":      managers,
	"fabric_subnet_manager/no_standby": managers,
	"no_subnet_manager/fabric":         noManager,
	"fabric_unseen/part":               partlyUnseen,
	"fabric_unseen/all":                unseen,
}

// The LID of a port by the node GUID: that of a switch, or of the port of an adapter.
const lidOfPort = `lid=$(ibnetdiscover | awk -v RS= '/-$GUID"\t/'` +
	` | sed -nE 's/^(Switch|\[$PORT\]\().* lid ([0-9]+) lmc.*/\2/p') ; `

// inFabric are the commands for a port of a fabric: $GUID is the node GUID without colons.
func (f *Fault) inFabric(command string) string {
	return strings.NewReplacer("$GUID", strings.ReplaceAll(f.Labels["node_guid"], ":", ""), "$PORT", f.Labels["port"]).
		Replace(command)
}

const (
	otherLinks    = "a link between two switches leaves hosts the remaining links."
	retransmitted = "The link carries data, with retransmissions, and jobs at its ends go on."
	onlyUnseen    = "Only monitoring of the fabric is missing; jobs are not affected by it."
)

func switchUnreachable(f *Fault) Text {
	var e lines
	if known := len(f.rows(`rdma_fabric_link_info{$switch}`)); known > 0 {
		e.add("Links", words.Count(known, "known link")+".")
	}
	return Text{
		Evidence: e, Diagnose: f.inFabric("ibswitches | grep 0x$GUID # no line: it does not answer"),
		DrainReason: "The alert names a switch, not a host; hosts that have lost their ports have alerts of their own.",
	}
}

// linkStates are the logical states of ports (IBA 14.2.5.6), by number.
var linkStates = []string{1: "DOWN", 2: "INIT", 3: "ARMED", 4: "ACTIVE"}

func linkGone(f *Fault) Text {
	var e lines
	if state, ok := f.number(`rdma_fabric_port_state_id{$link}`); ok && int(state) < len(linkStates) {
		e.add("Port", "the port named first answers and is "+linkStates[int(state)]+".")
	}
	t := Text{
		Evidence: e, DrainReason: "A host that has lost a port has an alert of its own (RDMAPortDown); " + otherLinks,
	}
	if f.Labels["port"] != "" {
		t.Diagnose = f.inFabric(lidOfPort + `smpquery portinfo "$lid" $PORT | grep Link`)
		return t
	}
	names := words.Of(f.rows(`rdma_fabric_link_info{end="1",$host} and on (node_guid, port) rdma_fabric_link_missing{$host}`,
		"node", "port"), func(s Sample) string {
		l := s.Labels
		return fmt.Sprintf("%s/%s to %s/%s", l["node"], l["port"], l["neighbour"], l["neighbour_port"])
	})
	if more := len(names) - shownParts; more > 0 {
		names = append(names[:shownParts], fmt.Sprintf("%d more", more))
	}
	t.Evidence = nil
	t.Evidence = append(t.Evidence, Line{"Missing", strings.Join(names, ", ") + "."})
	t.Diagnose = "iblinkinfo -l | grep -i down"
	return t
}

func linkBelowRate(f *Fault) Text {
	var e lines
	gigabits := func(expr string) string { return f.text(`max(`+expr+`{$link}) * 8 / 1e9`, "%.4g Gb/s", "") }
	lanes := func(expr string) string { return f.text(`max(`+expr+`{$link})`, " on %.0f lanes", "") }
	rate := gigabits("rdma_fabric_port_rate_bytes_per_second")
	enabled := gigabits("rdma_fabric_link_enabled_rate_bytes_per_second")
	e.addKnown("Rate", rate, lanes("rdma_fabric_port_width_lanes")+".")
	e.addKnown("Enabled at both ends", enabled, lanes("rdma_fabric_link_enabled_width_lanes")+".")
	if v, ok := f.number(`rdma_fabric_port_fdr10{$link}`); ok && v == 0 {
		e.add("FDR10", "enabled at both ends, not in use.")
	}
	return Text{
		Evidence: e, Measured: rate, Limit: enabled,
		Diagnose:    f.inFabric(lidOfPort + `smpquery portinfo "$lid" $PORT | grep Link`),
		DrainReason: "The link carries data at a lower rate, and jobs at its ends go on.",
	}
}

func linkFlaps(f *Fault) Text {
	var e lines
	e.add("Since cleared", f.text(`max(rdma_fabric_port_link_downed_total{$link})`, "%.0f link losses counted.", ""))
	return Text{
		Evidence: e, Measured: whole(f.Value), Limit: "2",
		Diagnose:    f.inFabric(lidOfPort + `perfquery "$lid" $PORT | grep LinkDowned`),
		DrainReason: "A host whose port flaps has an alert of its own (RDMALinkFlapping); " + otherLinks,
	}
}

// fabricErrors is the text of errors that a port has counted, with the command that reads them.
func fabricErrors(command string, counters ...string) func(*Fault) Text {
	return func(f *Fault) Text {
		var e lines
		for _, c := range counters {
			metric := "rdma_fabric_port_" + c + "_total{$link}"
			total, ok := f.number("max(" + metric + ")")
			if !ok {
				continue
			}
			risen := f.text("max(increase("+metric+"[1h]))", "%.0f in 1h, ", "")
			e.add(strings.ToUpper(c[:1])+words.Spaced(c[1:]), risen+whole(total)+" since cleared.")
		}
		return Text{Evidence: e, Diagnose: f.inFabric(lidOfPort + command), DrainReason: retransmitted}
	}
}

func oversubscribed(f *Fault) Text {
	var e lines
	of := func(what string) string {
		return f.text(`max(rdma_fabric_leaf_`+what+`_bytes_per_second{$switch}) * 8 / 1e9`, "%.4g Gb/s", "")
	}
	e.addKnown("To hosts", of("downlink"), ".")
	e.addKnown("To switches", of("uplink"), ".")
	e.addKnown("Expected to switches", of("uplink_expected"), ".")
	return Text{
		Evidence: e, Diagnose: f.inFabric("iblinkinfo -S 0x$GUID"),
		DrainReason: "Hosts of this switch work, with less bandwidth to others.",
	}
}

// answering are the subnet managers that answer, with their states.
func (f *Fault) answering() (e lines) {
	states := []string{"not active", "discovering", "standby", "master"}
	for _, s := range f.rows(`rdma_fabric_subnet_manager_state_id{$host}`, "node_guid") {
		name := f.label(`rdma_fabric_node_info{$host,node_guid="`+s.Labels["node_guid"]+`"}`, "node")
		if i := int(s.Value); i >= 0 && i < len(states) {
			e.add("Subnet manager", words.Join(" ", name, s.Labels["node_guid"])+": "+states[i]+".")
		}
	}
	return e
}

func managers(f *Fault) Text {
	return Text{
		Evidence: f.answering(), Diagnose: "sminfo ; systemctl status opensm # where opensm runs here",
		DrainReason: "ACTIVE links carry on, and so do jobs.",
	}
}

func noManager(f *Fault) Text {
	return Text{
		Evidence: f.answering(), Diagnose: "sminfo ; ibstat ; systemctl status opensm # where opensm runs here",
		DrainReason: "ACTIVE links carry on, and so do jobs; a host that is drained and restarted now does not rejoin the fabric.",
	}
}

func partlyUnseen(f *Fault) Text {
	var e lines
	for _, s := range f.rows(`rdma_fabric_unanswered{request!="subnet_manager",$host} > 0`, "request") {
		e.add("Unanswered", fmt.Sprintf("%.0f %s.", s.Value, s.Labels["request"]))
	}
	return Text{Evidence: e, Diagnose: "ibnetdiscover | tail ; ibqueryerrors", DrainReason: onlyUnseen}
}

func unseen(f *Fault) Text {
	var e lines
	e.add("Last sweep", f.text(`time() - max(rdma_fabric_sweep_timestamp_seconds{$host})`, "started %.0fs ago.",
		"none has finished."))
	return Text{
		Evidence:    e,
		Diagnose:    "journalctl -u rdma_exporter-fabric -n 50 ; ls -l /dev/infiniband /sys/class/infiniband_mad ; ibstat",
		DrainReason: onlyUnseen,
	}
}
