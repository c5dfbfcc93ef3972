package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/host/rooted"
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
	a := &Archive{Rounds: []Round{{Entries: []Entry{
		{Path: "run/systemd/netif/lldp/3", Data: b},
		{Path: "sys/class/net/eth0/address", Data: []byte("9c:05:91:7a:7b:70\n")},
	}}}}
	Anonymise(a, "secret-leaf", "secret-spine")
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

// networkd answers with frames or an error.
type networkd struct {
	frames []byte
	err    error
}

func (n networkd) LLDPNeighbours(context.Context, string, uint64) ([]byte, error) {
	return n.frames, n.err
}

// TestNetworkdRecorded: an answer of networkd is recorded as the file of an earlier version; without one there is the
// file itself, if any.
func TestNetworkdRecorded(t *testing.T) {
	const file = "run/systemd/netif/lldp/5"
	frames, err := lldp.Networkd([]byte(`{"Neighbors":[{"InterfaceIndex":5,"Neighbors":[`+
		`{"RawChassisID":[4,156,5,145,122,123,112],"RawPortID":[7,101,116,112,52,97],"PortDescription":"Ethernet24","SystemName":"secret-leaf","EnabledCapabilities":20}]}]}`), 5)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, d := range []string{"sys", "proc", "run/systemd/netif"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	machine, err := live.OpenLive(rooted.Paths{RootFS: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = machine.Close() })
	for _, c := range []struct {
		name string
		networkd
		want []byte
		read error
	}{
		{"an answer", networkd{frames: frames}, frames, nil},
		{"no neighbours", networkd{}, nil, nil},
		{"no permission", networkd{err: access.Denied("socket")}, nil, syscall.EACCES},
		{"not active", networkd{err: &access.Error{Op: "query", Path: "socket", Err: syscall.ENOENT}}, nil, syscall.ENOENT},
		{"an earlier version", networkd{err: &access.Error{Op: "query", Path: "socket", Err: syscall.EOPNOTSUPP}}, nil, syscall.ENOENT},
		{"no answer", networkd{err: access.ErrLate}, nil, syscall.ENOENT},
	} {
		t.Run(c.name, func(t *testing.T) {
			inner := &host.Host{Files: machine.Files, Networkd: c.networkd}
			p := replayed(t, inner, func(h *host.Host) { _, _ = h.Networkd.LLDPNeighbours(t.Context(), "eth0", 5) })
			got, err := p.Read(file, nil)
			if p.Host().Networkd != nil || !bytes.Equal(got, c.want) || !errors.Is(err, c.read) {
				t.Errorf("%q, %v, want %q, %v", got, err, c.want, c.read)
			}
		})
	}
	a := &Archive{Rounds: []Round{{Entries: []Entry{{Path: file, Data: frames}}}}}
	Anonymise(a)
	got := neighbours(a.Rounds[0].Entries[0].Data)
	if len(got) != 1 || got[0].SystemName != "switch-1" || got[0].PortDescription != "Ethernet24" ||
		strings.Contains(got[0].ChassisID, "7a:7b") || !got[0].Forwards() {
		t.Errorf("%+v", got)
	}
	if NewRecorder(&host.Host{}).Host().Networkd != nil {
		t.Error("a host without networkd is asked")
	}
}

// TestLinkAnswers: the node description of the far end is arbitrary text and is restored unchanged.
func TestLinkAnswers(t *testing.T) {
	n := func(v uint64) *uint64 { return &v }
	sets := func(widths, speeds uint64) host.IBSets { return host.IBSets{Widths: n(widths), Speeds: n(speeds)} }
	enabled := host.IBEnd{Enabled: sets(0x13, 0x7f)} // all that older captures contain
	for _, l := range []host.IBLink{
		{},
		{Own: enabled, SMLID: n(1)},
		{Own: enabled, Far: host.IBEnd{Enabled: sets(2, 0)}, FarType: n(2), FarPort: n(31)},
		{Own: host.IBEnd{Supported: sets(1, 2), Enabled: sets(3, 4), Active: sets(5, 6)}, Far: host.IBEnd{Supported: sets(7, 8), Enabled: sets(9, 10), Active: sets(11, 12)}, FarType: n(2), FarPort: n(31), FarLID: n(5), FarGUID: "b83f:d203:00a1:c0de", FarDescription: "MF0;ib-leaf-1:MQM9700/U1"},
		{FarPort: n(1), FarGUID: "b83f:d203:00a1:c0de", FarDescription: "a: b%\n-- c --\x00\xff"},
		{FarPort: n(1), FarGUID: "b83f:d203:00a1:c0de"},
	} {
		got, err := decodeLink("x", encodeLink(l))
		if err != nil || !reflect.DeepEqual(got, l) {
			t.Errorf("%+v, %v, want %+v", got, err, l)
		}
	}
	for _, text := range []string{"far_port: x\n", "far_description: %zz\n", "far_port\n"} {
		if l, err := decodeLink("x", []byte(text)); err == nil {
			t.Errorf("%q: %+v", text, l)
		}
	}
}

// TestAnonymiseLink: the far end of an InfiniBand link has the pseudonym of the system in the configuration.
func TestAnonymiseLink(t *testing.T) {
	a := &Archive{Rounds: []Round{{Entries: []Entry{{
		Path: "subnet/mlx5_0/1/link",
		Data: []byte("far_port: 31\nfar_guid: b83f:d203:007a:7b70\nfar_description: MF0;secret-leaf:MQM9700/U1\n"),
	}}}}}
	Anonymise(a, "secret-leaf.secret.com", "another")
	l, err := decodeLink("x", a.Rounds[0].Entries[0].Data)
	if err != nil || l.System() != "switch-2" || *l.FarPort != 31 || strings.Contains(l.FarGUID, "7a:7b") {
		t.Errorf("%+v, %v", l, err)
	}
}
