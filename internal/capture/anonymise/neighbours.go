package anonymise

import (
	"encoding/binary"
	"encoding/hex"
	"net"
	"strings"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/lazy"
	"rdma_exporter/internal/lldp"
)

// neighbours returns the readable neighbours of a file.
func neighbours(b []byte) (out []lldp.Neighbour) {
	for len(b) >= 8 {
		n := binary.LittleEndian.Uint64(b)
		if b = b[8:]; n > uint64(len(b)) {
			break
		}
		if x, err := lldp.Parse(b[:n]); err == nil {
			out = append(out, x)
		}
		b = b[n:]
	}
	return out
}

// Systems assigns pseudonyms to the systems named in LLDP frames and answers of the archive, and to more. A name with
// and without its domain is one system.
func Systems(a *capture.Archive, more ...string) map[string]string {
	names := set{}
	for _, s := range more {
		names.add(shortName(s))
	}
	a.Each(func(e *capture.Entry) {
		switch {
		case e.Kind != capture.File:
		case answer.IsSubnet(e.Path):
			if l, err := answer.Decode[host.IBLink](e.Path, e.Data); err == nil && l.FarGUID != "" {
				names.add(shortName(l.System()))
			}
		case answer.IsLLDP(e.Path):
			for _, n := range neighbours(e.Data) {
				names.add(shortName(n.SystemName))
				if !isMAC(n.ChassisID) {
					names.add(shortName(n.ChassisID))
				}
			}
		}
	})
	return names.numbered("switch-%d")
}

// SystemIn returns the pseudonym of a system.
func SystemIn(systems map[string]string, name string) string { return systems[shortName(name)] }

func shortName(s string) string {
	short, _, _ := strings.Cut(strings.ToLower(s), ".")
	return short
}

func isMAC(s string) bool {
	a, err := net.ParseMAC(s)
	return err == nil && len(a) == 6
}

// addressesIn returns the addresses in a file of neighbours, as text.
func addressesIn(b []byte) string {
	var out strings.Builder
	for _, n := range neighbours(b) {
		out.WriteString(n.Source + " " + n.ChassisID + " " + n.PortID + "\n")
	}
	return out.String()
}

// interfaceName matches default names of switch ports.
var interfaceName = lazy.Regexp(`^[A-Za-z]+-?[0-9]+(?:[/:.][0-9]+)*$`)

// frames rewrites the neighbours of a file with pseudonyms, without the software and management addresses of switches.
func (p *pseudonyms) frames(b []byte) (out []byte) {
	for _, n := range neighbours(b) {
		tlvs := []lldp.TLV{
			{Type: lldp.TypeChassisID, Value: p.lldpID(n.ChassisID, 4, SystemIn(p.systems, n.ChassisID))},
			{Type: lldp.TypePortID, Value: p.lldpID(n.PortID, 3, n.PortID)},
			{Type: lldp.TypeTTL, Value: binary.BigEndian.AppendUint16(nil, uint16(n.TTL.Seconds()))},
		}
		if n.SystemName != "" {
			tlvs = append(tlvs, lldp.TLV{Type: lldp.TypeSystemName, Value: []byte(SystemIn(p.systems, n.SystemName))})
		}
		tlvs = append(tlvs, lldp.TLV{
			Type:  lldp.TypeCapabilities,
			Value: binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, n.Enabled), n.Enabled),
		})
		if interfaceName().MatchString(n.PortDescription) {
			tlvs = append(tlvs, lldp.TLV{Type: lldp.TypePortDescription, Value: []byte(n.PortDescription)})
		}
		out = lldp.Save(out, lldp.Frame([6]byte(p.mac(n.Source)), tlvs...))
	}
	return out
}

// lldpID returns an address with its subtype, or a locally assigned text (7 in tables 8-2 and 8-3).
func (p *pseudonyms) lldpID(id string, subtype byte, text string) []byte {
	if isMAC(id) {
		return append([]byte{subtype}, p.mac(id)...)
	}
	return append([]byte{7}, text...)
}

// mac returns the pseudonym of an address.
func (p *pseudonyms) mac(s string) []byte {
	b, _ := hex.DecodeString(strings.ReplaceAll(p.addresses(s), ":", "")) // of a parsed address
	return b
}

// link rewrites the answers of both ends of a link with a pseudonym for the far end.
func (p *pseudonyms) link(name string, data []byte) []byte {
	return []byte(p.addresses(string(changed(name, data, func(l *host.IBLink) {
		l.FarDescription = SystemIn(p.systems, l.System())
	}))))
}
