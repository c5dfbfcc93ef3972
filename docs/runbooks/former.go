package runbooks

import (
	"maps"
	"slices"
)

// Current is what the alert of a former name is now.
type Current struct {
	Alert string
	// Reason is its label reason, and a section of its runbook. Empty: none, or several.
	Reason string
}

// former has the names that alerts no longer have: silences, links and habits still do. A name that is renamed again
// is changed in all lines.
var former = map[string]Current{
	// One alert on the exporter, with a reason for each of its parts.
	"RDMAAlertStoreDegraded":   {"RDMAExporterDegraded", "store"},
	"RDMACollectorFailing":     {"RDMAExporterDegraded", "collector"},
	"RDMAExporterCPUStarved":   {"RDMAExporterDegraded", "cpu"},
	"RDMAExporterLimitReached": {"RDMAExporterDegraded", "limit"},
	"RDMAGPUMonitoringPaused":  {"RDMAExporterDegraded", "gpus_paused"},
	"RDMAGPUsReleased":         {"RDMAExporterDegraded", "gpus_released"},
	"RDMANotificationsDropped": {"RDMAExporterDegraded", "notifications"},
	"RDMAPortUnreadable":       {"RDMAExporterDegraded", "port"},
	"RDMAReloadFailed":         {"RDMAExporterDegraded", "reload"},
	"RDMAStateNotWritten":      {"RDMAExporterDegraded", "state"},

	// One alert on settings of ports, of hosts, on modules, links that get worse, jobs without GPUDirect.
	"RDMAACSRedirect":                {"RDMAHostMisconfigured", "acs"},
	"RDMAAddressConflict":            {"RDMAPortMisconfigured", "address"},
	"RDMACongestionNotificationOff":  {"RDMAPortMisconfigured", "congestion_notification"},
	"RDMADeviceRenamed":              {"RDMAHostMisconfigured", "renamed"},
	"RDMADriverMismatch":             {"RDMAHostMisconfigured", "driver"},
	"RDMAFirmwareDrift":              {"RDMAHostMisconfigured", "firmware"},
	"RDMAGlobalPauseInsteadOfPFC":    {"RDMAPortMisconfigured", "global_pause"},
	"RDMAIOMMUTranslating":           {"RDMAHostMisconfigured", "iommu"},
	"RDMAIPoIBDown":                  {"RDMAPortMisconfigured", "ipoib"},
	"RDMAJobGIDMismatch":             {"RDMAPortMisconfigured", "job_gid"},
	"RDMALinkBERRising":              {"RDMALinkWearing", "ber"},
	"RDMALinkLayerDiffers":           {"RDMAPortMisconfigured", "link_layer"},
	"RDMALockedMemoryLow":            {"RDMAHostMisconfigured", "locked_memory"},
	"RDMAMTUMismatch":                {"RDMAPortMisconfigured", "mtu"},
	"RDMANICMisplaced":               {"RDMAHostMisconfigured", "nic_place"},
	"RDMANUMAMisplaced":              {"RDMAHostMisconfigured", "numa"},
	"RDMAOpticsDrift":                {"RDMALinkWearing", "optics"},
	"RDMAPCIeSettings":               {"RDMAHostMisconfigured", "pcie_settings"},
	"RDMAPKeyMissing":                {"RDMAPortMisconfigured", "pkey"},
	"RDMARoCEMTULow":                 {"RDMAPortMisconfigured", "roce_mtu"},
	"RDMARoCEv2GIDMissing":           {"RDMAPortMisconfigured", "roce_v2_gid"},
	"RDMASubnetManagerChanging":      {"RDMASubnetManagerUnstable", "changing"},
	"RDMASubnetManagerOnComputeHost": {"RDMAHostMisconfigured", "subnet_manager"},
	"RDMATransceiverBias":            {"RDMATransceiverOutOfRange", "bias"},
	"RDMATransceiverCold":            {"RDMATransceiverOutOfRange", "cold"},
	"RDMATransceiverLaneImbalance":   {"RDMATransceiverOutOfRange", "lane_imbalance"},
	"RDMATransceiverPowerHigh":       {"RDMATransceiverOutOfRange", "power_high"},
	"RDMATransceiverPowerLow":        {"RDMATransceiverOutOfRange", "power_low"},
	"RDMATransceiverUnreadable":      {"RDMATransceiverFault", "unreadable"},
	"RDMATransceiverVoltage":         {"RDMATransceiverOutOfRange", "voltage"},
	"RDMATransportFallback":          {"RDMAGPUDirectStaging", "sockets"},

	// One alert on ports that are down, devices, links, PCIe.
	"RDMABondMemberDown":        {"RDMAPortDown", "bond_member"},
	"RDMABondMemberDownshifted": {"RDMALinkDegraded", "bond_member"},
	"RDMACommandTimeouts":       {"RDMADeviceFailed", "command_timeout"},
	"RDMADeviceFirmwareError":   {"RDMADeviceFailed", "firmware"},
	"RDMAGPULost":               {"RDMADeviceMissing", "gone"},
	"RDMAIOMMUFault":            {"RDMAPCIeErrors", "iommu"},
	"RDMALaneBERHigh":           {"RDMALinkErrors", "lane"},
	"RDMALinkBERHigh":           {"RDMALinkErrors", "ber"},
	"RDMALinkDownshifted":       {"RDMALinkDegraded", "rate"},
	"RDMALinkIntegrity":         {"RDMALinkErrors", "integrity"},
	"RDMALinkSymbolErrors":      {"RDMALinkErrors", "symbols"},
	"RDMALinkUnstable":          {"RDMALinkFlapping", "day"},
	"RDMALinkWidthDegraded":     {"RDMALinkDegraded", "width"},
	"RDMALinksSlowerThanFleet":  {"RDMALinkDegraded", "fleet"},
	"RDMAPCIeLimitsPort":        {"RDMAPCIeDegraded", "slot"},
	"RDMAPlaneDegraded":         {"RDMAPortDown", "plane"},
	"RDMAReadStuck":             {"RDMADeviceFailed", "unresponsive"},
	"RDMAStackNotLoaded":        {"RDMADeviceMissing", "stack"},
	"RDMASwitchPortsDown":       {"RDMAPortDown", ""},
	"RDMATransmitTimeout":       {"RDMADeviceFailed", "transmit_timeout"},
	"RDMAVerbsNodeMissing":      {"RDMADeviceMissing", "verbs_node"},

	// One alert on transport, subnet managers, jobs, fabric links.
	"RDMAFabricBERHigh":                {"RDMAFabricLinkErrors", "ber"},
	"RDMAFabricLinkFlapping":           {"RDMAFabricLinkDegraded", "flapping"},
	"RDMAFabricLinkGone":               {"RDMAFabricLinkDegraded", "gone"},
	"RDMAFabricLinkMaintenance":        {"RDMAMaintenance", "link"},
	"RDMAFabricNoStandbySubnetManager": {"RDMASubnetManagerUnstable", "no_standby"},
	"RDMAFabricNoSubnetManager":        {"RDMANoSubnetManager", "fabric"},
	"RDMAFabricPartlySeen":             {"RDMAFabricUnseen", "part"},
	"RDMAFabricPortCounters":           {"RDMAFabricLinkErrors", "counters"},
	"RDMAFabricReceiveErrors":          {"RDMAFabricLinkErrors", "receive"},
	"RDMAFabricSubnetManagerHangs":     {"RDMANoSubnetManager", "hangs"},
	"RDMAFabricSymbolErrors":           {"RDMAFabricLinkErrors", "symbols"},
	"RDMAFleetFirmwareDrift":           {"RDMAFleetDrift", "versions"},
	"RDMAHostMaintenance":              {"RDMAMaintenance", "host"},
	"RDMAJobDegraded":                  {"RDMAJobSlow", "degraded"},
	"RDMALosslessPriorityDiscards":     {"RDMADiscards", "lossless_priority"},
	"RDMAPFCShortStorms":               {"RDMAPFCStormSource", "short_storms"},
	"RDMAPFCWatchdogFired":             {"RDMAPFCStormSource", "watchdog"},
	"RDMAPeersUnreachable":             {"RDMARetriesExceeded", "peers"},
	"RDMAPortNoSubnetManager":          {"RDMANoSubnetManager", "port"},
	"RDMAPortStraggler":                {"RDMAJobSlow", "straggler"},
	"RDMASwitchPausesHosts":            {"RDMAPFCStormVictim", "paused"},
	"RDMATargetsMissing":               {"RDMAExporterDown", "missing"},
	"RDMATransceiverLaneDark":          {"RDMATransceiverOutOfRange", "lane_dark"},
	"RDMATransmitDiscards":             {"RDMADiscards", "transmit"},
}

// FormerNames returns the names that alerts no longer have, sorted.
func FormerNames() []string { return slices.Sorted(maps.Keys(former)) }

// Former returns the current alert for a former name; false if the name is not a former one.
func Former(name string) (Current, bool) {
	c, ok := former[name]
	return c, ok
}

// String returns the alert with its reason: "RDMAExporterDegraded, reason cpu".
func (c Current) String() string {
	if c.Reason == "" {
		return c.Alert
	}
	return c.Alert + ", reason " + c.Reason
}

// Anchor returns the section of the reason in the runbook, "#cpu"; empty without a reason. The heading is the reason
// itself.
func (c Current) Anchor() string {
	if c.Reason == "" {
		return ""
	}
	return "#" + c.Reason
}
