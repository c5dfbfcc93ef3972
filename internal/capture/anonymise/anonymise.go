// Package anonymise replaces what identifies a machine in a capture, and leaves out what it does not know.
package anonymise

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/lazy"
	"rdma_exporter/internal/snapshot/accel"
)

// Archive replaces identifying data. Host names are replaced in content; the device-specific half of MAC addresses,
// GUIDs and GIDs, and the networks of GIDs that contain IP addresses, of routes and of IPv4 neighbours, in content and
// paths. Relations are preserved: one address has one pseudonym wherever and in whichever form it appears (a MAC, the
// GUID derived from it, the GID with its EUI-64), and adjacent addresses stay adjacent. The vendor's half of an address
// is kept. Processes are numbered. Pseudonyms are numbered in the order of the addresses, so the same machine always
// has the same ones.
// UUIDs and serial numbers of GPUs, boot IDs, UUIDs of virtual devices and pods, and IDs of containers are replaced
// likewise. A file goes in only through a form that knows its fields, an answer through a rule for each field
// (fileForms, fieldRules): what has none is left out and named in Meta.LeftOut. A configuration file has to be reduced
// by site.OfHost first; cabled are the system names in it.
func Archive(a *capture.Archive, cabled ...string) {
	p := &pseudonyms{low: map[string]string{}, nets: map[string]string{}, systems: Systems(a, cabled...)}
	if !utf8.ValidString(a.Meta.Hostname) { // that of a parsed header always is
		a.Meta.Hostname = Host
	}
	p.hostPattern(a.Meta.Hostname)
	a.Meta.Kernel = matching(version)(p.hostless(a.Meta.Kernel))
	reduce(a, p)
	replacePIDs(a)
	p.collect(a)
	if a.Meta.Anonymised = true; a.Meta.Hostname != "" {
		a.Meta.Hostname = Host
	}
	for i, s := range a.Meta.LeftOut {
		a.Meta.LeftOut[i] = plainPath(p.hostless(p.place(s)))
	}
	a.Each(func(e *capture.Entry) {
		e.Path, e.Target = p.place(e.Path), p.place(e.Target)
		switch {
		case e.Path == capture.ConfigPath: // its keys may equal the host name; site.OfHost has replaced the host name
			e.Data = []byte(p.gpuUUIDs(p.addresses(string(e.Data))))
		case e.Kind == capture.File && answer.IsLLDP(e.Path):
			e.Data = p.frames(e.Data)
		case e.Kind == capture.File && answer.IsSubnet(e.Path):
			e.Data = p.link(e.Path, e.Data)
		case e.Kind == capture.File && isBareID(e.Path):
			e.Data = []byte(p.bare(string(e.Data)))
		case e.Kind == capture.File && strings.HasPrefix(e.Path, answer.ProcessDir+"/"):
			e.Data = []byte(p.content(string(changed(e.Path, e.Data, p.process))))
		case e.Kind == capture.File && e.Path == answer.PodsPath:
			e.Data = []byte(p.content(string(changed(e.Path, e.Data, p.pods))))
		case e.Kind == capture.File && answer.IsEEPROM(e.Path):
			e.Data = p.module(e.Path, e.Data)
		case e.Kind == capture.File && isKFD(e.Path):
			e.Data = []byte(p.content(p.kfd(string(e.Data))))
		case e.Kind == capture.File && answer.IsGPU(e.Path):
			e.Data = []byte(p.hostless(string(changed(e.Path, e.Data, p.gpu))))
		case e.Kind == capture.File:
			text := p.hostFile(e.Path, ipv4(e.Path, string(e.Data), p.netOf))
			e.Data = []byte(p.content(text))
		}
	})
	for i := range a.Rounds { // a pseudonym in a path may have another place
		slices.SortStableFunc(a.Rounds[i].Entries, func(x, y capture.Entry) int { return strings.Compare(x.Path, y.Path) })
	}
	slices.Sort(a.Meta.LeftOut)
}

var (
	macPattern  = lazy.Regexp(`(?i)\b[0-9a-f]{2}(?:(?::[0-9a-f]{2}){5,19}|(?:-[0-9a-f]{2}){5,7})\b`)
	guidPattern = lazy.Regexp(`(?i)\b[0-9a-f]{4}(?::[0-9a-f]{4}){3,7}\b`)
	// derivedName is a name with an address, as udev assigns it (systemd.net-naming-scheme(7), and
	// 60-rdma-persistent-naming.rules of rdma-core): enxb83fd250a1c0, rocexb83fd2030050a1c0.
	derivedName = lazy.Regexp(`(\b|_)((?:en|ib|sl|wl|ww|iw|opa|roce|usnic)x)([0-9a-f]{16}|[0-9a-f]{12})`)
	bareUUID    = lazy.Regexp(`\b` + uuid + `\b`)
)

// hostPattern sets the pattern of the host name, with and without its domain.
func (p *pseudonyms) hostPattern(hostname string) {
	if name := strings.Trim(hostname, "."); name != "" {
		short, _, _ := strings.Cut(name, ".")
		either := `(?:` + regexp.QuoteMeta(name) + "|" + regexp.QuoteMeta(short) + `)`
		p.host = regexp.MustCompile(`(?i)\b` + either + `\b`)
		if strings.Contains(short, "-") && short != Host {
			p.hostInName = regexp.MustCompile(`(?i)(\b|_)` + either + `(\b|_)`)
		}
	}
}

// Host is the host name in an anonymised capture.
const Host = "host-1"

type pseudonyms struct {
	host       *regexp.Regexp // host name with or without its domain; nil if none
	hostInName *regexp.Regexp // the same beside underscores; nil if the name may be that of a device
	// 20 bits of an address (5 hex digits) → 5 hex digits, or 60 bits of the interface ID of a GID that has no address of
	// a device; the last digit is kept.
	low                  map[string]string
	vendors              set               // the first 24 bits of MAC addresses and GUIDs of devices, in hex digits
	serials              map[string]string // of transceivers and GPUs
	uuids                map[string]string // of GPUs and NVLink domains
	kfdIDs               map[string]string // unique IDs of AMD GPUs, and IDs of their hives
	systems              map[string]string // of switches, by name
	boots                map[string]string // boot IDs
	instances            map[string]string // UUIDs of devices of a hypervisor
	podUIDs, containers  map[string]string
	namespaces, podNames map[string]string
	// First 28 bits of an IPv4 address, or 64 of a global or unique local IPv6 address, in hex digits → pseudonym.
	nets map[string]string
}

// set is names that get pseudonyms.
type set map[string]bool

func (s set) add(name string) {
	if name != "" {
		s[name] = true
	}
}

// numbered assigns texts with increasing numbers to names in their order.
func (s set) numbered(format string) map[string]string {
	out := map[string]string{}
	for i, name := range slices.Sorted(maps.Keys(s)) {
		out[name] = fmt.Sprintf(format, i+1)
	}
	return out
}

// collect assigns a pseudonym to each name and address, in order.
func (p *pseudonyms) collect(a *capture.Archive) {
	p.vendors = vendors(a)
	low, nets := set{}, set{}
	serials, uuids, kfd, namespaces, pods, boots := set{}, set{}, set{}, set{}, set{}, set{}
	var bare []bareID
	keep := func(to set) func(string) string {
		return func(digits string) string { to.add(digits); return digits }
	}
	instances, podUIDs, containers := set{}, set{}, set{}
	a.Each(func(e *capture.Entry) {
		for _, s := range []string{e.Path, e.Target} {
			p.each(s, keep(low), keep(nets))
			for _, u := range bareUUID().FindAllString(s, -1) {
				instances.add(u)
			}
		}
		text := string(e.Data)
		for _, u := range gpuUUIDPattern().FindAllString(text, -1) {
			uuids.add(u[4:])
		}
		if e.Kind == capture.File && answer.IsLLDP(e.Path) {
			text = addressesIn(e.Data)
		}
		ipv4(e.Path, text, keep(nets))
		if isIPv6Route(e.Path) {
			p.ipv6Routes(text, keep(low), keep(nets))
		}
		if e.Path == "proc/sys/kernel/random/boot_id" || e.Path == statePath {
			for _, id := range bareUUID().FindAllString(gpuUUIDPattern().ReplaceAllString(text, ""), -1) {
				boots.add(id)
			}
		}
		p.each(text, keep(low), keep(nets))
		switch {
		case e.Kind != capture.File:
		case isBareID(e.Path):
			bare = append(bare, bareIDOf(text))
		case strings.HasPrefix(e.Path, answer.ProcessDir+"/"):
			one, _ := answer.Decode[accel.Process](e.Path, e.Data)
			containers.add(one.Container)
			if uid, ok := strings.CutPrefix(one.Job, podJob); ok {
				podUIDs.add(uid)
			}
		case answer.IsIdentity(e.Path):
			serials.add(moduleSerial(e))
		case isKFD(e.Path):
			for _, m := range kfdPattern().FindAllStringSubmatch(text, -1) {
				kfd.add(m[2])
			}
		case answer.IsGPU(e.Path):
			g, _ := answer.Decode[accel.GPU](e.Path, e.Data)
			if serials.add(g.Serial); g.Fabric != nil {
				uuids.add(g.Fabric.Cluster)
			}
		case e.Path == answer.PodsPath:
			found, _ := answer.Decode[[]accel.Pod](e.Path, e.Data)
			for _, pod := range found {
				namespaces.add(pod.Namespace)
				pods.add(pod.Name)
			}
		}
	})
	for _, id := range bare { // their tails may be known in the reverse order
		if !low[id.reversed().tail()] {
			low.add(id.tail())
		}
	}
	p.serials, p.uuids, p.kfdIDs = serials.numbered("SERIAL%04d"),
		uuids.numbered("%08x-0000-4000-8000-000000000000"), kfd.numbered("%d")
	p.boots, p.instances = boots.numbered(bootFormat), instances.numbered("%08x-0000-4000-a000-000000000000")
	p.podUIDs, p.containers = podUIDs.numbered("%08x-0000-4000-b000-000000000000"), containers.numbered("%012x")
	p.namespaces, p.podNames = namespaces.numbered("namespace-%d"), pods.numbered("pod-%d")
	number(p.low, low, 0x10001)
	number(p.nets, nets, 0x0a0a000)
}

// ipv6Documentation is 2001:db8::/32, RFC 3849.
const ipv6Documentation = 0x20010db8_0000_0000

// number assigns pseudonyms by the order of each kind: a second pass changes nothing.
func number(to map[string]string, from set, first int) {
	counts := map[string]int{}
	for _, k := range slices.Sorted(maps.Keys(from)) {
		kind := fmt.Sprint(len(k))
		if isULA(k) {
			kind = "ula"
		}
		i := counts[kind]
		counts[kind]++
		switch {
		case kind == "ula":
			to[k] = ulaPseudonym(i)
		case len(k) == 16:
			to[k] = fmt.Sprintf("%016x", ipv6Documentation+i)
		default:
			to[k] = fmt.Sprintf("%0*x", len(k), first+i)
		}
	}
}

// isULA reports whether 64 bits in hex digits are a network of fc00::/7.
func isULA(net string) bool { return len(net) == 16 && (net[:2] == "fc" || net[:2] == "fd") }

func (p *pseudonyms) lowOf(d string) string { return cmp.Or(p.low[d], d) }
func (p *pseudonyms) netOf(d string) string { return cmp.Or(p.nets[d], d) }

func (p *pseudonyms) addresses(s string) string {
	return p.each(s, p.lowOf, p.netOf)
}

// place replaces the addresses in a path, and the UUIDs of devices of a hypervisor in sysfs.
func (p *pseudonyms) place(s string) string {
	return bareUUID().ReplaceAllStringFunc(p.addresses(s), func(u string) string { return cmp.Or(p.instances[u], u) })
}

// content replaces addresses, and host names as whole words: a host may be named dev or mlx.
func (p *pseudonyms) content(s string) string {
	return p.hostless(p.gpuUUIDs(p.addresses(s)))
}

// hostless replaces host names.
func (p *pseudonyms) hostless(s string) string {
	if p.host != nil {
		s = p.host.ReplaceAllLiteralString(s, Host)
	}
	return s
}

// each replaces the device-specific digits of every address by low, and networks by net.
func (p *pseudonyms) each(s string, low, net func(string) string) string {
	s = macPattern().ReplaceAllStringFunc(s, func(m string) string {
		d := []byte(strings.ToLower(strings.NewReplacer(":", "", "-", "").Replace(m)))
		p.tail(d, low)
		return group(d, 2, m[2:3])
	})
	s = guidPattern().ReplaceAllStringFunc(s, func(m string) string {
		d := []byte(strings.ToLower(strings.ReplaceAll(m, ":", "")))
		p.gid(d, low, net)
		return group(d, 4, ":")
	})
	return derivedName().ReplaceAllStringFunc(s, func(m string) string {
		at := strings.LastIndexByte(m, 'x') + 1
		d := []byte(m[at:])
		p.tail(d, low)
		return m[:at] + string(d)
	})
}

// gid replaces the digits of a GUID, a GID or an IPv6 address.
func (p *pseudonyms) gid(d []byte, low, net func(string) string) {
	switch {
	case len(d) == 32 && len(bytes.Trim(d[12:], "0")) == 0 && !isULA(string(d[:16])): // iWARP: the MAC, then zeros
		if d[0] != '2' && d[0] != '3' || len(bytes.Trim(d[8:12], "0")) > 0 {
			p.tail(d[:12], low)
			return
		}
		copy(d[:16], net(string(d[:16])))
	case len(d) == 32 && bytes.HasPrefix(d, []byte("00000000000000000000ffff")): // IPv4-mapped
		copy(d[24:31], net(string(d[24:31])))
	case len(d) == 32:
		if d[0] == '2' || d[0] == '3' || isULA(string(d[:16])) { // global and unique local unicast
			copy(d[:16], net(string(d[:16])))
		}
		p.interfaceID(d[16:], low)
	default:
		p.tail(d, low)
	}
}

// interfaceID replaces the device-specific part of an EUI-64 or of the GUID of a device, and all of another one: it is
// random or assigned (RFC 7217, RFC 8981).
func (p *pseudonyms) interfaceID(d []byte, low func(string) string) {
	if string(d[6:10]) == "fffe" || p.vendors[string(d[:6])] {
		p.tail(d, low)
	} else if strings.Trim(string(d[:15]), "0") != "" {
		copy(d[:15], low(string(d[:15])))
	}
}

// vendors returns the vendor prefixes of the addresses and GUIDs in an archive.
func vendors(a *capture.Archive) set {
	out := set{}
	a.Each(func(e *capture.Entry) {
		switch path.Base(e.Path) {
		case "address", "perm_hwaddr", "node_guid", "sys_image_guid":
			d := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(string(e.Data)), ":", ""))
			if e.Kind == capture.File && (len(d) == 12 || len(d) == 16) {
				out.add(d[:6])
			}
		}
	})
	return out
}

// tail replaces the upper five of the last six digits. All zeros identify no device.
func (p *pseudonyms) tail(d []byte, low func(string) string) {
	t := d[len(d)-6 : len(d)-1]
	if strings.Trim(string(t), "0") != "" {
		copy(t, low(string(t)))
	}
}

func group(d []byte, n int, separator string) string {
	var parts []string
	for ; len(d) > 0; d = d[n:] {
		parts = append(parts, string(d[:n]))
	}
	return strings.Join(parts, separator)
}
