package anonymise

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"path"
	"strings"

	"rdma_exporter/internal/host/proc"
	"rdma_exporter/internal/lazy"
	"rdma_exporter/internal/pci"
)

// Lines with more than one field.
const (
	// vendor is a text of the vendor of a board, a firmware or a driver. Such a text is not kept if it has something like
	// an address.
	vendor        = `(?:[A-Za-z0-9(](?:[A-Za-z0-9 ,.;()+_&#-]| / ){0,100})?`
	version       = `[vV]?[0-9][A-Za-z0-9.+_~-]{0,63}`
	kernelRelease = `[0-9]{1,2}\.[A-Za-z0-9.+_~-]{1,62}` // of a kernel
	driverVersion = `(?:NVRM|GCC) version: [A-Za-z0-9 .,:_()+~-]{0,200}`
	// gpuInformation is /proc/driver/nvidia/gpus/ADDRESS/information.
	gpuInformation = `(?:Model|IRQ|Video BIOS|Bus Type|DMA Size|DMA Mask|Bus Location|` +
		`Device Minor|GPU Firmware|GPU Excluded)[\t ]*:[\t ]*(?:[A-Za-z0-9 .-]{0,40}|0x[0-9a-f]{1,16}|` + pciBDF + `)|` +
		`GPU UUID[\t ]*:[\t ]*(?:GPU-` + uuid + `)`
	// storage is /proc/driver/nvidia-fs/stats (gds-nvidia-fs, src/nvfs-stat.c).
	storage = `(?:GDS Version|NVFS statistics\(ver|NVFS Driver\(version|Mellanox PeerDirect Supported|IO stats|` +
		`Logging level|Active Shadow-Buffer \(MiB\)|Active Process): (?:[0-9.]{1,24}\)? ?|True|False|[a-z]{1,8}|` +
		`(?:En|Dis)abled(?:, peer IO stats: (?:En|Dis)abled)?)|` +
		`[A-Za-z1 -]{1,16}[\t ]*: (?:[A-Za-z0-9_()/-]{1,32}=[0-9]{1,20} ?){1,12}|`
	// route is a line of /proc/net/route (fib_route_seq_show, net/ipv4/fib_trie.c).
	route = `Iface\tDestination\tGateway[ \t]+Flags\tRefCnt\tUse\tMetric\tMask[\t ]+MTU\tWindow\tIRTT[ \t]*|` +
		name63 + `\t` + hexIPv4 + `\t` + hexIPv4 + `\t[0-9A-F]{4}\t[0-9]{1,10}\t[0-9]{1,10}\t[0-9]{1,10}\t` + hexIPv4 +
		`\t[0-9]{1,10}\t[0-9]{1,10}\t[0-9]{1,10}[\t ]*`
	// neighbour is a line of /proc/net/arp (arp_format_neigh_entry, net/ipv4/arp.c).
	neighbour = `IP address +HW type +Flags +HW address +Mask +Device|` +
		`[0-9]{1,3}(?:\.[0-9]{1,3}){3} +0x[0-9a-f]{1,4} +0x[0-9a-f]{1,4} +(?:` + macAddr + `) +\* +` + name63
	// ipv6Route is a line of /proc/net/ipv6_route (rt6_native_seq_show, net/ipv6/ip6_fib.c).
	ipv6Route = `[0-9a-f]{32} [0-9a-f]{2} [0-9a-f]{32} [0-9a-f]{2} [0-9a-f]{32}(?: [0-9a-f]{1,8}){4} +` + name63
	// kernelOption is an option of the kernel's configuration that is read.
	kernelOption = `(?:# )?CONFIG_(?:PCI_P2PDMA|DMABUF_MOVE_NOTIFY)(?:=[ymn]| is not set)`
	// bufinfo is a line of dma_buf_debug_show, drivers/dma-buf/dma-buf.c: no names of buffers, only of exporters.
	bufinfo = `|Dma-buf Objects:|size[\ta-z_ ]{1,60}|[0-9]{8,20}\t[0-9a-f]{8}\t[0-9a-f]{8}\t[0-9]{8,20}\t[a-z0-9_-]{1,32}\t` +
		`[0-9]{8,20}\t(?:<none>)?|\t+Attached Devices:|\t+` + pciBDF + `|\t(?:write|read) fence:[a-z0-9_ -]{0,60}|` +
		`Total [0-9]{1,10} devices attached|Total [0-9]{1,10} objects, [0-9]{1,20} bytes`
)

// unknownText stands for content that a form does not know. It is no number, no address and no state.
const unknownText = "x"

// keepLines keeps the lines that an expression matches. Others become x: what was malformed stays malformed.
func keepLines(expr string) keeping {
	whole := wholly(expr)
	return eachLine(func(_ *pseudonyms, _, line string) string {
		if !whole().MatchString(line) {
			return unknownText
		}
		return line
	})
}

// texts returns lines without anything like an address.
func texts(expr string) keeping {
	whole := keepLines(expr)
	return eachLine(func(p *pseudonyms, name, line string) string {
		if addressLike().MatchString(gpuUUIDPattern().ReplaceAllString(line, "")) {
			return unknownText
		}
		return whole(p, name, line)
	})
}

// named returns lines with names of interfaces and devices, which may have an address as udev writes it.
func named(expr string) keeping {
	whole := keepLines(expr)
	return eachLine(func(p *pseudonyms, name, line string) string {
		if !plainNames(line) {
			return unknownText
		}
		return whole(p, name, line)
	})
}

// plainNames reports whether names have no address but one that gets a pseudonym.
func plainNames(text string) bool {
	return !addressLike().MatchString(derivedName().ReplaceAllString(text, ""))
}

// driverLines is /proc/driver/nvidia/version without the user and the host that built the driver, in parentheses.
func driverLines(p *pseudonyms, name, text string) string {
	return texts(driverVersion)(p, name, builder().ReplaceAllLiteralString(text, "(x)"))
}

var builder = lazy.Regexp(`\([^()@\n]*@[^()\n]*\)`)

// addressLike matches what may be an address or a UUID, in any notation.
var addressLike = lazy.Regexp(`(?i)[0-9a-f]{12,}|[0-9a-f]{2}(?:[:_-][0-9a-f]{2}){5}|` +
	`[0-9a-f]{4}(?:[.:_-][0-9a-f]{4}){2}`)

// eachLine applies a form to each line.
func eachLine(k keeping) keeping {
	return func(p *pseudonyms, name, text string) string {
		var out strings.Builder
		for line := range strings.Lines(text) {
			content, ended := strings.CutSuffix(line, "\n")
			if out.WriteString(k(p, name, content)); ended {
				out.WriteByte('\n')
			}
		}
		return out.String()
	}
}

// driverDescriptions are the node descriptions that drivers set (iboe_description, ib_device.node_desc).
var driverDescriptions = lazy.Regexp(`^(?:(?:bnxt_re|ionic|rxe|siw|erdma|efa|mana|hfi1|irdma|qedr|cxgb4)(?:_?[0-9]{1,3})?|` +
	`Software iWARP stack|[A-Za-z0-9]{1,16} HCA|HCA-[0-9]{1,2}|MT[0-9]{4,5} [A-Za-z0-9 -]{1,30}|Elastic Fabric Adapter \(EFA\))$`)

// nodeDescription keeps the pseudonym of the host and the name of the device: rdma-ndd(8) writes both, an operator may
// write anything.
func nodeDescription(p *pseudonyms, name, text string) string {
	dev := path.Base(path.Dir(name))
	return eachLine(func(_ *pseudonyms, _, line string) string {
		if line = p.hostless(line); line == "" || driverDescriptions().MatchString(line) {
			return line
		}
		words := strings.Split(line, " ")
		for i, w := range words {
			if w != Host && w != dev && !driverDescriptions().MatchString(w) {
				words[i] = unknownText
			}
		}
		return strings.Join(words, " ")
	})(p, name, text)
}

// hostName returns the pseudonym, whatever the host is called.
func hostName(_ *pseudonyms, _, text string) string {
	if strings.TrimSpace(text) == "" {
		return text
	}
	return Host + "\n"
}

var switchIDForm = lazy.Regexp(`^(?:[0-9a-f]{12}|[0-9a-f]{16})\n?$`)

// switchID keeps an address or a GUID.
func switchID(_ *pseudonyms, _, text string) string {
	if !switchIDForm().MatchString(text) {
		return unknownText + "\n"
	}
	return text
}

// configSpace keeps the header and the capabilities that are read.
func configSpace(_ *pseudonyms, _, text string) string { return string(pci.PublicConfig([]byte(text))) }

// productData keeps the name and the part number of a board. Unreadable data is left out.
func productData(p *pseudonyms, _, text string) string {
	v, _ := pci.ParseVPD([]byte(text))
	v = v.Public()
	whole := texts(vendor)
	v.Identifier = whole(p, "", v.Identifier)
	for key, field := range v.Fields {
		v.Fields[key] = whole(p, "", field)
	}
	return string(v.Bytes())
}

// configLimit limits an unpacked configuration of the kernel: that of a distribution has 300 kB.
const configLimit = 4 << 20

var kernelOptions = lazy.Regexp(`(?m)^(?:` + kernelOption + `)$`)

// kernelConfig keeps the options that are read, compressed as the file is. It is empty if it cannot be unpacked.
func kernelConfig(_ *pseudonyms, _, text string) string {
	z, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		return ""
	}
	all, err := io.ReadAll(io.LimitReader(z, configLimit))
	if err != nil {
		return ""
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	kept := kernelOptions().FindAllString(string(all), -1)
	if _, err := io.WriteString(w, strings.Join(append(kept, ""), "\n")); err != nil {
		return ""
	}
	if err := w.Close(); err != nil {
		return ""
	}
	return out.String()
}

// topology keeps the places of PCI functions. It is not a topology file if it was none.
func topology(_ *pseudonyms, _, text string) string {
	kept, err := proc.ReducedTopology([]byte(text))
	if err != nil {
		return unknownText
	}
	return kept
}

// stateLine is a line of what the exporter remembers of links and functions, expect.Data by json.MarshalIndent.
var stateLine = lazy.Regexp(`^ *(?:[{}]|"(?:links|functions|roles|baselines|idle|gpus|places)": \{|` +
	`"(?:(?:guid|pci|device|name|board|gpu)/)?[A-Za-z0-9_.:/@# -]{1,80}": \{|` +
	`"(?:device|netdev|pci_address|node_guid|driver|board_id|earlier_device|role|boot|evidence|source|uuid|leaf)": "[A-Za-z0-9_.:/@ -]{0,80}"|` +
	`"path": "[0-9a-f:. ]{0,300}"|"leaf_port": ""|` +
	`"[a-z_]{1,24}": (?:true|false|-?[0-9.e+]{1,20}|"` + timeUTC + `"))(?:\{\})?\}?,?$`)

// leafLine is the switch at the far end of a link, or its port, in what the exporter remembers.
var leafLine = lazy.Regexp(`"leaf(_port)?": *"((?:[^"\\]|\\.)*)"`)

// stateOfLinks returns the complete file, or nothing. Switches have the same pseudonyms as in their frames.
func stateOfLinks(p *pseudonyms, _, text string) string {
	text = leafLine().ReplaceAllStringFunc(text, func(line string) string {
		m := leafLine().FindStringSubmatch(line)
		if m[1] != "" {
			return `"leaf_port": ""`
		}
		return `"leaf": "` + SystemIn(p.systems, m[2]) + `"`
	})
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(text), "", " "); err != nil {
		return "{}\n"
	}
	for line := range strings.Lines(indented.String()) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && !stateLine().MatchString(line) {
			return "{}\n"
		}
	}
	return text
}

// knownFrames returns frames of LLDP with the parts that are kept.
func knownFrames(_ *pseudonyms, _, text string) string {
	same := &pseudonyms{systems: map[string]string{}}
	for _, n := range neighbours([]byte(text)) {
		for _, name := range []string{n.SystemName, n.ChassisID} {
			same.systems[shortName(name)] = name
		}
	}
	return string(same.frames([]byte(text)))
}
