package tune

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Unit is what the value of a threshold is.
type Unit string

const (
	Duration Unit = "duration" // 2m
	Ratio    Unit = "ratio"    // 0.5, or 50%
	Count    Unit = "count"    // a whole number, 1 or more
	Number   Unit = "number"   // in the unit of the metric
)

// Threshold is a constant of the rules that an operator can set.
type Threshold struct {
	Name    string  `json:"name"`
	Alert   string  `json:"alert"` // that it decides
	Unit    Unit    `json:"unit"`
	Default string  `json:"default"`
	Why     string  `json:"why"`
	Places  []Place `json:"places"`
}

// Place is where a threshold stands: the text around it in a rule, on one line. {} is the value, {%} the value as a percentage, {-1} the
// value less 1 (a limit that is exceeded); "for: {}" is the rule's key.
type Place struct {
	Rule  string `json:"rule"` // name of the alert, in all its severities, or of the recording rule
	Text  string `json:"text"`
	Times int    `json:"times"` // how often it stands there
}

const forText = "for: {}"

// waits is a threshold that is an alert's `for`, in so many of its severities.
func waits(name, alert, value string, times int, why string) Threshold {
	return Threshold{name, alert, Duration, value, why, []Place{{alert, forText, times}}}
}

// Thresholds are all that can be set, in the order of the documentation.
func Thresholds() []Threshold {
	return []Threshold{
		waits("port-down-for", "RDMAPortDown", "2m", 5, "a driver restart or a link retraining takes seconds, a switch's line card under a minute"),
		waits("plane-degraded-for", "RDMAPlaneDegraded", "2m", 2, "as for a port"),
		waits("no-subnet-manager-for", "RDMAPortNoSubnetManager", "5m", 1, "a subnet manager that takes over sweeps the fabric first"),
		waits("device-missing-for", "RDMADeviceMissing", "5m", 2, "a driver reload takes a minute or two"),
		waits("stack-not-loaded-for", "RDMAStackNotLoaded", "5m", 2, "modules load within minutes of a boot"),
		waits("read-stuck-for", "RDMAReadStuck", "2m", 4, "firmware commands time out within a minute"),
		waits("firmware-error-for", "RDMADeviceFirmwareError", "1m", 2, "a recovery by the driver takes seconds"),
		waits("collector-failing-for", "RDMACollectorFailing", "5m", 1, "a failed round or two costs nothing"),
		waits("link-width-for", "RDMALinkWidthDegraded", "5m", 4, "links train in steps"),
		waits("link-rate-for", "RDMALinkDownshifted", "5m", 4, "links train in steps"),
		waits("pcie-degraded-for", "RDMAPCIeDegraded", "10m", 6, "a reset trains the link anew"),
		waits("transceiver-hot-for", "RDMATransceiverHot", "5m", 5, "fans need minutes to follow the load"),
		waits("storm-source-for", "RDMAPFCStormSource", "1m", 2, "a paused switch port stops its neighbours within seconds"),
		waits("storm-victim-for", "RDMAPFCStormVictim", "2m", 2, "the source is reported first"),
		waits("slow-receiver-for", "RDMASlowReceiver", "5m", 2, "a burst of traffic ends earlier"),
		waits("retransmissions-for", "RDMARetransmissions", "10m", 2, "a change of route ends earlier"),
		waits("congestion-for", "RDMACongestion", "15m", 1, "the phases of a job alternate within minutes"),
		waits("gpudirect-for", "RDMAGPUDirectUnavailable", "5m", 1, "modules load within minutes of a boot"),
		waits("exporter-down-for", "RDMAExporterDown", "5m", 1, "a restart or an upgrade takes less"),
		waits("fabric-switch-for", "RDMAFabricSwitchUnreachable", "3m", 1, "two sweeps agree"),
		waits("fabric-link-gone-for", "RDMAFabricLinkGone", "5m", 1, "a reboot of a switch port takes less"),
		waits("fabric-no-subnet-manager-for", "RDMAFabricNoSubnetManager", "3m", 1, "a failover takes less"),
		waits("switch-ports-down-for", "RDMASwitchPortsDown", "2m", 1, "as for a port"),

		{"flaps-per-hour", "RDMALinkFlapping", Count, "3", "losses of a link in an hour; one or two are a reseated cable", []Place{
			{"port:rdma_link_flapping:warning", "port:rdma_port_link_losses:count1h >= {} and", 1},
			{"RDMALinkFlapping", "unless port:rdma_port_link_losses:count1h >= {}", 1},
			{"RDMALinkFlapping", `{{ $value | printf "%.0f" }} (limit {-1})`, 1},
		}},
		{"flaps-per-day", "RDMALinkUnstable", Count, "10", "losses of a link in 24 hours that stay below the hourly limit", []Place{
			{"RDMALinkUnstable", "count1h[1d:1h])) >= {}", 1},
			{"RDMALinkUnstable", "(limit {-1})", 1},
		}},
		{"subnet-manager-changes", "RDMASubnetManagerChanging", Count, "3", "changes of the subnet manager in an hour; a failover and back are two", []Place{
			{"RDMASubnetManagerChanging", "port:rdma_port_sm_lid:changes1h >= {})", 1},
			{"RDMASubnetManagerChanging", "port:rdma_port_sm_lid:changes1h{%s}) >= {}\"", 2},
			{"RDMASubnetManagerChanging", "changes in an hour, limit {-1}{{", 1},
		}},
		{"symbol-errors", "RDMALinkErrors", Count, "120", "symbol errors in an hour: IBTA specifies 10^-12, 120 an hour at the lowest rate", []Place{
			{"port:rdma_link_errors:warning", "port:rdma_port_symbol_errors:sum1h > {}", 1},
			{"RDMALinkErrors", "unless port:rdma_port_symbol_errors:sum1h > {}", 1},
			{"RDMALinkErrors", "port:rdma_port_symbol_errors:sum1h{%s}\" $port) }}{{ . | first | value | printf \"%.0f\" }}{{ else }}unknown{{ end }} (limit {})", 1},
		}},
		{"link-error-recoveries", "RDMALinkErrors", Count, "2", "recoveries of a link in an hour; one may follow a reseated cable", []Place{
			{"port:rdma_link_errors:warning", "port:rdma_port_link_error_recoveries:sum1h >= {}", 1},
			{"RDMALinkErrors", "unless port:rdma_port_link_error_recoveries:sum1h >= {}", 1},
			{"RDMALinkErrors", "port:rdma_port_link_error_recoveries:sum1h{%s}\" $port) }}{{ . | first | value | printf \"%.0f\" }}{{ else }}unknown{{ end }} (limit {-1})", 1},
		}},
		{"receive-errors", "RDMALinkErrors", Count, "120", "packets in an hour that this link damaged", []Place{
			{"port:rdma_link_errors:warning", "port:rdma_port_receive_errors_local:sum1h > {}", 1},
			{"RDMALinkErrors", "unless port:rdma_port_receive_errors_local:sum1h > {}", 1},
			{"RDMALinkErrors", "port:rdma_port_receive_errors_local:sum1h{%s}\" $port) }}{{ . | first | value | printf \"%.0f\" }}{{ else }}unknown{{ end }} (limit {})", 1},
		}},
		{"remote-errors", "RDMALinkErrors", Count, "120", "packets in an hour that arrived marked bad: another link damaged them (info)", []Place{
			{"RDMALinkErrors", "port:rdma_port_receive_remote_physical_errors:sum1h > {}", 1},
			{"RDMALinkErrors", "already marked bad (limit {})", 1},
		}},
		{"fec-windows", "RDMALinkErrors", Count, "2", "of the last three 10 minutes, those with blocks that FEC could not correct", []Place{
			{"port:rdma_link_errors:warning", "port:rdma_port_fec_uncorrectable_blocks:windows30m >= {}", 1},
			{"RDMALinkErrors", "unless port:rdma_port_fec_uncorrectable_blocks:windows30m >= {}", 1},
			{"RDMALinkErrors", "of the last three 10 minutes (limit {-1})", 1},
		}},
		{"transmit-discards", "RDMATransmitDiscards", Count, "120", "packets that an InfiniBand port dropped in an hour", []Place{
			{"port:rdma_transmit_discards:warning", "port:rdma_port_transmit_discards:sum1h > {}", 1},
			{"RDMATransmitDiscards", "packets in the last hour (limit {})", 1},
		}},
		{"link-integrity-events", "RDMALinkIntegrity", Count, "2", "events of either counter in an hour; a healthy link has none", []Place{
			{"port:rdma_link_integrity:warning", "port:rdma_port_local_link_integrity_errors:sum1h >= {}", 1},
			{"port:rdma_link_integrity:warning", "port:rdma_port_excessive_buffer_overrun_errors:sum1h >= {}", 1},
			{"RDMALinkIntegrity", "(limit {-1})", 2},
		}},
		{"link-rate-ratio", "RDMALinkDownshifted", Ratio, "0.99", "of the expected rate; 1 % is what drivers round", []Place{
			{"port:rdma_port_rate:short", "< {}", 1},
		}},
		{"aer-correctable", "RDMAPCIeErrors", Count, "150", "errors in 15 minutes that PCIe corrected; ten a minute cost throughput", []Place{
			{"RDMAPCIeErrors", "device:rdma_pcie_aer_correctable:increase15m > {}", 1},
			{"RDMAPCIeErrors", "gpu:rdma_pcie_aer_correctable:increase15m > {}", 1},
		}},
		{"transceiver-hot-celsius", "RDMATransceiverHot", Number, "70", "of a module without thresholds of its own (info); others have theirs", []Place{
			{"RDMATransceiverHot", "(rdma_transceiver_temperature_celsius) > {}", 1},
			{"RDMATransceiverHot", "above {} °C, and has no limits", 1},
		}},
		{"lane-dark-dbm", "RDMATransceiverLaneDark", Number, "-30", "power of a lane without light; modules report -30 to -40 dBm for none", []Place{
			{"port:rdma_transceiver_power:dark", "lane:rdma_transceiver_power:judged <= {})", 1},
		}},
		{"lane-imbalance-db", "RDMATransceiverLaneImbalance", Number, "3", "between the lanes of a module: one has half of the other's power", []Place{
			{"RDMATransceiverLaneImbalance", "      > {}", 1},
		}},
		{"storm-source-ratio", "RDMAPFCStormSource", Ratio, "0.5", "time that a port pauses its switch; a slow receiver stays below", []Place{
			{"port:rdma_pfc_storm_source:critical", `port:rdma_port_pfc_paused:ratio{direction="transmit"} > {}`, 1},
			{"RDMAPFCStormSource", "{{ $labels.priority }} (limit {%})", 1},
		}},
		{"storm-source-received", "RDMAPFCStormSource", Ratio, "0.01", "of line rate that a storm source receives less than, a slow receiver more", []Place{
			{"port:rdma_pfc_storm_source:critical", "port:rdma_port_pfc_received:ratio < {}", 1},
			{"port:rdma_slow_receiver:warning", "port:rdma_port_pfc_received:ratio >= {}", 1},
			{"RDMAPFCStormSource", "of its rate there (limit {%})", 1},
		}},
		{"slow-receiver-ratio", "RDMASlowReceiver", Ratio, "0.1", "time that a receiving port pauses its switch", []Place{
			{"port:rdma_slow_receiver:warning", `port:rdma_port_pfc_paused:ratio{direction="transmit"} > {}`, 1},
			{"RDMASlowReceiver", "{{ $labels.priority }} (limit {%})", 1},
		}},
		{"storm-victim-ratio", "RDMAPFCStormVictim", Ratio, "0.9", "time that the switch pauses a port: no job progresses", []Place{
			{"port:rdma_pfc_storm_victim:critical", `port:rdma_port_pfc_paused:ratio{direction="receive"} > {}`, 1},
			{"RDMAPFCStormVictim", `port:rdma_port_pfc_paused:ratio{direction="receive"} > {}`, 1},
			{"RDMAPFCStormVictim", "by its switch (limit {%})", 1},
		}},
		{"paused-ratio", "RDMAPFCStormVictim", Ratio, "0.3", "time that the switch pauses a port, from where on it is worth knowing (info)", []Place{
			{"RDMAPFCStormVictim", `port:rdma_port_pfc_paused:ratio{direction="receive"} > {}`, 1},
			{"RDMAPFCStormVictim", "by its switch (limit {%})", 1},
		}},
		{"short-storms-ratio", "RDMAPFCShortStorms", Ratio, "0.05", "of 5 minutes in seconds that were paused for more than half", []Place{
			{"port:rdma_pfc_short_storms:warning", "port:rdma_port_pfc_stalled:ratio > {}", 1},
			{"port:rdma_pfc_short_storms:warning", "port:rdma_port_pfc_stalled:ratio offset 1m > {}", 1},
			{"RDMAPFCShortStorms", "(limit {%})", 1},
		}},
		{"lossy-traffic-ratio", "RDMATrafficOnLossyPriority", Ratio, "0.05", "of line rate on priorities without PFC; management traffic stays below", []Place{
			{"port:rdma_traffic_on_lossy_priority:warning", "port:rdma_port_priority_transmitted:ratio > {}", 1},
			{"port:rdma_traffic_on_lossy_priority:warning", "port:rdma_port_rdma_lossy:ratio > {}", 1},
			{"RDMATrafficOnLossyPriority", "(limits {%})", 1},
		}},
		{"congestion-ratio", "RDMACongestion", Ratio, "0.01", "congestion notifications for each packet sent", []Place{
			{"RDMACongestion", "port:rdma_port_cnp_handled:ratio > {}", 1},
			{"RDMACongestion", "(limit {%})", 1},
		}},
		{"retransmission-ratio", "RDMARetransmissions", Number, "1e-4", "retransmission events for each packet sent; one in 10,000 costs throughput", []Place{
			{"port:rdma_retransmissions:warning", "port:rdma_port_retransmissions:ratio > {}", 1},
			{"RDMARetransmissions", "(limit {})", 1},
		}},
		{"retries-windows", "RDMARetriesExceeded", Count, "3", "of the last six 5 minutes, those in which retries were exceeded (warning); a killed job has one", []Place{
			{"port:rdma_retries_exceeded:warning", "increase5m[30m:5m])) >= {}", 1},
			{"RDMARetriesExceeded", "of the last 6 times 5 minutes (limit {})", 1},
		}},
		{"peers-unreachable-hosts", "RDMAPeersUnreachable", Count, "10", "hosts; fewer have alerts of their own", []Place{
			{"RDMAPeersUnreachable", "job:rdma_port_retries_exceeded:hosts >= {}", 4},
			{"RDMAPeersUnreachable", "{{ end }} (limit {})", 1},
		}},
		{"fleet-hosts", "RDMALinksSlowerThanFleet", Count, "10", "hosts of a kind; below that there is no fleet to compare with", []Place{
			{"RDMALinksSlowerThanFleet", "(port:rdma_port_rate:fleet)) >= {}", 1},
		}},
		{"fleet-rate-ratio", "RDMALinksSlowerThanFleet", Ratio, "0.99", "of the median rate; 1 % is what drivers round", []Place{
			{"RDMALinksSlowerThanFleet", "{} * quantile by (cluster, job, board_id, link_layer, role)", 1},
		}},
		{"switch-hosts", "RDMASwitchPortsDown", Count, "3", "hosts with a port down at one switch; two cables may be pulled at once", []Place{
			{"RDMASwitchPortsDown", ") >= {}", 1},
		}},
		{"fabric-symbol-errors", "RDMAFabricLinkErrors", Count, "120", "symbol errors of a link's end in an hour, as symbol-errors", []Place{
			{"RDMAFabricLinkErrors", "rdma_fabric_port_symbol_errors_total[1h])) > {}", 1},
			{"RDMAFabricLinkErrors", "symbol errors (limit {})", 1},
		}},
		{"fabric-flaps", "RDMAFabricLinkFlapping", Count, "3", "losses of a link in an hour, as flaps-per-hour", []Place{
			{"RDMAFabricLinkFlapping", "rdma_fabric_port_link_downed_total[1h])) >= {}", 1},
		}},
	}
}

// change is a threshold with the value that is asked for, in the form of its default.
type change struct {
	Threshold
	value string
}

func changeOf(name, value string) (change, error) {
	all := Thresholds()
	i := slices.IndexFunc(all, func(t Threshold) bool { return t.Name == name })
	if i < 0 {
		var known []string
		for _, t := range all {
			known = append(known, t.Name)
		}
		return change{}, &Unknown{"threshold", name, known}
	}
	v, err := all[i].Unit.parse(strings.TrimSpace(value))
	if err != nil {
		return change{}, fmt.Errorf("threshold %s=%s: %w", name, value, err)
	}
	return change{all[i], v}, nil
}

var duration = regexp.MustCompile(`^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$`)

// parse gives a value as the rules write it.
func (u Unit) parse(s string) (string, error) {
	if u == Duration {
		if s == "" || !duration.MatchString(s) {
			return "", errors.New("has to be a duration such as 2m or 1h30m")
		}
		return s, nil
	}
	percent := u == Ratio && strings.HasSuffix(s, "%")
	v, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
	if percent {
		v /= 100
	}
	switch {
	case err != nil && !percent, math.IsNaN(v), math.IsInf(v, 0):
		return "", errors.New("has to be a number")
	case u == Count && (v < 1 || v != math.Trunc(v) || v > 1e9):
		return "", errors.New("has to be a whole number, 1 or more")
	case u == Ratio && (v <= 0 || v > 1):
		return "", errors.New("has to be above 0 and at most 1, or a percentage")
	}
	return number(v), nil
}

// number is a value as PromQL reads it, without digits that arithmetic has made.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// with is the text of a place with a value.
func (p Place) with(value string) string {
	v, err := strconv.ParseFloat(value, 64)
	if err != nil { // a duration
		return strings.ReplaceAll(p.Text, "{}", value)
	}
	return strings.NewReplacer("{}", value, "{%}", number(v*100)+"%", "{-1}", number(v-1)).Replace(p.Text)
}

// apply writes the value into a rule, and that it was.
func (c change) apply(r *rule) {
	if c.value == c.Default {
		return
	}
	before := r.text
	for _, p := range c.Places {
		if p.Rule != r.name {
			continue
		}
		old, now := p.with(c.Default), p.with(c.value)
		if p.Text == forText {
			old, now = "\n        "+old+"\n", "\n        "+now+"\n"
		}
		r.text = strings.ReplaceAll(r.text, old, now)
	}
	if r.text != before {
		r.lead += fmt.Sprintf("      # %s is %s, as shipped %s.\n", c.Name, c.value, c.Default)
	}
}

// ThresholdsJSON is the table for those that cannot run this code: the Helm chart and the mixin.
func ThresholdsJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // it is read by people, too
	e.SetIndent("", "  ")
	if err := e.Encode(Thresholds()); err != nil {
		return nil, fmt.Errorf("write thresholds: %w", err)
	}
	return b.Bytes(), nil
}
