package anonymise

import (
	"encoding/binary"
	"strings"
	"testing"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/lldp"
)

// TestAnonymiseNeighbours: the relations in LLDP frames are preserved, and nothing identifies the site.
func TestAnonymiseNeighbours(t *testing.T) {
	var b []byte
	for _, tlvs := range [][]lldp.TLV{
		{
			{Type: lldp.TypeChassisID, Value: []byte("\x04\x9c\x05\x91\x7a\x7b\x70")},
			{Type: lldp.TypePortID, Value: []byte("\x07etp4a")},
			{Type: lldp.TypeTTL, Value: []byte{0, 120}},
			{Type: lldp.TypeSystemName, Value: []byte("Secret-Leaf.secret.com")},
			{Type: lldp.TypeSystemDescription, Value: []byte("secret software")},
			{Type: lldp.TypeCapabilities, Value: []byte{0, 0x14, 0, 0x14}},
			{Type: lldp.TypeManagementAddress, Value: []byte("\x05\x01\x7a\x7b\x70\x03\x02\x00\x00\x00\x02\x00")},
			{Type: lldp.TypePortDescription, Value: []byte("Ethernet24")},
			{Type: 127, Value: []byte("secret")},
		},
		{
			{Type: lldp.TypeChassisID, Value: []byte("\x07secret-dpu")},
			{Type: lldp.TypePortID, Value: []byte("\x03\x9c\x05\x91\x7a\x7b\x70")},
			{Type: lldp.TypeTTL, Value: []byte{0, 120}},
			{Type: lldp.TypePortDescription, Value: []byte("secret words 1")},
		},
	} {
		f := lldp.Frame([6]byte{0x9c, 0x05, 0x91, 0x7a, 0x7b, 0x70}, tlvs...)
		b = append(binary.LittleEndian.AppendUint64(b, uint64(len(f))), f...)
	}
	a := &capture.Archive{Rounds: []capture.Round{{Entries: []capture.Entry{
		{Path: "run/systemd/netif/lldp/3", Data: b},
		{Path: "sys/class/net/eth0/address", Data: []byte("9c:05:91:7a:7b:70\n")},
	}}}}
	Archive(a, "secret-leaf", "secret-spine")
	file, address := a.Rounds[0].Entries[0].Data, strings.TrimSpace(string(a.Rounds[0].Entries[1].Data))
	if s := strings.ToLower(string(file)); strings.Contains(s, "secret") || strings.Contains(s, "\x7a\x7b\x70") ||
		strings.Contains(address, "7a:7b") {
		t.Errorf("%q, %s", file, address)
	}
	got := neighbours(file)
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	leaf, dpu := got[0], got[1]
	if leaf.SystemName != "switch-2" || leaf.ChassisID != address || leaf.Source != address || leaf.PortID != "etp4a" ||
		leaf.PortDescription != "Ethernet24" || !leaf.Forwards() || leaf.TTL.Seconds() != 120 {
		t.Errorf("%+v", leaf)
	}
	if dpu.ChassisID != "switch-1" || dpu.PortID != address || dpu.SystemName != "" ||
		dpu.PortDescription != "" || dpu.Forwards() {
		t.Errorf("%+v", dpu)
	}
	if SystemIn(Systems(a, "x"), "SWITCH-2.example.com") == "" {
		t.Error("a name with its domain is another")
	}
}

// TestAnonymiseLink: the far end of an InfiniBand link has the pseudonym of the system in the configuration.
func TestAnonymiseLink(t *testing.T) {
	a := &capture.Archive{Rounds: []capture.Round{{Entries: []capture.Entry{{
		Path: "subnet/mlx5_0/1/link",
		Data: []byte("far_port: 31\nfar_guid: b83f:d203:007a:7b70\nfar_description: MF0;secret-leaf:MQM9700/U1\n"),
	}}}}}
	Archive(a, "secret-leaf.secret.com", "another")
	l, err := answer.Decode[host.IBLink]("x", a.Rounds[0].Entries[0].Data)
	if err != nil || l.System() != "switch-2" || *l.FarPort != 31 || strings.Contains(l.FarGUID, "7a:7b") {
		t.Errorf("%+v, %v", l, err)
	}
}

// TestAnonymiseNetworkd: an answer of networkd has pseudonyms like the frames of its file.
func TestAnonymiseNetworkd(t *testing.T) {
	const file = "run/systemd/netif/lldp/5"
	frames, err := lldp.Networkd([]byte(`{"Neighbors":[{"InterfaceIndex":5,"Neighbors":[`+
		`{"RawChassisID":[4,156,5,145,122,123,112],"RawPortID":[7,101,116,112,52,97],"PortDescription":"Ethernet24","SystemName":"secret-leaf","EnabledCapabilities":20}]}]}`), 5)
	if err != nil {
		t.Fatal(err)
	}
	a := &capture.Archive{Rounds: []capture.Round{{Entries: []capture.Entry{{Path: file, Data: frames}}}}}
	Archive(a)
	got := neighbours(a.Rounds[0].Entries[0].Data)
	if len(got) != 1 || got[0].SystemName != "switch-1" || got[0].PortDescription != "Ethernet24" ||
		strings.Contains(got[0].ChassisID, "7a:7b") || !got[0].Forwards() {
		t.Errorf("%+v", got)
	}
}
