package capture

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"rdma_exporter/internal/lazy"
)

// Outside of sysfs, a file goes into an anonymised capture only if its path is known here. Others are left out and
// named in Meta.LeftOut.
var knownFile = lazy.Regexp(`^(?:sys/.+|` +
	`proc/(?:uptime|kallsyms|driver/nvidia/version|driver/nvidia/gpus/[^/]+/information|` +
	`driver/nvidia-fs/stats|` +
	`sys/kernel/(?:hostname|osrelease|tainted|numa_balancing|random/boot_id)|sys/net/ipv4/conf/[^/]+/[a-z_]+|` +
	`(?:[0-9]+/)?net/(?:route|arp|ipv6_route))|boot/config-[^/]+|lib/modules/[^/]+/modules\.builtin|` +
	`etc/(?:nccl\.conf|modules|infiniband/openib\.conf|rdma/modules/[^/]+)|` +
	`(?:etc|run|usr/lib|lib)/(?:modules-load|modprobe)\.d/[^/]+|` +
	`run/systemd/netif/lldp/[^/]+|modes/dev/.+|exporter/(?:config\.yml|state\.json)|` +
	`(?:rdma|ethtool|dcb|subnet|nvml|processes)/.+|devlink/health|pods|launchers|kernel/log|ebpf/trace)$`)

// isBootConfig reports whether a file names modules to load at boot, or settings of modules.
var isBootConfig = lazy.Regexp(`/modules-load\.d/|/modprobe\.d/|^etc/(?:modules$|rdma/modules/|infiniband/)`)

// withoutUnknown removes the files without a form, and names them in the description of the archive.
func withoutUnknown(a *Archive, name func(string) string) {
	left := set{}
	for _, s := range a.Meta.LeftOut {
		left.add(s)
	}
	for i := range a.Rounds {
		a.Rounds[i].Entries = slices.DeleteFunc(a.Rounds[i].Entries, func(e Entry) bool {
			unknown := e.Kind == File && !knownFile().MatchString(e.Path)
			if unknown {
				left.add(name(e.Path))
			}
			return unknown
		})
	}
	a.Meta.LeftOut = slices.Sorted(maps.Keys(left))
}

// Values of settings that cannot hold a host, a user, an address or a token.
var (
	settingName = lazy.Regexp(`^[A-Z][A-Z0-9_]{0,63}$`)
	shortNumber = lazy.Regexp(`^(?:-?[0-9]{1,5}|0x[0-9a-fA-F]{1,4})$`)
	schedulerID = lazy.Regexp(`^[0-9]{1,10}(?:_[0-9]{1,10})?$`)
	deviceList  = lazy.Regexp(`^[=^]{0,2}[a-z][a-z0-9_]{0,31}(?::[0-9]{1,3})?(?:,[a-z][a-z0-9_]{0,31}(?::[0-9]{1,3})?)*$`)
	settingWord = lazy.Regexp(`^\^?(?i:LOC|NVL|NVB|C2C|PIX|PXB|P2C|PXN|PHB|NODE|SYS|NONE|VERSION|WARN|INFO|ABORT|` +
		`TRACE|RING|TREE|COLLNET|COLLNETDIRECT|COLLNETCHAIN|NVLS|NVLSTREE|PAT|LL|LL128|SIMPLE|SOCKET|IB|YES|NO|ON|OFF|` +
		`TRUE|FALSE|Y|N|AUTO|ALL)$`)
	schedulerName = lazy.Regexp(`^(?:SLURM_|OMPI_|PMI_)|^(?:LOCAL_)?WORLD_SIZE$|^RANK$`)
)

// publicSetting reports whether a setting of NCCL, UCX or the scheduler is kept: its name is known, or its value is a
// small number or a word of NCCL.
func publicSetting(name, value string) bool {
	if !settingName().MatchString(name) {
		return false
	}
	switch name {
	case "NCCL_IB_HCA", "NCCL_SOCKET_IFNAME":
		return deviceList().MatchString(value)
	}
	if schedulerName().MatchString(name) {
		return schedulerID().MatchString(value)
	}
	return shortNumber().MatchString(value) || onlyWords(value)
}

// onlyWords reports whether a list has words of NCCL only.
func onlyWords(value string) bool {
	for w := range strings.SplitSeq(value, ",") {
		if !settingWord().MatchString(w) {
			return false
		}
	}
	return true
}

// ncclSettings are the lines NAME=VALUE of nccl.conf, without comments. Values that are not public become x.
func ncclSettings(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "=")
		if !ok || !settingName().MatchString(name) {
			continue
		}
		if !publicSetting(name, value) {
			value = "x"
		}
		out.WriteString(name + "=" + value + "\n")
	}
	return out.String()
}

// bootLine matches lines of names of modules, and of softdep in modprobe.d.
var bootLine = lazy.Regexp(`^(?:[A-Za-z0-9_-]{1,63}|softdep(?:[ \t]+[A-Za-z0-9_:-]{1,63})+|IPOIB_LOAD="?(?:yes|no)"?)$`)

// bootSettings are the lines that name modules to load, without comments, options and commands.
func bootSettings(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); bootLine().MatchString(line) {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

// builder is the user and the host that built the driver, in parentheses.
var builder = lazy.Regexp(`\([^()@\n]*@[^()\n]*\)`)

// form is the content of a file of the host by the form of its path.
func (p *pseudonyms) form(name, text string) string {
	switch {
	case name == "etc/nccl.conf":
		return ncclSettings(text)
	case isBootConfig().MatchString(name):
		return bootSettings(text)
	case name == "proc/driver/nvidia/version":
		return builder().ReplaceAllLiteralString(text, "(x)")
	case isIPv6Route(name):
		return p.ipv6Routes(text, p.lowOf, p.netOf)
	case name == "proc/sys/kernel/random/boot_id", name == statePath:
		return p.bootIDs(text)
	}
	return text
}

// statePath is the entry of what the exporter remembers of links and devices.
const statePath = "exporter/state.json"

func isIPv6Route(name string) bool {
	return strings.HasPrefix(name, "proc/") && strings.HasSuffix(name, "/net/ipv6_route")
}

var ipv6Field = lazy.Regexp(`\b[0-9a-f]{32}\b`)

// ipv6Routes replaces the addresses of /proc/net/ipv6_route, which have no colons.
func (p *pseudonyms) ipv6Routes(text string, low, net func(string) string) string {
	return ipv6Field().ReplaceAllStringFunc(text, func(m string) string {
		d := []byte(m)
		p.gid(d, low, net)
		return string(d)
	})
}

var bootID = lazy.Regexp(`\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)

// bootIDs replaces boot IDs by their order.
func (p *pseudonyms) bootIDs(text string) string {
	return bootID().ReplaceAllStringFunc(text, func(id string) string { return p.boots[id] })
}

// bootFormat is the pseudonym of a boot ID by its number.
const bootFormat = "%08x-0000-4000-9000-000000000000"

// ulaPseudonym is fd00:db8:0:N, in fc00::/7 like the address it stands for (RFC 4193).
func ulaPseudonym(i int) string { return fmt.Sprintf("fd000db8%08x", i) }
