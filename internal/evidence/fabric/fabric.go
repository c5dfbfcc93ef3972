// Package fabric says of faults of a swept fabric what their rules do not: what else was measured, how to look at it,
// and why jobs need not leave hosts.
package fabric

import (
	"fmt"
	"strings"

	"rdma_exporter/internal/evidence/fault"
	"rdma_exporter/internal/words"
)

// Faults are the kinds of faults of a fabric that have texts here.
var Faults = fault.Kinds{
	"fabric_switch_unreachable/switch": {Write: switchUnreachable},
	"fabric_link_degraded/gone":        {Write: linkGone},
	"fabric_link_degraded/rate":        {Write: ofSwitch(linkBelowRate)},
	"fabric_link_degraded/flapping":    {Write: ofSwitch(linkFlaps)},
	"fabric_link_degraded/rewired":     {Write: linkRewired},
	"fabric_link_errors/symbols":       {Write: fabricErrors(`perfquery -x "$lid" $PORT ; perfquery "$lid" $PORT`, "symbol_errors", "link_error_recoveries", "fec_uncorrectable_blocks")},
	"fabric_link_errors/errors":        {Write: fabricErrors(`perfquery -x "$lid" $PORT ; perfquery "$lid" $PORT`, "symbol_errors", "link_error_recoveries")},
	"fabric_link_errors/receive":       {Write: fabricErrors(`perfquery --rcverr "$lid" $PORT`, "receive_errors", "receive_remote_physical_errors")},
	"fabric_link_errors/ber":           {Write: fabricErrors(`perfquery -T "$lid" $PORT`, "fec_corrected_symbols", "fec_uncorrectable_blocks")},
	"fabric_link_errors/counters":      {Write: fabricErrors(`perfquery -x "$lid" $PORT ; perfquery "$lid" $PORT`, "transmit_discards", "excessive_buffer_overrun_errors", "vl15_dropped", "link_downed")},
	"fabric_oversubscribed/uplinks":    {Write: oversubscribed},
	"fabric_subnet_manager/hangs":      {Write: managers},
	"fabric_subnet_manager/no_standby": {Write: managers},
	"no_subnet_manager/fabric":         {Write: noManager},
	"fabric_unseen/part":               {Write: partlyUnseen},
	"fabric_unseen/all":                {Write: unseen},
}

// The LID of a port by the node GUID: that of a switch, or of the port of an adapter.
const lidOfPort = `lid=$(ibnetdiscover | awk -v RS= '/-$GUID"\t/'` +
	` | sed -nE 's/^(Switch|\[$PORT\]\().* lid ([0-9]+) lmc.*/\2/p') ; `

// inFabric returns the commands for a port of a fabric: $GUID is the node GUID without colons.
func inFabric(f *fault.Fault, command string) string {
	return strings.NewReplacer("$GUID", strings.ReplaceAll(f.Labels["node_guid"], ":", ""), "$PORT", f.Labels["port"]).
		Replace(command)
}

const (
	otherLinks    = "a link between two switches leaves hosts the remaining links."
	severalLinks  = "The links carry data, and jobs at their ends go on."
	retransmitted = "The link carries data, with retransmissions, and jobs at its ends go on."
	onlyUnseen    = "Only monitoring of the fabric is missing; jobs are not affected by it."
)

func switchUnreachable(f *fault.Fault) fault.Text {
	var e fault.Lines
	if known := len(f.Rows(`rdma_fabric_link_info{$switch}`)); known > 0 {
		e.Add("Links", words.Count(known, "known link")+".")
	}
	return fault.Text{
		Evidence: e, Diagnose: inFabric(f, "ibswitches | grep 0x$GUID # no line: it does not answer"),
		DrainReason: "The alert names a switch, not a host; hosts that have lost their ports have alerts of their own.",
	}
}

// linkStates are the logical states of ports (IBA 14.2.5.6), by number.
var linkStates = []string{1: "DOWN", 2: "INIT", 3: "ARMED", 4: "ACTIVE"}

func linkGone(f *fault.Fault) fault.Text {
	var e fault.Lines
	if state, ok := f.Number(`rdma_fabric_port_state_id{$link}`); ok && int(state) < len(linkStates) {
		e.Add("Port", "the port named first answers and is "+linkStates[int(state)]+".")
	}
	t := fault.Text{
		Evidence: e, DrainReason: "A host that has lost a port has an alert of its own (RDMAPortDown); " + otherLinks,
	}
	if f.Labels["port"] != "" {
		t.Diagnose = inFabric(f, lidOfPort+`smpquery portinfo "$lid" $PORT | grep Link`)
		return t
	}
	t.Evidence = nil
	t.Evidence = append(t.Evidence, fault.Line{
		Name: "Missing", Text: listLinks(f.Rows(`rdma_fabric_link_missing{end="1",$host}`, "node", "port")),
	})
	t.Diagnose = "iblinkinfo -l | grep -i down"
	return t
}

// listLinks names links by both ends, the first fault.ShownParts.
func listLinks(links []fault.Sample) string {
	names := words.Map(links, func(s fault.Sample) string {
		l := s.Labels
		return fmt.Sprintf("%s/%s to %s/%s", l["node"], l["port"], l["neighbour"], l["neighbour_port"])
	})
	if more := len(names) - fault.ShownParts; more > 0 {
		names = append(names[:fault.ShownParts], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ") + "."
}

// ofSwitch returns the text of a link or, of a switch that is the cause of several, their names.
func ofSwitch(ofLink func(*fault.Fault) fault.Text) func(*fault.Fault) fault.Text {
	return func(f *fault.Fault) fault.Text {
		if f.Labels["port"] != "" {
			return ofLink(f)
		}
		l := f.Labels
		links := f.Rows(fmt.Sprintf(`link:rdma_fabric_finding:of_switch{end_guid=%q,symptom=%q,reason=%q,$host}`+
			` * on (cluster, instance, job, node_guid, port) group_left (node, neighbour, neighbour_port)`+
			` rdma_fabric_link_info{end="1",$host}`, l["node_guid"], l["symptom"], l["reason"]), "node", "port")
		return fault.Text{
			Evidence: fault.Lines{{Name: "Links", Text: listLinks(links)}},
			Diagnose: inFabric(f, "ibqueryerrors ; iblinkinfo -l | grep 0x$GUID"), DrainReason: severalLinks,
		}
	}
}

func linkRewired(f *fault.Fault) fault.Text {
	var e fault.Lines
	for _, s := range f.Rows(`rdma_fabric_link_rewired{$link}`, "moved") {
		at := f.LabelOf(`rdma_fabric_link_info{$link}`, "node")
		e.Add("Before", fmt.Sprintf("%s to %s, which is now connected to %s.",
			words.Join("/", at, s.Labels["port"]), s.Labels["moved"], s.Labels["now"]))
	}
	return fault.Text{
		Evidence: e, Diagnose: inFabric(f, `ibnetdiscover | awk -v RS= '/-$GUID"\t/' | grep '^\[$PORT\]'`),
		DrainReason: "The link is up, and jobs go on.",
	}
}

func linkBelowRate(f *fault.Fault) fault.Text {
	var e fault.Lines
	gigabits := func(expr string) string { return f.Text(`max(`+expr+`{$link}) * 8 / 1e9`, "%.4g Gb/s", "") }
	lanes := func(expr string) string {
		if n, ok := f.Number(`max(` + expr + `{$link})`); ok {
			return " on " + words.Count(int(n), "lane")
		}
		return ""
	}
	rate := gigabits("rdma_fabric_port_rate_bytes_per_second")
	enabled := gigabits("rdma_fabric_link_enabled_rate_bytes_per_second")
	e.AddKnown("Rate", rate, lanes("rdma_fabric_port_width_lanes")+".")
	e.AddKnown("Enabled at both ends", enabled, lanes("rdma_fabric_link_enabled_width_lanes")+".")
	limit := enabled
	if rate == enabled {
		supported := gigabits("rdma_fabric_link_supported_rate_bytes_per_second")
		e.AddKnown("Supported by both ends", supported, lanes("rdma_fabric_link_supported_width_lanes")+".")
		if supported != "" && supported != enabled {
			limit = "a quarter of " + supported
		}
	}
	if v, ok := f.Number(`rdma_fabric_port_fdr10{$link}`); ok && v == 0 {
		e.Add("FDR10", "enabled at both ends, not in use.")
	}
	return fault.Text{
		Evidence: e, Measured: rate, Limit: limit,
		Diagnose:    inFabric(f, lidOfPort+`smpquery portinfo "$lid" $PORT | grep Link`),
		DrainReason: "The link carries data at a lower rate, and jobs at its ends go on.",
	}
}

func linkFlaps(f *fault.Fault) fault.Text {
	var e fault.Lines
	e.Add("Since cleared", f.Text(`max(rdma_fabric_port_link_downed_total{$link})`, "%.0f link losses counted.", ""))
	return fault.Text{
		Evidence: e, Measured: fault.Whole(f.Value), Limit: "2",
		Diagnose:    inFabric(f, lidOfPort+`perfquery "$lid" $PORT | grep LinkDowned`),
		DrainReason: "A host whose port flaps has an alert of its own (RDMALinkFlapping); " + otherLinks,
	}
}

// counterNames are the counters of errors of a port, by their metric.
var counterNames = map[string]string{
	"excessive_buffer_overrun_errors": "Excessive buffer overrun errors",
	"fec_corrected_symbols":           "FEC corrected symbols",
	"fec_uncorrectable_blocks":        "FEC uncorrectable blocks",
	"link_downed":                     "Link downed",
	"link_error_recoveries":           "Link error recoveries",
	"receive_errors":                  "Receive errors",
	"receive_remote_physical_errors":  "Receive remote physical errors",
	"symbol_errors":                   "Symbol errors",
	"transmit_discards":               "Transmit discards",
	"vl15_dropped":                    "VL15 dropped",
}

// fabricErrors returns the text of errors that a port has counted, with the command that reads them.
func fabricErrors(command string, counters ...string) func(*fault.Fault) fault.Text {
	return ofSwitch(func(f *fault.Fault) fault.Text {
		var e fault.Lines
		for _, c := range counters {
			metric := "rdma_fabric_port_" + c + "_total{$link}"
			total, ok := f.Number("max(" + metric + ")")
			if !ok {
				continue
			}
			risen := f.Text("max(increase("+metric+"[1h]))", "%.0f in 1h, ", "")
			e.Add(counterNames[c], risen+fault.Whole(total)+" since cleared.")
		}
		return fault.Text{Evidence: e, Diagnose: inFabric(f, lidOfPort+command), DrainReason: retransmitted}
	})
}

func oversubscribed(f *fault.Fault) fault.Text {
	var e fault.Lines
	of := func(what string) string {
		return f.Text(`max(rdma_fabric_leaf_`+what+`_bytes_per_second{$switch}) * 8 / 1e9`, "%.4g Gb/s", "")
	}
	e.AddKnown("To hosts", of("downlink"), ".")
	e.AddKnown("To switches", of("uplink"), ".")
	e.AddKnown("Expected to switches", of("uplink_expected"), ".")
	return fault.Text{
		Evidence: e, Diagnose: inFabric(f, "iblinkinfo -S 0x$GUID"),
		DrainReason: "Hosts of this switch work, with less bandwidth to others.",
	}
}

// answering returns the subnet managers that answer, with their states.
func answering(f *fault.Fault) (e fault.Lines) {
	states := []string{"not active", "discovering", "standby", "master"}
	for _, s := range f.Rows(`rdma_fabric_subnet_manager_state_id{$host}`, "node_guid") {
		name := f.LabelOf(`rdma_fabric_node_info{$host,node_guid="`+s.Labels["node_guid"]+`"}`, "node")
		if i := int(s.Value); i >= 0 && i < len(states) {
			e.Add("Subnet manager", words.Join(" ", name, s.Labels["node_guid"])+": "+states[i]+".")
		}
	}
	return e
}

func managers(f *fault.Fault) fault.Text {
	return fault.Text{
		Evidence: answering(f), Diagnose: "sminfo ; systemctl status opensm # where opensm runs here",
		DrainReason: "ACTIVE links carry on, and so do jobs.",
	}
}

func noManager(f *fault.Fault) fault.Text {
	return fault.Text{
		Evidence: answering(f), Diagnose: "sminfo ; ibstat ; systemctl status opensm # where opensm runs here",
		DrainReason: "ACTIVE links carry on, and so do jobs; a host that is drained and restarted now does not rejoin the fabric.",
	}
}

func partlyUnseen(f *fault.Fault) fault.Text {
	var e fault.Lines
	for _, s := range f.Rows(`rdma_fabric_unanswered{request!="subnet_manager",$host} > 0`, "request") {
		e.Add("Unanswered", fmt.Sprintf("%.0f %s.", s.Value, s.Labels["request"]))
	}
	return fault.Text{Evidence: e, Diagnose: "ibnetdiscover | tail ; ibqueryerrors", DrainReason: onlyUnseen}
}

func unseen(f *fault.Fault) fault.Text {
	var e fault.Lines
	e.Add("Last sweep", f.Text(`time() - max(rdma_fabric_sweep_timestamp_seconds{$host})`, "started %.0fs ago.",
		"none has finished."))
	return fault.Text{
		Evidence:    e,
		Diagnose:    "journalctl -u rdma_exporter-fabric -n 50 ; ls -l /dev/infiniband /sys/class/infiniband_mad ; ibstat",
		DrainReason: onlyUnseen,
	}
}
