package kernellog

import (
	"strings"

	"rdma_exporter/internal/lazy"
)

// printed is what dmesg, journald and syslog put before a message: level, facility, time, caller
// (CONFIG_PRINTK_CALLER), and, after a time, host. dmesg has the time as seconds, delta (-d), reltime (-e, -H), ctime
// (-T) or iso (--time-format).
var printed = lazy.Regexp(`^(?:<\d+>)?(?:1 )?(?:kern +:\w+ *: )?(?:(?:` +
	`\[(?:[ +]*\d+\.\d+)?(?: ?<[ +]*\d+\.\d+>)?\] ?|` +
	`\[ *[TC]\d+\] ?|` +
	`\[(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} *\d+ [\d:]{5,8}(?: \d{4})?\] ?|` +
	`(?:[A-Z][a-z]{2} )?\d{4}-\d\d-\d\d[T ][\d:]{8}[.,]?\d*(?:Z|[+-]\d\d:?\d\d| [A-Z]{3,5})? (?:kern +:\w+ *: )?|` +
	`[A-Z][a-z]{2} +\d+ [\d:]{8}(?:\.\d+)? |\d{9,10}\.\d{6} ` +
	`)+(?:(?:\S+ )?kernel(?:\[\d+\])?(?:: | (?:- )+))?|kernel: )*`)

// printedBefore reports whether a line may have what printed matches: the record of /dev/kmsg has not.
func printedBefore(line string) bool {
	return line != "" && strings.IndexByte("<[0123456789", line[0]) >= 0 || strings.HasPrefix(line, "kern ") ||
		strings.HasPrefix(line, "kernel: ") || strings.Contains(line[:min(len(line), 120)], " kernel")
}

func unprinted(line string) string {
	if printedBefore(line) {
		line = line[len(printed().FindString(line)):]
	}
	return line
}

// reported is what the kernel prints before the lines of a report of the host's firmware, with the number of the report
// (drivers/acpi/apei/ghes.c, __ghes_print_estatus). Reports without a number are of the boot before (bert.c).
var reported = lazy.Regexp(`^\{\d{1,9}\}\[Hardware Error\]: *`)

// ofFirmware stands for it in a message, whatever the number.
const ofFirmware = "[Hardware Error]: "

var (
	// auxiliary is a device of the auxiliary bus: mlx5_core.rdma.0.
	auxiliary = lazy.Regexp(`^\w+(?:\.\w+)+\.\d+$`)
	// rdmaName is a name that the kernel or rdma-core gives an RDMA device, and no interface has.
	rdmaName = lazy.Regexp(`^(?:mlx[45]_|bnxt_re\d|irdma\d|i40iw\d|roce|rdma|iwp|ionic_\d|efa_\d|hns_\d|erdma_\d|mana_|qedr\d|cxgb4_\d|rxe\d)\w*$`)
	// inFunction is what macros of mlx5 and mlx4 print before a message: function:line:(pid N), since 4.x without the
	// bus address.
	inFunction = lazy.Regexp(`^(?:[0-9a-f]{4,8}:[0-9a-f:.]{5,8}:)?\w+:\d+:(?:\(pid \d+\):)? |^<mlx4_ib> \w+: |^FPGA: \w+:\d+:(?:\(pid \d+\):)? `)
	// ibPrefix is that of mlx5_ib before 4.20, and of MLNX_OFED.
	ibPrefix = lazy.Regexp(`^(?:mlx5_(?:warn|err):)?(mlx5_\w{1,16}): ?(\w+:\d+:\(pid \d+\): .*)$`)
)

// modules are the modules whose name alone is a prefix: pr_err with pr_fmt, and the module loader (kernel/module). A
// line with the name of another keeps it.
var modules = of(
	"mlx5_core", "mlx5_ib", "mlx5_vdpa", "mlx4_core", "mlx4_ib", "mlx4_en", "mlx_compat", "bnxt_en", "bnxt_re", "bng_en",
	"bng_re", "bnge", "ice", "irdma", "i40e", "i40iw", "idpf", "ionic", "ionic_rdma", "hns3", "hclge", "hclgevf",
	"hns_roce", "hns_roce_hw_v2", "efa", "ena", "mana", "mana_ib", "erdma", "qede", "qedr", "cxgb4", "iw_cxgb4",
	"ib_core", "ib_uverbs", "ib_cm", "iw_cm", "rdma_cm", "rdma_ucm", "ib_umad", "ib_ipoib", "ib_iser", "ib_isert",
	"ib_srp", "ib_srpt", "rpcrdma", "nvme_rdma", "nvmet_rdma", "ko2iblnd", "drbd_transport_rdma", "rdma_rxe", "siw",
	"amdgpu", "nvidia", "nvidia_uvm", "nvidia_peermem", "nv_peer_mem", "nvidia_fs", "gdrdrv", "knem", "xpmem",
)

// origin takes from a line what is printed before its message, the object included, and returns the message: patterns
// are written for it. These are the prefixes of dev_printk and netdev_printk (drivers/base/core.c, net/core/dev.c),
// ibdev_printk (drivers/infiniband/core/device.c), of macros of drivers, and of pr_fmt and dev_fmt.
func (e *Event) origin(line string) string {
	line = unprinted(line)
	if m := reportNumber(line); m != "" {
		return ofFirmware + line[len(m):]
	}
	if strings.HasPrefix(line, "mlx5_") {
		if m := ibPrefix().FindStringSubmatch(line); m != nil {
			e.Device = m[1]
			return e.message(m[2])
		}
	}
	head, text, found := strings.Cut(line, ": ")
	if !found || len(head) > 120 {
		return untagged(line)
	}
	first, rest, _ := strings.Cut(head, " ")
	switch name, _, _ := strings.Cut(rest, " "); {
	case rest == "" && modules[base(first)]:
		e.Driver = base(first)
		if e.Driver == "mlx4_en" {
			text = e.port(text)
		}
	case rest == "":
		return untagged(line)
	case first == "infiniband" || first == "ibdev":
		e.Device = name
	case isAddress(name):
		e.Driver, e.PCIAddress = first, name
		e.user(rest[len(name):])
	case strings.Contains(name, ".") && auxiliary().MatchString(name):
		e.Driver = base(first)
		e.user(rest[len(name):])
	case first == "iommu" || strings.HasPrefix(first, "arm-smmu"):
	default:
		return line
	}
	return e.message(text)
}

func reportNumber(line string) string {
	if !strings.HasPrefix(line, "{") {
		return ""
	}
	return reported().FindString(line)
}

// isAddress reports whether a word is a bus address: 0000:4d:00.0.
func isAddress(s string) bool {
	i := len(s) - len("4d:00.0")
	if i < len("0000:") || i > len("00000000:") || s[i-1] != ':' || s[i+2] != ':' || s[i+5] != '.' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && c != ':' && c != '.' {
			return false
		}
	}
	return true
}

// base is the driver of an auxiliary driver: mlx5_core of mlx5_core.eth.
func base(driver string) string {
	name, _, _ := strings.Cut(driver, ".")
	return name
}

// user takes the interface or the RDMA device that is printed after the address.
func (e *Event) user(s string) {
	name, _, _ := strings.Cut(strings.TrimPrefix(s, " "), " ")
	switch {
	case name == "" || len(name) > 63 || strings.ContainsAny(name, ":()"):
	case rdmaName().MatchString(name):
		e.Device = name
	case len(name) <= 15:
		e.Netdev = name
	}
}

// port takes what mlx4_en prints before a message: interface, or address and port (mlx4_en.h, en_print).
func (e *Event) port(text string) string {
	head, rest, found := strings.Cut(text, ": ")
	switch {
	case !found || strings.Contains(head, " "):
		return text
	case isAddress(head):
		e.PCIAddress = head
		_, rest, _ = strings.Cut(rest, ": ")
	default:
		e.user(head)
	}
	return rest
}

func (e *Event) message(text string) string {
	if e.Device != "" || strings.HasPrefix(e.Driver, "mlx") {
		if i := strings.IndexAny(text, ":<"); i >= 0 && i < 64 && (text[i] == '<' || !strings.HasPrefix(text[i:], ": ")) ||
			strings.HasPrefix(text, "FPGA: ") {
			text = text[len(inFunction().FindString(text)):]
		}
	}
	return untagged(text)
}

// tags are those of dev_fmt and pr_fmt that not every kernel prints.
var tags = []string{"AER: ", "AMD-Vi: ", "DMAR: ", "DMAR-IR: "}

func untagged(text string) string {
	for _, tag := range tags {
		if strings.HasPrefix(text, tag) {
			return text[len(tag):]
		}
	}
	return text
}
