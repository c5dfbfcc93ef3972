package foreign_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/lldp"
	"rdma_exporter/test/machines"
)

// hostile is a recorded machine with parts of others, in which each file of text has a hostile one of its own, and some
// names of devices and interfaces are hostile.
func hostile(t *testing.T, m *marks, base string, parts map[string]string, names ...string) *capture.Archive {
	t.Helper()
	a := machines.Load(t, base)
	for path, from := range parts {
		copied(t, a, machines.Load(t, from), path)
	}
	for i := range a.Rounds {
		for j := range a.Rounds[i].Entries {
			m.spoilEntry(&a.Rounds[i].Entries[j], names)
		}
	}
	a.Put("etc/nccl.conf", []byte("NCCL_IB_HCA="+m.payload("etc/nccl.conf")+"\nNCCL_IB_GID_INDEX="+m.payload("etc/nccl.conf number")))
	a.SetConfig([]byte(m.config()))
	a.Meta.Hostname += m.payload("capture.json hostname")
	a.Meta.Kernel += m.payload("capture.json kernel")
	return a
}

// copied puts entries of another machine, by the beginning of their path, into the first round.
func copied(t *testing.T, a, from *capture.Archive, path string) {
	t.Helper()
	n := 0
	for _, e := range from.Rounds[0].Entries {
		if strings.HasPrefix(e.Path, path) && e.Kind == capture.File {
			a.Put(e.Path, e.Data)
			n++
		}
	}
	if n == 0 {
		t.Errorf("no %s", path)
	}
}

func (m *marks) spoilEntry(e *capture.Entry, names []string) {
	for _, name := range names {
		var evil string
		if strings.HasPrefix(name, "mlx") {
			evil = m.nodeName("device " + name)
		} else {
			evil = m.short("netdev " + name)
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
	name := fileName(e.Path)
	switch {
	case strings.HasPrefix(name, "run/systemd/netif/lldp/"):
		e.Data = m.frame(e.Data)
	case strings.HasSuffix(name, "/vpd"):
		e.Data = m.vpd()
	case isText.Match(e.Data) && ofFiles.MatchString(name) && !parsedFiles.MatchString(name):
		first, rest, _ := bytes.Cut(e.Data, []byte("\n"))
		e.Data = []byte(string(first) + m.payload(name) + "\n" + string(rest))
	}
}

// fileName is the path without numbers and names of devices.
func fileName(path string) string {
	path = deviceNumber.ReplaceAllString(path, "N")
	if i := strings.LastIndex(path, "/pci"); strings.HasPrefix(path, "sys/devices/") && i >= 0 {
		return "sys/devices/pci…" + path[strings.LastIndex(path, "/"):]
	}
	return path
}

var (
	deviceNumber = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f:.]*`)
	isText       = regexp.MustCompile(`[g-zG-Z]`)
	ofFiles      = regexp.MustCompile(`^(?:sys|proc|etc|run|usr|lib|boot)/`)
	// parsedFiles have numbers and words of the kernel: with any other content they are not readable (TestGarbled).
	parsedFiles = regexp.MustCompile(`/(?:state|phys_state|rate|link_layer|cap_mask|sm_lid|lid|class|device|vendor|dev_id|` +
		`flags|hw_rev|config|current_link_speed|max_link_speed|operstate|mode|mii_status|slaves|bonding_masters|` +
		`xmit_hash_policy|initstate|ibdev|ports|arp|route|ipv6_route|kallsyms|stats)$|/gid_attrs/|/gids/|/ndevs/`)
)

// frame is an LLDP frame of networkd with hostile texts in place of those of the neighbour.
func (m *marks) frame(old []byte) []byte {
	text := func(kind byte, prefix, name string) lldp.TLV {
		return lldp.TLV{Type: kind, Value: []byte(prefix + m.payload("LLDP "+name))}
	}
	frame := lldp.Frame([6]byte{0x44, 0x38, 0x8a}, text(1, "\x07", "chassis ID"), text(2, "\x05", "port ID"),
		lldp.TLV{Type: 3, Value: []byte{0, 120}}, text(4, "", "port description"), text(5, "", "system name"),
		text(6, "", "system description"), lldp.TLV{Type: 7, Value: []byte{0, 20, 0, 20}})
	return append(append([]byte{}, old[:0]...), append([]byte{byte(len(frame)), byte(len(frame) >> 8), 0, 0, 0, 0, 0, 0}, frame...)...)
}

// vpd is vital product data with hostile texts.
func (m *marks) vpd() []byte {
	field := func(key string) string {
		text := m.payload("VPD " + key)
		return key + string(rune(len(text))) + text
	}
	name, fields := m.payload("VPD name"), field("PN")+field("V0")
	length := func(s string) string { return string([]byte{byte(len(s)), byte(len(s) >> 8)}) }
	return []byte("\x82" + length(name) + name + "\x90" + length(fields) + fields + "\x78")
}

// config is the exporter's configuration with hostile texts.
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
