package anonymise

import (
	"regexp"
	"strings"
	"sync"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/lazy"
)

// A file goes into an anonymised capture only through a form, which knows its fields. A file without a form is left
// out. Content that its form does not know is removed or becomes x. Both are named in Meta.LeftOut.

// fileForm is the form of the files with a path.
type fileForm struct {
	path    func() *regexp.Regexp // of the whole path
	inSysfs bool
	keep    keeping
}

// keeping returns the known fields of a file. Pseudonyms are assigned later, so that what is removed has none.
type keeping func(p *pseudonyms, name, text string) string

func newForm(paths string, k keeping) fileForm {
	return fileForm{wholly(paths), strings.HasPrefix(paths, "sys/"), k}
}

// wholly matches a whole text. It compiles at its first use.
func wholly(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:` + expr + `)$`) })
}

// Fields of files. A number is too short for an address.
const (
	integer      = `-?[0-9]{1,10}|0x[0-9a-f]{1,8}`
	counter      = `-?[0-9]{1,20}|0x[0-9a-f]{1,16}|N/A \(no PMA\)`
	macAddr      = `[0-9a-f]{2}(?::[0-9a-f]{2}){5}|[0-9a-f]{2}(?::[0-9a-f]{2}){19}`
	guid         = `[0-9a-f]{4}(?::[0-9a-f]{4}){3}`
	gid          = `[0-9a-f]{4}(?::[0-9a-f]{4}){7}`
	name63       = `[A-Za-z0-9_.-]{1,63}` // of an interface or device
	namesPattern = `[A-Za-z0-9_. -]{0,1000}`
	pciBDF       = `[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]`
	hexIPv4      = `[0-9A-F]{8}`
	uuid         = `[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`
	timeUTC      = `[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,18}(?:Z|[+-][0-9]{2}:[0-9]{2})`

	device = `sys/(?:devices|class|bus)/.+/` // of a PCI function or of a bus
)

// fileForms are the files that the collectors read. The first that matches a path applies.
var fileForms = []fileForm{
	// RDMA devices and ports.
	newForm(device+`(?:counters|hw_counters|statistics)/[A-Za-z0-9_.,% -]{1,64}`, keepLines(counter)),
	newForm(device+`ports/[0-9]+/(?:cap_mask|has_smi|lid|lid_mask_count|sm_lid|sm_sl|pkeys/[^/]+)`, keepLines(integer)),
	newForm(device+`ports/[0-9]+/state`, keepLines(`[0-9]: (?:NOP|DOWN|INIT|ARMED|ACTIVE|ACTIVE_DEFER)`)),
	newForm(device+`ports/[0-9]+/phys_state`, keepLines(`[0-9]{1,2}: (?:No state change|Sleep|Polling|Disabled|`+
		`PortConfigurationTraining|LinkUp|LinkErrorRecovery|Phy Test|<unknown>)`)),
	newForm(device+`ports/[0-9]+/link_layer`, keepLines(`InfiniBand|Ethernet|Unspecified|Unknown`)),
	newForm(device+`ports/[0-9]+/rate`, keepLines(`[0-9.]{1,6} Gb/sec \([0-9]{1,2}X(?: [A-Z]{1,3}(?:10)?)?\)`)),
	newForm(device+`ports/[0-9]+/gids/[^/]+`, keepLines(gid)),
	newForm(device+`ports/[0-9]+/gid_attrs/types/[^/]+`, keepLines(`IB/RoCE v1|RoCE v2`)),
	newForm(device+`(?:node_guid|sys_image_guid)`, keepLines(guid)),
	newForm(device+`node_type`, keepLines(`[0-9]: (?:CA|switch|router|RNIC|usNIC|usNIC UDP|unspecified|<unknown>)`)),
	newForm(device+`node_desc`, nodeDescription),
	newForm(device+`(?:board_id|fw_ver|hca_type|hw_rev|boardversion)`, texts(vendor)),
	newForm(device+`infiniband/[^/]+/(?:fw_pages|reg_pages|nctxts|nfreectxts)`, keepLines(integer)),
	newForm(device+`traffic_class`, keepLines(`(?:Global )?tclass=[0-9]{1,3}|`+integer)),
	newForm(device+`(?:ibdev|parent|gid_attrs/ndevs/[^/]+|bonding/(?:active_slave|slaves)|bonding_masters)|`+
		`sys/class/net/bonding_masters`, named(namesPattern)),
	newForm(device+`infiniband_mad/[^/]+/port|sys/class/infiniband_(?:mad|verbs)/abi_version`, keepLines(integer)),
	// Network interfaces.
	newForm(device+`(?:address|perm_hwaddr)`, keepLines(macAddr)),
	newForm(device+`(?:phys_switch_id|phys_port_id)`, switchID),
	newForm(device+`phys_port_name`, keepLines(`(?:c[0-9]{1,4})?(?:pf?[0-9]{1,4})?(?:[sv]f?[0-9]{1,5})*`)),
	newForm(device+`(?:carrier_changes|carrier_down_count|carrier_up_count|dev_id|dev_port|flags|ifindex|iflink|mtu|type|`+
		`link_failure_count|ecn/[^/]+/(?:cnp_802p_prio|cnp_dscp|enable/[0-9]))`, keepLines(integer+`|DMA|DMA-FQ|identity`)),
	newForm(device+`operstate`, keepLines(`unknown|notpresent|down|lowerlayerdown|testing|dormant|up`)),
	newForm(device+`mii_status`, keepLines(`up|down|going down|going back`)),
	newForm(device+`bonding_slave/state`, keepLines(`active|backup`)),
	newForm(
		device+`bonding/(?:mode|xmit_hash_policy)`,
		keepLines(`(?:balance-rr|active-backup|balance-xor|broadcast|802\.3ad|`+
			`balance-tlb|balance-alb|layer2|layer3\+4|layer2\+3|encap2\+3|encap3\+4|vlan\+srcmac) [0-6]`),
	),
	newForm(device+`net/[^/]+/mode`, keepLines(`connected|datagram`)),
	newForm(device+`qos/trust`, keepLines(`pcp|dscp|both`)),
	// PCI functions.
	newForm(device+`(?:class|device|vendor|subsystem_device|subsystem_vendor|numa_node|sriov_(?:num|total)vfs|`+
		`link/l[0-9a-z_]+_aspm|(?:current|max)_link_width)`, keepLines(integer)),
	newForm(device+`(?:current|max)_link_speed`, keepLines(`[0-9.]{1,5} GT/s(?: PCIe)?|Unknown(?: speed)?`)),
	newForm(device+`local_cpulist`, keepLines(`(?:[0-9]{1,5}(?:[,-][0-9]{1,5})*)?`)),
	newForm(device+`aer_[a-z_]+`, keepLines(`(?:[A-Z][A-Za-z]{1,17}|TOTAL_ERR_[A-Z]{3,8}) [0-9]{1,20}|`+integer)),
	newForm(device+`hwmon/hwmon[0-9]+/temp[0-9]+_[a-z]*(?:input|crit|highest)`, keepLines(integer)),
	newForm(device+`(?:hwmon/hwmon[0-9]+/(?:name|temp[0-9]+_label)|product_name|sys_vendor)`, texts(vendor)),
	newForm(device+`config`, configSpace),
	newForm(device+`vpd`, productData),
	newForm(`sys/class/kfd/kfd/topology/nodes/[0-9]+/(?:mem_banks/[0-9]+/)?properties`,
		keepLines(`[a-z_0-9]{1,40} [0-9]{1,20}`)),
	// The kernel.
	newForm(`sys/module/[A-Za-z0-9_]+/version|sys/(?:kernel/(?:mm/)?)?memory_peers/[a-z0-9_]+/version`, texts(version)),
	newForm(`proc/sys/kernel/osrelease`, texts(version)),
	newForm(`sys/module/[A-Za-z0-9_]+/(?:initstate|refcnt|taint|parameters/netns_mode)`,
		keepLines(`live|coming|going|many|[A-Z()+-]{0,8}|`+integer)),
	newForm(`sys/(?:kernel/(?:mm/)?)?memory_peers/[a-z0-9_]+/num_[a-z_]+`, keepLines(counter)),
	newForm(`sys/kernel/iommu_groups/[0-9]+/type`, keepLines(`identity|DMA|DMA-FQ|unmanaged|blocked|auto`)),
	newForm(`sys/kernel/irq/[0-9]+/per_cpu_count`, keepLines(`[0-9]{1,10}(?:,[0-9]{1,10})*`)),
	newForm(`sys/kernel/config/rdma_cm/[^/]+/ports/[0-9]+/default_roce_(?:mode|tos)`, keepLines(`IB/RoCE v1|RoCE v2|`+integer)),
	newForm(host.BufinfoFile, keepLines(bufinfo)),
	newForm(`proc/sys/(?:kernel/(?:numa_balancing|tainted)|net/ipv4/conf/[^/]+/[a-z_]+)`, keepLines(integer)),
	newForm(`proc/sys/kernel/hostname`, hostName),
	newForm(`proc/sys/kernel/random/boot_id`, keepLines(uuid)),
	newForm(`proc/uptime`, keepLines(`[0-9]{1,10}\.[0-9]{2} [0-9]{1,14}\.[0-9]{2}`)),
	newForm(`proc/kallsyms`, keepLines(`[0-9a-f]{16} [A-Za-z] [A-Za-z0-9_.$]{1,127}(?:\t\[[A-Za-z0-9_]{1,60}\])?`)),
	newForm(`proc/driver/nvidia/version`, driverLines),
	newForm(`proc/driver/nvidia/params`,
		keepLines(`[A-Za-z0-9]{1,40}: (?:[0-9]{1,10}|""|"PeerMappingOverride=[0-9]{1,3};?")`)),
	newForm(`proc/driver/nvidia/gpus/[^/]+/information`, texts(gpuInformation)),
	newForm(`proc/driver/nvidia-fs/stats`, keepLines(storage)),
	newForm(`proc/(?:[0-9]+/)?net/route`, keepLines(route)),
	newForm(`proc/(?:[0-9]+/)?net/arp`, keepLines(neighbour)),
	newForm(`proc/(?:[0-9]+/)?net/ipv6_route`, keepLines(ipv6Route)),
	newForm(`proc/config\.gz`, kernelConfig),
	newForm(`boot/config-`+kernelRelease, keepLines(kernelOption)),
	newForm(`lib/modules/`+kernelRelease+`/modules\.builtin`, keepLines(`kernel/[A-Za-z0-9_/.-]{1,120}\.ko`)),
	// Configuration of the host.
	newForm(`etc/nccl\.conf`, func(_ *pseudonyms, _, text string) string { return ncclSettings(text) }),
	newForm(`(?:etc|run|usr/lib|lib)/(?:modules-load|modprobe)\.d/[^/]+|etc/modules|etc/rdma/modules/[^/]+|`+
		`etc/infiniband/openib\.conf`, func(_ *pseudonyms, _, text string) string { return bootSettings(text) }),
	newForm(`(?:var/)?run/nvidia-topologyd/virtualTopology\.xml`, topology),
	newForm(answer.ModesDir+`/dev/.+`, keepLines(`[0-7]{4}`)),
	newForm(`run/systemd/netif/lldp/[0-9]{1,10}`, knownFrames),
	// Of the exporter. site.OfHost has reduced its configuration.
	newForm(capture.ConfigPath, func(_ *pseudonyms, _, text string) string { return text }),
	newForm(statePath, stateOfLinks),
}

// places are directories, links and nodes without content.
var places = lazy.Regexp(`^(?:sys|dev)(?:/|$)|^(?:etc|lib|usr|usr/lib|run|var|var/lib|var/run|boot|pods|launchers)$|` +
	`^proc(?:/[0-9]+)?(?:/net|/driver(?:/nvidia(?:/gpus(?:/[^/]+)?)?)?)?$|` +
	`^(?:etc|run|usr/lib|lib)/(?:modules-load|modprobe)\.d$|^etc/(?:modprobe|rdma(?:/modules)?|infiniband)$|` +
	`^run/nvidia(?:/driver(?:/[^/]+)?)?$|^run/systemd(?:/netif(?:/lldp)?)?$|` +
	`^etc/systemd/system/multi-user\.target\.wants(?:/[^/]+)?$|^(?:usr/)?lib/modules(?:/` + kernelRelease + `(?:/[^/]+){0,4})?$|` +
	`^var/lib/dkms(?:/[^/]+){0,5}$|^(?:rdma|ethtool|devlink|dcb|subnet|nvml|processes|kernel|ebpf|modes|exporter)(?:/|$)`)

// formOf returns the form of a file; nil if it has none.
func formOf(name string) keeping {
	inSysfs := strings.HasPrefix(name, "sys/")
	if k := answerForm(name); !inSysfs && k != nil {
		return k
	}
	short := shortPlace(name)
	for i := range fileForms {
		if f := &fileForms[i]; f.inSysfs == inSysfs && f.path().MatchString(short) {
			return f.keep
		}
	}
	return nil
}

// shortPath is the number of elements of a path below a device that its form depends on.
const shortPath = 7

// shortPlace returns a sysfs path without the buses above the device, which differ from machine to machine.
func shortPlace(name string) string {
	if !strings.HasPrefix(name, "sys/devices/") {
		return name
	}
	at := len(name)
	for range shortPath {
		if at = strings.LastIndexByte(name[:at], '/'); at <= len("sys/devices") {
			return name
		}
	}
	return "sys/devices" + name[at:]
}
