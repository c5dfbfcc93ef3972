package tune

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/lazy"
)

// Unit is the unit of a threshold.
type Unit string

const (
	Duration Unit = "duration" // 2m
	Ratio    Unit = "ratio"    // 0.5, or 50%
	Count    Unit = "count"    // a whole number, 1 or more
	Number   Unit = "number"   // in the unit of the metric
)

// Threshold is a constant of the rules that can be tuned.
type Threshold struct {
	Name    string  `json:"name"`
	Alert   string  `json:"alert"` // that it belongs to
	Unit    Unit    `json:"unit"`
	Default string  `json:"default"`
	Why     string  `json:"why"`
	Places  []Place `json:"places"`
}

// Place is a use of a threshold: the text around it in a rule, on one line. {} is the value, {%} the value as a
// percentage, {-1} the value minus 1 (a limit that is exceeded); "for: {}" is the key of the rule.
type Place struct {
	Rule  string `json:"rule"` // name of the alert, in all its severities, or of the recording rule
	Text  string `json:"text"`
	Times int    `json:"times"` // occurrences
}

const forText = "for: {}"

// waits is a threshold that is an alert's `for`, in so many of its severities.
func waits(name, alert, value string, times int, why string) Threshold {
	return Threshold{name, alert, Duration, value, why, []Place{{alert, forText, times}}}
}

// ratio is a threshold, a ratio, that one rule has once.
func ratio(name, alert, value, rule, text, why string) Threshold {
	return Threshold{name, alert, Ratio, value, why, []Place{{rule, text, 1}}}
}

// Thresholds are all thresholds, in the order of the documentation.
func Thresholds() []Threshold {
	return []Threshold{
		waits("port-down-for", "RDMAPortDown", "2m", 7, "a driver restart or a link retraining takes seconds, a switch's line card under a minute"),
		waits("plane-degraded-for", "RDMAPlaneDegraded", "2m", 2, "as for a port"),
		waits("no-subnet-manager-for", "RDMAPortNoSubnetManager", "5m", 1, "a subnet manager sweeps a large fabric within a few minutes after a reboot or failover"),
		waits("device-missing-for", "RDMADeviceMissing", "5m", 2, "a firmware reset takes one minute, a driver reload two"),
		waits("stack-not-loaded-for", "RDMAStackNotLoaded", "5m", 2, "in addition to 25m after boot for loading the drivers"),
		waits("read-stuck-for", "RDMAReadStuck", "2m", 4, "firmware commands time out after 60s, and one may be queued"),
		waits("firmware-error-for", "RDMADeviceFirmwareError", "1m", 2, "a recovery that succeeds takes seconds to a minute (critical)"),
		waits("link-width-for", "RDMALinkWidthDegraded", "5m", 4, "a link may come up degraded and retrain"),
		waits("link-rate-for", "RDMALinkDownshifted", "5m", 4, "a link may come up degraded and retrain"),
		waits("pcie-degraded-for", "RDMAPCIeDegraded", "10m", 6, "a link is degraded for a moment while it retrains after a reset"),
		waits("transceiver-hot-for", "RDMATransceiverHot", "5m", 5, "a change of fan speed affects the temperature for one or two minutes"),
		waits("storm-source-for", "RDMAPFCStormSource", "1m", 2, "firmware recovers within seconds, if at all"),
		waits("storm-victim-for", "RDMAPFCStormVictim", "2m", 2, "PFC watchdogs of switches act within seconds (critical)"),
		waits("slow-receiver-for", "RDMASlowReceiver", "5m", 2, "a checkpoint takes less"),
		waits("retransmissions-for", "RDMARetransmissions", "10m", 2, "a link flap is over sooner"),
		waits("congestion-for", "RDMACongestion", "15m", 1, "shorter congestion is handled by congestion control"),
		waits("gpudirect-for", "RDMAGPUDirectUnavailable", "5m", 1, "drivers are loaded sequentially"),
		waits("exporter-down-for", "RDMAExporterDown", "5m", 1, "a restart or an upgrade of the exporter takes seconds"),
		waits("fabric-switch-for", "RDMAFabricSwitchUnreachable", "3m", 1, "a switch restarts in less time"),
		waits("fabric-link-gone-for", "RDMAFabricLinkGone", "30m", 1, "a host or its rack is rebooted"),
		waits("fabric-no-subnet-manager-for", "RDMAFabricNoSubnetManager", "3m", 1, "a standby takes over within one minute"),
		waits("switch-ports-down-for", "RDMASwitchPortsDown", "2m", 1, "as for a port"),

		{"flaps-per-hour", "RDMALinkFlapping", Count, "3", "one link loss is a touched cable or a switch restart, a second one its repair; three are a bad link", []Place{
			{"port:rdma_link_flapping:warning", "port:rdma_port_link_losses:count1h >= {}", 1},
			{"RDMALinkFlapping", `count1h{%s}) >= {}"`, 2},
			{"RDMALinkFlapping", `count1h{%s} >= {})"`, 1},
			{"RDMALinkFlapping", `(limit {-1})`, 2},
			{"RDMALinkFlapping", `limit: "{-1}"`, 1},
		}},
		{"flaps-per-day", "RDMALinkUnstable", Count, "10", "a job of several days is hit by each of them", []Place{
			{"RDMALinkUnstable", "count1h[1d:1h])) >= {}", 1},
			{"RDMALinkUnstable", `(limit {-1})`, 3},
			{"RDMALinkUnstable", `limit: "{-1}"`, 1},
		}},
		{"symbol-errors", "RDMALinkErrors", Count, "120", "in 1h; InfiniBand specifies a bit error rate of 1e-12 or better", []Place{
			{"port:rdma_link_errors:warning", "port:rdma_port_symbol_errors:sum1h > {}", 1},
			{"RDMALinkErrors", "unless port:rdma_port_symbol_errors:sum1h > {}", 1},
			{"RDMALinkErrors", `{{- $symbol := {} -}}`, 1},
			{"RDMALinkErrors", `port:rdma_port_symbol_errors:sum1h{%s} > {}`, 3},
			{"RDMALinkErrors", `symbol errors in 1h (limit {})`, 2},
			{"RDMALinkErrors", `port:rdma_port_symbol_errors:sum1h{%s}" $port) }}{{ . | first | value | printf "%.0f" }}{{ else }}unknown{{ end }} in 1h (limit {})`, 1},
		}},
		{"symbol-errors-least", "RDMALinkSymbolErrors", Count, "3", "in 12m or 125m, also where the rates below allow fewer; a single one is no fault", []Place{
			{"port:rdma_link_symbol_errors:limit12m", "0.01), {})", 1},
			{"port:rdma_link_symbol_errors:limit125m", "0.01), {})", 1},
		}},
		ratio("symbol-error-rate-12m", "RDMALinkSymbolErrors", "1e-14", "port:rdma_link_symbol_errors:limit12m", "720 * {},", "symbol errors per bit in 12m; published criterion of UFM to isolate a port"),
		ratio("symbol-error-rate-125m", "RDMALinkSymbolErrors", "1e-15", "port:rdma_link_symbol_errors:limit125m", "7500 * {},", "symbol errors per bit in 125m; published criterion of UFM to isolate a port"),
		ratio("raw-ber-ndr-copper-plr", "RDMALinkBERHigh", "1e-06", "port:rdma_link_raw_ber:error_limit", `{} * port:rdma_link_kind:info{generation="7nm",speed="NDR",mode=~".*PLR",medium="copper"}`, "errors before FEC per bit for 1h, half of it for 15m (info): NDR over copper with PLR, which also repairs"),
		ratio("raw-ber-ndr-copper", "RDMALinkBERHigh", "1e-07", "port:rdma_link_raw_ber:error_limit", `{} * port:rdma_link_kind:info{generation="7nm",speed="NDR",mode="RS(544,514)",medium="copper"}`, "errors before FEC per bit for 1h, half of it for 15m (info): NDR over copper with RS(544,514) alone"),
		ratio("raw-ber-ndr-active", "RDMALinkBERHigh", "1e-05", "port:rdma_link_raw_ber:error_limit", `{} * port:rdma_link_kind:info{generation="7nm",speed="NDR",medium="active"}`, "errors before FEC per bit for 1h, half of it for 15m (info): NDR over active cables and transceivers"),
		ratio("raw-ber-hdr-7nm", "RDMALinkBERHigh", "1e-07", "port:rdma_link_raw_ber:error_limit", `{} * port:rdma_link_kind:info{generation="7nm",speed="HDR"}`, "errors before FEC per bit for 1h, half of it for 15m (info): HDR of ConnectX-7"),
		ratio("raw-ber-hdr-16nm", "RDMALinkBERHigh", "1e-05", "port:rdma_link_raw_ber:error_limit", `{} * port:rdma_link_kind:info{generation="16nm",speed="HDR"}`, "errors before FEC per bit for 1h, half of it for 15m (info): HDR of ConnectX-6"),
		ratio("raw-ber-edr-7nm", "RDMALinkBERHigh", "1e-12", "port:rdma_link_raw_ber:error_limit", `{} * port:rdma_link_kind:info{generation="7nm",speed="EDR",mode=~"RS.(528|271).*"}`, "errors before FEC per bit for 1h, half of it for 15m (info): EDR of ConnectX-7 with RS-FEC"),
		ratio("raw-ber-edr-16nm-rs528", "RDMALinkBERHigh", "1e-09", "port:rdma_link_raw_ber:error_limit", `{} * port:rdma_link_kind:info{generation="16nm",speed="EDR",mode="RS(528,514)"}`, "errors before FEC per bit for 1h, half of it for 15m (info): EDR of ConnectX-6 with RS(528,514)"),
		ratio("raw-ber-edr-16nm-rs271", "RDMALinkBERHigh", "1e-12", "port:rdma_link_raw_ber:error_limit", `{} * port:rdma_link_kind:info{generation="16nm",speed="EDR",mode="RS(271,257)"}`, "errors before FEC per bit for 1h, half of it for 15m (info): EDR of ConnectX-6 with RS(271,257)"),
		{"raw-ber-rs544", "RDMALinkBERHigh", Ratio, "2.4e-06", "errors before FEC per bit (info) where no row applies: two decades below what RS(544,514) carries", []Place{
			{"port:rdma_link_raw_ber:warning_limit", "{} * max by", 2},
		}},
		ratio("raw-ber-rs528", "RDMALinkBERHigh", "2e-07", "port:rdma_link_raw_ber:warning_limit", "or {} * max by", "errors before FEC per bit (info) where no row applies: two decades below what RS(528,514) carries"),
		ratio("effective-ber-ndr", "RDMALinkBERHigh", "1e-11", "port:rdma_link_effective_ber:error_limit", "{} * port:rdma_link_kind:info{speed=", "errors after FEC and before PLR per bit in 1h, half of it for info: NDR with PLR"),
		ratio("effective-ber", "RDMALinkBERHigh", "1e-13", "port:rdma_link_effective_ber:error_limit", "or {} * port:rdma_link_kind:info", "errors after FEC per bit in 1h, half of it for info: other InfiniBand links"),
		{"lane-raw-ber", "RDMALaneBERHigh", Ratio, "1e-08", "errors before FEC per bit of a lane; links with PAM4 warn above it", []Place{
			{"port:rdma_link_lane_raw_ber:high", "port:rdma_link_lane_raw_ber:ratio10m >= {}", 1},
			{"RDMALaneBERHigh", "limit {} and", 1},
			{"RDMALaneBERHigh", ", {})\" $lanes", 1},
			{"RDMALaneBERHigh", ", {})\" $port $end", 1},
		}},
		{"lane-raw-ber-factor", "RDMALaneBERHigh", Count, "100", "times the median lane; lanes of a link share age, temperature and dirt", []Place{
			{"port:rdma_link_lane_raw_ber:high", "{} * quantile", 1},
			{"RDMALaneBERHigh", "{} times the median lane", 1},
			{"RDMALaneBERHigh", "clamp_min({} * quantile", 2},
		}},
		{"link-error-recoveries", "RDMALinkErrors", Count, "2", "in 1h; a good link may retrain once", []Place{
			{"port:rdma_link_errors:warning", "port:rdma_port_link_error_recoveries:sum1h >= {}", 1},
			{"RDMALinkErrors", "unless port:rdma_port_link_error_recoveries:sum1h >= {}", 1},
			{"RDMALinkErrors", `{{- $recoveries := {-1} -}}`, 1},
			{"RDMALinkErrors", `port:rdma_port_link_error_recoveries:sum1h{%s} >= {}`, 3},
			{"RDMALinkErrors", `link error recoveries in 1h (limit {-1})`, 2},
			{"RDMALinkErrors", `port:rdma_port_link_error_recoveries:sum1h{%s}" $port) }}{{ . | first | value | printf "%.0f" }}{{ else }}unknown{{ end }} in 1h (limit {-1})`, 1},
		}},
		{"receive-errors", "RDMALinkErrors", Count, "120", "packets in 1h, as symbol-errors: each has at least one", []Place{
			{"port:rdma_link_errors:warning", "port:rdma_port_receive_errors_local:sum1h > {}", 1},
			{"RDMALinkErrors", "unless port:rdma_port_receive_errors_local:sum1h > {}", 1},
			{"RDMALinkErrors", `{{- $receive := {} -}}`, 1},
			{"RDMALinkErrors", `port:rdma_port_receive_errors_local:sum1h{%s} > {}`, 3},
			{"RDMALinkErrors", `receive errors in 1h (limit {})`, 2},
			{"RDMALinkErrors", `port:rdma_port_receive_errors_local:sum1h{%s}" $port) }}{{ . | first | value | printf "%.0f" }}{{ else }}unknown{{ end }} in 1h, of this link (limit {})`, 1},
		}},
		{"remote-errors", "RDMALinkErrors", Count, "120", "packets in 1h that were received marked bad, as receive-errors (info)", []Place{
			{"RDMALinkErrors", "port:rdma_port_receive_remote_physical_errors:sum1h > {}", 1},
			{"RDMALinkErrors", `another link, {{ $value | printf "%.0f" }} in 1h (limit {})`, 1},
			{"RDMALinkErrors", `already marked bad in the last hour (limit {})`, 1},
			{"RDMALinkErrors", `already marked bad in 1h (limit {})`, 1},
			{"RDMALinkErrors", `limit: "{}"`, 1},
		}},
		{"fec-windows", "RDMALinkErrors", Count, "2", "of three 10m windows, those with FEC uncorrectable blocks; a good link has none", []Place{
			{"port:rdma_link_errors:warning", "port:rdma_port_fec_uncorrectable_blocks:windows30m >= {}", 1},
			{"RDMALinkErrors", "unless port:rdma_port_fec_uncorrectable_blocks:windows30m >= {}", 1},
			{"RDMALinkErrors", `{{- $windows := {-1} -}}`, 1},
			{"RDMALinkErrors", `port:rdma_port_fec_uncorrectable_blocks:windows30m{%s} >= {}`, 3},
			{"RDMALinkErrors", `of the last three 10m windows (limit {-1})`, 3},
		}},
		{"transmit-discards", "RDMATransmitDiscards", Count, "120", "packets in 1h, as symbol-errors; a killed job discards a few", []Place{
			{"port:rdma_transmit_discards:warning", "port:rdma_port_transmit_discards:sum1h > {}", 1},
			{"RDMATransmitDiscards", "packets in the last hour (limit {})", 1},
			{"RDMATransmitDiscards", "in 1h (limit {})", 2},
			{"RDMATransmitDiscards", "            {} packets", 1},
		}},
		{"link-integrity-events", "RDMALinkIntegrity", Count, "2", "in 1h, of either counter; a good link may have one", []Place{
			{"port:rdma_link_integrity:warning", "port:rdma_port_local_link_integrity_errors:sum1h >= {}", 1},
			{"port:rdma_link_integrity:warning", "port:rdma_port_excessive_buffer_overrun_errors:sum1h >= {}", 1},
			{"RDMALinkIntegrity", `port:rdma_port_local_link_integrity_errors:sum1h{%s} >= {}`, 3},
			{"RDMALinkIntegrity", `(limit {-1})`, 5},
			{"RDMALinkIntegrity", `limit: "{-1}"`, 1},
		}},
		ratio("link-rate-ratio", "RDMALinkDownshifted", "0.99", "port:rdma_port_rate:short", "< {}", "of the expected rate: both come from the same table of rates"),
		{"aer-correctable", "RDMAPCIeErrors", Count, "150", "in 15m: ten per minute", []Place{
			{"device:rdma_pcie_errors:warning", "device:rdma_pcie_aer_correctable:increase15m > {}", 1},
			{"RDMAPCIeErrors", "gpu:rdma_pcie_aer_correctable:increase15m > {}", 1},
			{"RDMAPCIeErrors", `$limitOfGPU := "{}"`, 4},
			{"RDMAPCIeErrors", `correctable in 15m (limit {})`, 2},
			{"RDMAPCIeErrors", `Limits: {} correctable errors`, 1},
			{"RDMAPCIeErrors", `{{ else }}{}{{ end }}`, 1},
		}},
		{"transceiver-hot-celsius", "RDMATransceiverHot", Number, "70", "of a transceiver without thresholds; they are specified for 0 to 70 °C (info)", []Place{
			{"RDMATransceiverHot", "(rdma_transceiver_temperature_celsius) > {}", 1},
			{"RDMATransceiverHot", "{} °C", 3},
		}},
		{"lane-dark-dbm", "RDMATransceiverLaneDark", Number, "-30", "0.001 mW: all receivers of these links need at least 20 times as much", []Place{
			{"port:rdma_transceiver_power:dark", "lane:rdma_transceiver_power:judged <= {})", 1},
			{"RDMATransceiverLaneDark", "(limit {} dBm)", 2},
			{"RDMATransceiverLaneDark", "}}{} dBm{{ end }}", 1},
		}},
		{"storm-source-ratio", "RDMAPFCStormSource", Ratio, "0.5", "of the time that a port sends PFC pause; a slow receiver still receives packets", []Place{
			{"port:rdma_pfc_storm_source:critical", `port:rdma_port_pfc_paused:ratio{direction="transmit"} > {}`, 1},
			{"RDMAPFCStormSource", `of last 90s (limit {%})`, 3},
			{"RDMAPFCStormSource", `limit: "{%}"`, 1},
		}},
		{"storm-source-received", "RDMAPFCStormSource", Ratio, "0.01", "of line rate: a storm source receives less, a slow receiver more", []Place{
			{"port:rdma_pfc_storm_source:critical", "port:rdma_port_pfc_received:ratio < {}", 1},
			{"port:rdma_slow_receiver:warning", "port:rdma_port_pfc_received:ratio >= {}", 1},
			{"RDMAPFCStormSource", `< {%} of line rate`, 2},
			{"RDMAPFCStormSource", `of line rate (limit {%})`, 1},
		}},
		{"slow-receiver-ratio", "RDMASlowReceiver", Ratio, "0.1", "of the time that a port sends PFC pause: a loss of 10% affects jobs", []Place{
			{"port:rdma_slow_receiver:warning", `port:rdma_port_pfc_paused:ratio{direction="transmit"} > {}`, 1},
			{"RDMASlowReceiver", `of last 90s (limit {%})`, 3},
			{"RDMASlowReceiver", `limit: "{%}"`, 1},
		}},
		{"storm-victim-ratio", "RDMAPFCStormVictim", Ratio, "0.9", "of the time that a port receives PFC pause: jobs are stalled (critical)", []Place{
			{"port:rdma_pfc_storm_victim:critical", `port:rdma_port_pfc_paused:ratio{direction="receive"} > {}`, 1},
			{"RDMAPFCStormVictim", `of last 90s (limit {%})`, 3},
			{"RDMAPFCStormVictim", `limit: "{%}"`, 1},
		}},
		{"paused-ratio", "RDMAPFCStormVictim", Ratio, "0.3", "of the time that a port receives PFC pause (info)", []Place{
			{"port:rdma_pfc_storm_victim:info", `port:rdma_port_pfc_paused:ratio{direction="receive"} > {}`, 1},
			{"RDMAPFCStormVictim", `of last 90s (limit {%})`, 3},
			{"RDMAPFCStormVictim", `limit: "{%}"`, 1},
		}},
		{"short-storms-ratio", "RDMAPFCShortStorms", Ratio, "0.05", "of 5m: 3s per minute, which stall every collective", []Place{
			{"port:rdma_pfc_short_storms:warning", "port:rdma_port_pfc_stalled:ratio > {}", 1},
			{"port:rdma_pfc_short_storms:warning", "port:rdma_port_pfc_stalled:ratio offset 1m > {}", 1},
			{"RDMAPFCShortStorms", `of last 5m (limit {%})`, 3},
			{"RDMAPFCShortStorms", `limit: "{%}"`, 1},
		}},
		{"lossy-traffic-ratio", "RDMATrafficOnLossyPriority", Ratio, "0.05", "of line rate; a few flows without a traffic class are not a fault", []Place{
			{"port:rdma_traffic_on_lossy_priority:warning", "port:rdma_port_priority_transmitted:ratio > {}", 1},
			{"port:rdma_traffic_on_lossy_priority:warning", "port:rdma_port_rdma_lossy:ratio > {}", 1},
			{"RDMATrafficOnLossyPriority", "{%}", 5},
		}},
		{"congestion-ratio", "RDMACongestion", Ratio, "0.01", "CNPs per transmitted packet; chosen by this project, there is no standard", []Place{
			{"RDMACongestion", "port:rdma_port_cnp_handled:ratio > {}", 1},
			{"RDMACongestion", "port:rdma_port_cnp_handled:ratio{%s} > {}", 1},
			{"RDMACongestion", "{%}", 4},
		}},
		{"retransmission-ratio", "RDMARetransmissions", Ratio, "0.0001", "events per transmitted packet: a loss rate of 0.01% reduces throughput measurably", []Place{
			{"port:rdma_retransmissions:warning", "port:rdma_port_retransmissions:ratio > {}", 1},
			{"RDMARetransmissions", `ratio{%s} > {}" $port) }}{%}`, 4},
		}},
		{"retries-windows", "RDMARetriesExceeded", Count, "3", "of the last six 5m windows; a killed job has one", []Place{
			{"port:rdma_retries_exceeded:lasting", "increase5m[30m:5m])) >= {}", 1},
			{"RDMARetriesExceeded", `5m windows (limit {-1})`, 6},
			{"RDMARetriesExceeded", `limit: "{-1}"`, 2},
		}},
		{"peers-unreachable-hosts", "RDMAPeersUnreachable", Count, "10", "below that, each host has its own alert", []Place{
			{"RDMAPeersUnreachable", "job:rdma_port_retries_exceeded:hosts >= {}", 4},
			{"RDMAPeersUnreachable", "(limit {-1})", 3},
			{"RDMAPeersUnreachable", "{-1} hosts", 1},
		}},
		{"fleet-hosts", "RDMALinksSlowerThanFleet", Count, "10", "with ports of the same kind; fewer are too few to compare", []Place{
			{"RDMALinksSlowerThanFleet", "(port:rdma_port_rate:fleet)) >= {}", 1},
		}},
		ratio("fleet-rate-ratio", "RDMALinksSlowerThanFleet", "0.99", "RDMALinksSlowerThanFleet", "{} * quantile by (cluster, job, board_id, link_layer, role)", "of the median rate of ports of the same kind"),
		{"straggler-ratio", "RDMAPortStraggler", Ratio, "0.7", "of the throughput of the median port of a job, and of its own before; ports of one job differ by less than 10%", []Place{
			{"port:rdma_port_job_share:low", "< bool {}", 2},
			{"port:rdma_port_job:straggler", "< {}", 1},
			{"RDMAPortStraggler", "{%}", 4},
		}},
		{"switch-hosts", "RDMASwitchPortsDown", Count, "3", "two hosts may have a common cause other than the switch", []Place{
			{"system:rdma_port_down:hosts", ") >= {}", 1},
			{"RDMASwitchPortsDown", "(limit {-1})", 2},
			{"RDMASwitchPortsDown", "{-1} hosts", 1},
		}},
		{"fabric-symbol-errors", "RDMAFabricLinkErrors", Count, "120", "in 1h, as symbol-errors", []Place{
			{"RDMAFabricLinkErrors", "rdma_fabric_port_symbol_errors_total[1h])) > {}", 1},
			{"RDMAFabricLinkErrors", `port=%q}[1h]) > {}"`, 4},
			{"RDMAFabricLinkErrors", "in 1h (limit {})", 2},
			{"RDMAFabricLinkErrors", "{} symbol errors", 1},
		}},
		{"fabric-receive-errors", "RDMAFabricReceiveErrors", Count, "120", "packets in 1h, as receive errors of link-errors", []Place{
			{"RDMAFabricReceiveErrors", "link:rdma_fabric_receive_errors_local:increase1h > {}", 1},
			{"RDMAFabricReceiveErrors", "(limit {})", 2},
			{"RDMAFabricReceiveErrors", "{} packets", 1},
		}},
		ratio("fabric-symbol-error-rate-12m", "RDMAFabricSymbolErrors", "1e-14", "link:rdma_fabric_symbol_errors:limit12m", "720 * {},", "symbol errors per bit in 12m, as symbol-error-rate-12m"),
		ratio("fabric-symbol-error-rate-125m", "RDMAFabricSymbolErrors", "1e-15", "link:rdma_fabric_symbol_errors:limit125m", "7500 * {},", "symbol errors per bit in 125m, as symbol-error-rate-125m"),
		ratio("fabric-raw-ber-ndr", "RDMAFabricBERHigh", "1e-05", "link:rdma_fabric_raw_ber:error_limit", `{} * link:rdma_fabric_port_kind:info{speed="NDR"}`, "errors before FEC per bit for 1h, half of it for 15m (info): NDR"),
		ratio("fabric-raw-ber-hdr-7nm", "RDMAFabricBERHigh", "1e-07", "link:rdma_fabric_raw_ber:error_limit", `{} * link:rdma_fabric_port_kind:info{generation="7nm",speed="HDR"}`, "errors before FEC per bit for 1h, half of it for 15m (info): HDR of Quantum-2"),
		ratio("fabric-raw-ber-hdr", "RDMAFabricBERHigh", "1e-05", "link:rdma_fabric_raw_ber:error_limit", `{} * link:rdma_fabric_port_kind:info{speed="HDR"}`, "errors before FEC per bit for 1h, half of it for 15m (info): other HDR"),
		ratio("fabric-raw-ber-edr-7nm", "RDMAFabricBERHigh", "1e-12", "link:rdma_fabric_raw_ber:error_limit", `{} * link:rdma_fabric_port_kind:info{generation="7nm",speed="EDR",mode=~"RS.(528|271).*"}`, "errors before FEC per bit for 1h, half of it for 15m (info): EDR of Quantum-2 with RS-FEC"),
		ratio("fabric-raw-ber-edr-rs528", "RDMAFabricBERHigh", "1e-09", "link:rdma_fabric_raw_ber:error_limit", `{} * link:rdma_fabric_port_kind:info{speed="EDR",mode="RS(528,514)"}`, "errors before FEC per bit for 1h, half of it for 15m (info): other EDR with RS(528,514)"),
		ratio("fabric-raw-ber-edr-rs271", "RDMAFabricBERHigh", "1e-12", "link:rdma_fabric_raw_ber:error_limit", `{} * link:rdma_fabric_port_kind:info{speed="EDR",mode="RS(271,257)"}`, "errors before FEC per bit for 1h, half of it for 15m (info): other EDR with RS(271,257)"),
		{"fabric-transmit-discards", "RDMAFabricPortCounters", Count, "120", "packets in 1h, as for ports of hosts", []Place{
			{"link:rdma_fabric_transmit_discards:high", "> {}", 1},
			{"RDMAFabricPortCounters", "discarded on transmit in 1h (limit {})", 1},
			{"RDMAFabricPortCounters", "send within 1h (limit {})", 1},
		}},
		{"fabric-transmit-wait-ratio", "RDMAFabricPortCounters", Ratio, "0.5", "of 15m without credits on a port to a host; the steps of a job average out", []Place{
			{"link:rdma_fabric_port_counters:info", "ratio15m > {}", 1},
			{"RDMAFabricPortCounters", "15m (limit {%})", 2},
			{"RDMAFabricPortCounters", "ratio15m{%s} > {})", 1},
			{"RDMAFabricPortCounters", "for more than {%} of", 1},
		}},
		{"fabric-uplinks-ratio", "RDMAFabricOversubscribed", Ratio, "0.8", "of the remembered uplinks of a leaf switch; a single one of many is a link to repair", []Place{
			{"RDMAFabricOversubscribed", "< {} * max by", 1},
			{"RDMAFabricOversubscribed", "(limit {%})", 1},
			{"RDMAFabricOversubscribed", `"{} * max(rdma_fabric_leaf`, 1},
		}},
		{"fabric-uplink-utilisation-ratio", "RDMAFabricUplinkImbalance", Ratio, "0.5", "of its rate by the busiest uplink; below it an uneven load costs nothing", []Place{
			{"RDMAFabricUplinkImbalance", "utilisation) > {})", 1},
			{"RDMAFabricUplinkImbalance", "(limit {%} and", 1},
		}},
		{"fabric-flaps", "RDMAFabricLinkFlapping", Count, "3", "in 1h; plugging in a cable causes one or two flaps", []Place{
			{"RDMAFabricLinkFlapping", "rdma_fabric_port_link_downed_total[1h])) >= {}", 1},
			{"RDMAFabricLinkFlapping", "(limit {-1})", 3},
			{"RDMAFabricLinkFlapping", "{-1} link losses", 1},
		}},
	}
}

// change is a threshold with a new value, in the form of its default.
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

var duration = lazy.Regexp(`^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$`)

// parse returns a value as written in the rules.
func (u Unit) parse(s string) (string, error) {
	if u == Duration {
		if s == "" || !duration().MatchString(s) {
			return "", errors.New("must be a duration such as 2m or 1h30m")
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
		return "", errors.New("must be a number")
	case u == Count && (v < 1 || v != math.Trunc(v) || v > 1e9):
		return "", errors.New("must be an integer, 1 or more")
	case u == Ratio && (v <= 0 || v > 1):
		return "", errors.New("must be greater than 0 and at most 1, or a percentage")
	}
	return number(v), nil
}

// number is a value in PromQL, without rounding digits.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// with is the text of a place with a value.
func (p Place) with(value string) string {
	v, err := strconv.ParseFloat(value, 64)
	if err != nil { // a duration
		return strings.ReplaceAll(p.Text, "{}", value)
	}
	return strings.NewReplacer("{}", value, "{%}", number(v*100)+"%", "{-1}", number(v-1)).Replace(p.Text)
}

// apply sets the value in a rule, with a comment.
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
		r.lead += fmt.Sprintf("      # %s is %s, default %s.\n", c.Name, c.value, c.Default)
	}
}

// ThresholdsJSON is the table for the Helm chart and the mixin.
func ThresholdsJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // for readability
	e.SetIndent("", "  ")
	if err := e.Encode(Thresholds()); err != nil {
		return nil, fmt.Errorf("write thresholds: %w", err)
	}
	return b.Bytes(), nil
}
