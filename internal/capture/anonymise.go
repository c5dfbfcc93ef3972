package capture

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"rdma_exporter/internal/pci"
)

// Anonymise replaces host names in content, and in content and paths the device-specific half of MAC addresses, GUIDs and
// GIDs, and the networks of GIDs that stand for IP addresses. Relations stay: one address has one pseudonym wherever and in
// whichever form it appears (a MAC, the GUID that a driver makes of it, the GID with its EUI-64), and neighbours stay
// neighbours. The vendor's half of an address stays. Numbers are given in the order of the addresses, so that the same
// machine gives the same pseudonyms. So do UUIDs and serial numbers of GPUs. Of a process's settings those stay that name no host, user or file. Of vital product data the product stays. A configuration file has to be reduced by
// site.OfHost before; cabled are the systems that it names. Of what switches announce their ports stay, and a pseudonym.
func Anonymise(a *Archive, cabled ...string) {
	p := &pseudonyms{low: map[string]string{}, nets: map[string]string{}, systems: Systems(a, cabled...)}
	if !utf8.ValidString(a.Meta.Hostname) { // that of a header never is
		a.Meta.Hostname = HostPseudonym
	}
	if name := strings.Trim(a.Meta.Hostname, "."); name != "" {
		short, _, _ := strings.Cut(name, ".")
		p.host = regexp.MustCompile(`\b(?:` + regexp.QuoteMeta(name) + "|" + regexp.QuoteMeta(short) + `)\b`)
	}
	p.collect(a)
	if a.Meta.Anonymised = true; a.Meta.Hostname != "" {
		a.Meta.Hostname = HostPseudonym
	}
	for i := range a.Rounds {
		for j := range a.Rounds[i].Entries {
			e := &a.Rounds[i].Entries[j]
			e.Path, e.Target = p.addresses(e.Path), p.addresses(e.Target)
			switch {
			case e.Path == configPath: // its keys may be words that a host is called; site.OfHost names the host in it
				e.Data = []byte(p.addresses(string(e.Data)))
			case e.Kind == File && isLLDP(e.Path):
				e.Data = p.frames(e.Data)
			case e.Kind == File && isSubnet(e.Path):
				e.Data = p.link(e.Path, e.Data)
			case e.Kind == File && isBareID(e.Path):
				e.Data = []byte(p.bare(string(e.Data)))
			case e.Kind == File && path.Base(e.Path) == "vpd":
				v, _ := pci.ParseVPD(e.Data) // what cannot be read is left out
				e.Data = v.Public().Bytes()
			case e.Kind == File && strings.HasPrefix(e.Path, "sys/devices/") && path.Base(e.Path) == "config":
				e.Data = []byte(p.content(string(pci.WithoutSerial(e.Data))))
			case e.Kind == File && strings.HasPrefix(e.Path, processDir+"/"):
				e.Data = []byte(p.content(string(publicProcess(e.Data))))
			case e.Kind == File && isEEPROM(e.Path):
				e.Data = p.module(e.Path, e.Data)
			case e.Kind == File && isGPU(e.Path):
				e.Data = p.gpu(e.Path, e.Data)
			case e.Kind == File:
				e.Data = []byte(p.content(string(e.Data)))
			}
		}
	}
}

var (
	macPattern  = regexp.MustCompile(`\b[0-9a-f]{2}(?::[0-9a-f]{2}){5,19}\b`)
	guidPattern = regexp.MustCompile(`\b[0-9a-f]{4}(?::[0-9a-f]{4}){3,7}\b`)
)

// HostPseudonym is what Anonymise calls the machine.
const HostPseudonym = "host-1"

type pseudonyms struct {
	host    *regexp.Regexp    // the host's name, with its domain or without; nil if it has none
	low     map[string]string // 20 bits of an address (5 hex digits) → 5 hex digits; the last digit of 24 stays
	serials map[string]string // of modules and GPUs
	uuids   map[string]string // of GPUs and NVLink domains
	systems map[string]string // of switches, by their names
	nets    map[string]string // the first 28 bits of an IPv4 address, or 64 of a global IPv6 one, in hex digits → the same
}

// collect gives a pseudonym to each address in order.
func (p *pseudonyms) collect(a *Archive) {
	low, nets := map[string]bool{}, map[string]bool{}
	for _, r := range a.Rounds {
		for _, e := range r.Entries {
			text := string(e.Data)
			if e.Kind == File && isLLDP(e.Path) {
				text = addressesIn(e.Data)
			}
			p.each(text, func(digits string) string { low[digits] = true; return digits },
				func(digits string) string { nets[digits] = true; return digits })
		}
	}
	collectBare(a, low)
	serials := map[string]bool{}
	collectSerials(a, serials)
	uuids := map[string]bool{}
	collectGPUs(a, uuids, serials)
	p.serials, p.uuids = numberSerials(serials), numberUUIDs(uuids)
	number(p.low, low, 0x10001)
	number(p.nets, nets, 0x0a0a000)
}

// ipv6Documentation is 2001:db8::/32, RFC 3849.
const ipv6Documentation = 0x20010db8_0000_0000

func number(to map[string]string, from map[string]bool, first int) {
	var keys []string
	for k := range from {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for i, k := range keys {
		n := first + i
		if len(k) == 16 {
			n = ipv6Documentation + i
		}
		to[k] = fmt.Sprintf("%0*x", len(k), n)
	}
}

func (p *pseudonyms) addresses(s string) string {
	return p.each(s, func(d string) string { return or(p.low[d], d) }, func(d string) string { return or(p.nets[d], d) })
}

// content replaces addresses, and host names where they are words of their own: a host may be called dev or mlx.
func (p *pseudonyms) content(s string) string {
	s = p.gpuUUIDs(p.addresses(s))
	if p.host != nil {
		s = p.host.ReplaceAllLiteralString(s, HostPseudonym)
	}
	return s
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// each finds the device-specific digits of every address and puts in what low and net make of them.
func (p *pseudonyms) each(s string, low, net func(string) string) string {
	s = macPattern.ReplaceAllStringFunc(s, func(m string) string {
		d := []byte(strings.ReplaceAll(m, ":", ""))
		p.tail(d, low)
		return group(d, 2)
	})
	s = guidPattern.ReplaceAllStringFunc(s, func(m string) string {
		d := []byte(strings.ReplaceAll(m, ":", ""))
		switch {
		case len(d) == 32 && len(bytes.Trim(d[12:], "0")) == 0: // iWARP: the MAC, then zeros
			p.tail(d[:12], low)
		case len(d) == 32 && bytes.HasPrefix(d, []byte("00000000000000000000ffff")): // IPv4-mapped
			copy(d[24:31], net(string(d[24:31])))
		case len(d) == 32 && (d[0] == '2' || d[0] == '3'): // global unicast
			copy(d[:16], net(string(d[:16])))
			p.tail(d, low)
		default:
			p.tail(d, low)
		}
		return group(d, 4)
	})
	return s
}

// tail replaces the upper five of the last six digits. All-zero tails name no device.
func (p *pseudonyms) tail(d []byte, low func(string) string) {
	t := d[len(d)-6 : len(d)-1]
	if strings.Trim(string(t), "0") != "" {
		copy(t, low(string(t)))
	}
}

func group(d []byte, n int) string {
	var parts []string
	for ; len(d) > 0; d = d[n:] {
		parts = append(parts, string(d[:n]))
	}
	return strings.Join(parts, ":")
}
