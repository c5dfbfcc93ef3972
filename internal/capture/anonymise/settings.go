package anonymise

import (
	"slices"
	"strings"

	"rdma_exporter/internal/gdr/library"
	"rdma_exporter/internal/lazy"
)

// Values of settings that cannot hold a host, a user, an address or a token.
var (
	settingName = lazy.Regexp(`^[A-Z][A-Z0-9_]{0,63}$`)
	shortNumber = lazy.Regexp(`^(?:-?[0-9]{1,5}|0x[0-9a-fA-F]{1,4})$`)
	schedulerID = lazy.Regexp(`^[0-9]{1,10}(?:_[0-9]{1,10})?$`)
	deviceList  = lazy.Regexp(`^[=^]{0,2}[a-z][a-z0-9_]{0,31}(?::[0-9]{1,3})?(?:,[a-z][a-z0-9_]{0,31}(?::[0-9]{1,3})?)*$`)
	settingWord = lazy.Regexp(`^\^?(?i:LOC|NVL|NVB|C2C|PIX|PXB|P2C|PXN|PHB|NODE|SYS|NONE|VERSION|WARN|INFO|ABORT|` +
		`TRACE|RING|TREE|COLLNET|COLLNETDIRECT|COLLNETCHAIN|NVLS|NVLSTREE|PAT|LL|LL128|SIMPLE|SOCKET|IB|YES|NO|ON|OFF|` +
		`TRUE|FALSE|Y|N|AUTO|ALL)$`)
	stackWord = lazy.Regexp(`^[\^\\]?(?:all|tcp|sockets|udp|self|sm|shm|mm|cma|posix|sysv|xpmem|knem|ib|(?:rc|dc|ud)(?:_(?:x|v|mlx5|` +
		`verbs|gda))?|srd|gga|cuda|cuda_copy|cuda_ipc|gdr_copy|rocm|rocm_copy|rocm_ipc|verbs|efa|cxi|psm3|opx|rdma|none|ibrc|` +
		`ibdevx|ibgda|ucx|libfabric|auto|gpu|cpu|cpu_host_memory|expandable_segments:(?:True|False))(?::aux)?$`)
	schedulerName = lazy.Regexp(`^(?:SLURM_|OMPI_|PMI_)|^(?:LOCAL_)?WORLD_SIZE$|^RANK$`)
)

// publicSetting reports whether a setting of NCCL, UCX or the scheduler is kept: its name is known, or its value is a
// small number or a word of NCCL.
func publicSetting(name, value string) bool {
	if !settingName().MatchString(name) {
		return false
	}
	switch name {
	case "NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "UCX_NET_DEVICES":
		return deviceList().MatchString(value) && plainNames(value)
	}
	if slices.Contains(library.Variables, name) {
		return shortNumber().MatchString(value) || onlyStackWords(value)
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

// onlyStackWords reports whether a list has words of communication libraries only.
func onlyStackWords(value string) bool {
	for w := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ',' || r == ';' }) {
		if !stackWord().MatchString(w) {
			return false
		}
	}
	return true
}

// ncclSettings returns the lines NAME=VALUE of nccl.conf, without comments. Values that are not public become x.
func ncclSettings(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "=")
		if !ok || !settingName().MatchString(name) {
			continue
		}
		if !publicSetting(name, value) {
			value = unknownText
		}
		out.WriteString(name + "=" + value + "\n")
	}
	return out.String()
}

// bootLine matches lines of names of modules, and of softdep in modprobe.d.
var bootLine = lazy.Regexp(`^(?:[A-Za-z0-9_-]{1,63}|softdep(?:[ \t]+[A-Za-z0-9_:-]{1,63})+|IPOIB_LOAD="?(?:yes|no)"?)$`)

// bootSettings returns the lines that name modules to load, without comments, options and commands.
func bootSettings(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); bootLine().MatchString(line) && !addressLike().MatchString(line) {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}
