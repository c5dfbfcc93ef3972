package foreign_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/lldp"
	"rdma_exporter/test/machines"
)

// hostile returns a recorded machine with additional parts, in which each text file has its own hostile text, and some
// names of devices and interfaces are hostile.
func hostile(t *testing.T, m *marks, base string, parts map[string]string, names []string) *capture.Archive {
	t.Helper()
	a := machines.Load(t, base)
	for path, text := range parts {
		a.Put(path, []byte(text))
	}
	thin(a)
	for i := range a.Rounds {
		for j := range a.Rounds[i].Entries {
			m.spoilEntry(&a.Rounds[i].Entries[j], names)
		}
	}
	a.SetConfig([]byte(m.config()))
	a.Meta.Hostname += m.payload("capture.json hostname")
	a.Meta.Kernel += m.payload("capture.json kernel")
	return a
}

// thin keeps every fourth round, with the changes of those before it.
func thin(a *capture.Archive) {
	last := len(a.Rounds) - 1
	var kept []capture.Round
	changes := map[string]capture.Entry{}
	for i, r := range a.Rounds {
		for _, e := range r.Entries {
			changes[e.Path] = e
		}
		if i%4 == 0 || i == last {
			r.Entries = nil
			for _, path := range slices.Sorted(maps.Keys(changes)) {
				r.Entries = append(r.Entries, changes[path])
			}
			kept, changes = append(kept, r), map[string]capture.Entry{}
		}
	}
	a.Rounds = kept
}

// from returns the text of a file of another machine.
func from(t *testing.T, base, path string) string {
	t.Helper()
	for _, e := range machines.Load(t, base).Rounds[0].Entries {
		if e.Path == path {
			return string(e.Data)
		}
	}
	t.Fatalf("%s has no %s", base, path)
	return ""
}

func (m *marks) spoilEntry(e *capture.Entry, names []string) {
	name := fileName(e.Path)
	for _, name := range names {
		var evil string
		switch {
		case strings.HasPrefix(name, "mlx5_"):
			evil = m.nodeName("device " + name)
		case strings.HasPrefix(name, "enp"):
			evil = m.short("netdev " + name)
		default:
			evil = name + m.nodeName("directory "+name)
		}
		whole := regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`)
		rename := func(s string) string { return whole.ReplaceAllLiteralString(s, evil) }
		e.Path, e.Target = rename(e.Path), rename(e.Target)
		if !strings.Contains(evil, "\n") && utf8.Valid(e.Data) {
			e.Data = []byte(rename(string(e.Data)))
		}
	}
	if e.Kind != capture.File {
		return
	}
	switch {
	case strings.HasPrefix(name, "run/systemd/netif/lldp/"):
		e.Data = m.frame(strings.HasSuffix(e.Path, "5"))
	case strings.HasSuffix(name, "/vpd"):
		e.Data = m.vpd()
	case isText.Match(e.Data) && ofFiles.MatchString(name) && !parsedFiles.MatchString(name):
		evil := m.payload(name)
		if printableFiles.MatchString(name) {
			evil = m.printable(name)
		}
		first, rest, _ := bytes.Cut(e.Data, []byte("\n"))
		e.Data = []byte(string(first) + evil + "\n" + string(rest))
	}
}

// fileName returns the path without numbers and names of devices.
func fileName(path string) string {
	path = deviceNumber.ReplaceAllString(path, "N")
	if i := strings.LastIndex(path, "/pci"); strings.HasPrefix(path, "sys/devices/") && i >= 0 {
		parts := strings.Split(path, "/")
		return "sys/devices/pci…/" + strings.Join(parts[len(parts)-2:], "/")
	}
	return path
}

var (
	deviceNumber = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f:.]*`)
	isText       = regexp.MustCompile(`[g-zG-Z]`)
	ofFiles      = regexp.MustCompile(`^(?:sys|proc|etc|run|usr|lib|boot)/`)
	// printableFiles are not readable with control characters: identityText of package collector.
	printableFiles = regexp.MustCompile(`/(?:hca_type|board_id|fw_ver)$`)
	// parsedFiles have numbers and words of the kernel: with any other content they are not readable.
	parsedFiles = regexp.MustCompile(`/(?:state|phys_state|rate|link_layer|cap_mask|sm_lid|lid|class|device|vendor|dev_id|` +
		`flags|hw_rev|config|current_link_speed|max_link_speed|operstate|mode|mii_status|slaves|bonding_masters|` +
		`xmit_hash_policy|initstate|ibdev|ports|arp|route|ipv6_route|kallsyms|stats)$|/gid_attrs/|/gids/|/ndevs/|/types/`)
)

// frame returns an LLDP frame of networkd with hostile texts, with or without names in addition to the IDs.
func (m *marks) frame(named bool) []byte {
	text := func(kind byte, prefix, name string) lldp.TLV {
		return lldp.TLV{Type: kind, Value: []byte(prefix + m.payload("LLDP "+name))}
	}
	id := func(kind byte, prefix, name string) lldp.TLV { // one that is not printable is shown as hexadecimal digits
		return lldp.TLV{Type: kind, Value: []byte(prefix + m.printable("LLDP "+name))}
	}
	tlvs := []lldp.TLV{id(1, "\x07", "chassis ID"), id(2, "\x05", "port ID"), {Type: 3, Value: []byte{0, 120}}}
	if named {
		tlvs[1].Value = []byte("\x0517") // a number
		tlvs = append(tlvs, text(4, "", "port description"), text(5, "", "system name"), text(6, "", "system description"))
	}
	tlvs = append(tlvs, lldp.TLV{Type: 7, Value: []byte{0, 20, 0, 20}})
	frame := lldp.Frame([6]byte{0x44, 0x38, 0x8a}, tlvs...)
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(frame))), frame...)
}

// vpd returns vital product data with hostile texts.
func (m *marks) vpd() []byte {
	field := func(key string) string {
		text := m.payload("VPD " + key)
		return key + string(rune(len(text))) + text
	}
	name, fields := m.payload("VPD name"), field("PN")+field("V0")
	length := func(s string) string { return string([]byte{byte(len(s)), byte(len(s) >> 8)}) }
	return []byte("\x82" + length(name) + name + "\x90" + length(fields) + fields + "\x78")
}

// config returns the exporter's configuration with hostile texts.
func (m *marks) config() string {
	text := func(name string) string { return strconv.QuoteToASCII(m.payload("config " + name)) }
	glob := func(name string) string {
		return strconv.QuoteToASCII(strings.ReplaceAll(m.payload("config "+name), "[", `\[`))
	}
	return fmt.Sprintf(`cabling:
  - match: {device: mlx5_0}
    system: %s
    port_id: %s
pins:
  - match: {device: %s}
    present: true
  - match: {hostname: "*"}
    ofed: %s
ignore:
  - match: {netdev: %s}
setup:
  - match: {device: "*"}
    want: {netdev_mtu: %s}
`, text("system"), text("port_id"), glob("device"), glob("ofed"), glob("netdev"), glob("want"))
}
