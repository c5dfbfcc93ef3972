package mad

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/mad/perf"
)

// answerTo makes the answer of an agent.
func answerTo(d *Datagram, status uint16, data []byte) *Datagram {
	a := *d
	a.MAD[atMethod] = methodAnswer
	if a.Class() == ClassSubnetDirected {
		status |= 0x8000
	}
	binary.BigEndian.PutUint16(a.MAD[atStatus:], status)
	copy(a.MAD[atData:], data)
	return &a
}

func TestEncode(t *testing.T) {
	path := Local()
	for _, port := range []uint8{1, 18, 3} {
		path, _ = path.Hop(port)
	}
	for _, tt := range []struct {
		name   string
		q      request
		lid    uint16
		qp     uint32
		pkey   uint16
		header string // of the common header
		at     map[int]byte
	}{
		{
			name: "directed",
			q:    request{class: ClassSubnetDirected, attribute: attrPortInfo, modifier: 7, route: path}, lid: 0xffff,
			header: "\x01\x81\x01\x01\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x2a\x00\x15\x00\x00\x00\x00\x00\x07",
			at:     map[int]byte{32: 0xff, 33: 0xff, 34: 0xff, 35: 0xff, 129: 1, 130: 18, 131: 3},
		},
		{
			name: "by LID", q: request{class: ClassSubnetLID, attribute: attrSMInfo, route: ToLID(17)}, lid: 17,
			header: "\x01\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x2a\x00\x20\x00\x00\x00\x00\x00\x00",
		},
		{
			name: "performance",
			q:    request{class: ClassPerformance, attribute: perf.AttrPortCounters, port: 9, route: ToLID(17)},
			lid:  17, qp: 1, pkey: 2,
			header: "\x01\x04\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x2a\x00\x12\x00\x00\x00\x00\x00\x00",
			at:     map[int]byte{65: 9},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var want, got Datagram
			want.LID, want.QP, want.PKeyIndex = tt.lid, tt.qp, tt.pkey
			copy(want.MAD[:], tt.header)
			for at, b := range tt.at {
				want.MAD[at] = b
			}
			tt.q.encode(&got, 42, 2)
			if got != want {
				t.Errorf("got\n%+v\nwant\n%+v", got, want)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		spoil  func(*Datagram)
		status uint16
		want   string
	}{
		{name: "good"},
		{name: "busy", status: 1, want: "agent is busy"},
		{name: "redirect", status: 2, want: "agent redirects, redirection is not supported"},
		{name: "method", status: 2 << 2, want: "method not supported"},
		{name: "attribute", status: 3 << 2, want: "attribute not supported"},
		{name: "field", status: 7 << 2, want: "invalid attribute or modifier"},
		{name: "code that is reserved", status: 4 << 2, want: "status 0x0010"},
		{name: "class's own status", status: 0x100, want: "status 0x0100"},
		{name: "other class", spoil: func(d *Datagram) { d.MAD[1] = 1 }, want: "malformed answer: version 1, class 0x01, method 0x81, attribute 0x0015"},
		{name: "other attribute", spoil: func(d *Datagram) { d.MAD[17] = 0x11 }, want: "malformed answer: version 1, class 0x81, method 0x81, attribute 0x0011"},
		{name: "own request", spoil: func(d *Datagram) { d.MAD[3] = 1 }, want: "malformed answer: version 1, class 0x81, method 0x01, attribute 0x0015"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := request{class: ClassSubnetDirected, attribute: attrPortInfo}
			var d Datagram
			q.encode(&d, 1, 0)
			a := answerTo(&d, tt.status, bytes.Repeat([]byte{7}, 64))
			if tt.spoil != nil {
				tt.spoil(a)
			}
			data, err := q.decode(a)
			switch {
			case tt.want == "" && (err != nil || len(data) != 64 || data[63] != 7):
				t.Errorf("%v %v", data, err)
			case tt.want != "" && (err == nil || err.Error() != tt.want):
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

func TestRoute(t *testing.T) {
	r, ok := Local(), true
	for range maxHops {
		if r, ok = r.Hop(1); !ok {
			t.Fatal("too long too early")
		}
	}
	if _, ok := r.Hop(1); ok {
		t.Error("64 hops")
	}
	if _, ok := ToLID(3).Hop(1); ok {
		t.Error("a hop from a LID")
	}
	a, _ := Local().Hop(1)
	b, _ := a.Hop(2)
	c, _ := a.Hop(3)
	if got := []string{
		Local().String(), b.String(), c.String(), ToLID(9).String(),
	}; !slices.Equal(got, []string{"direct 0", "direct 0,1,2", "direct 0,1,3", "lid 9"}) {
		t.Error(got)
	}
}

// sparse returns an attribute with some bytes set.
func sparse(size int, at map[int]byte) []byte {
	b := make([]byte, size)
	for i, v := range at {
		b[i] = v
	}
	return b
}

func TestPortInfo(t *testing.T) {
	for _, tt := range []struct {
		name string
		at   map[int]byte
		want PortInfo
		rate float64 // of Active, Gb/s
		text string
	}{
		{
			name: "ConnectX-7 at NDR", // 4X NDR, all of SDR…NDR but DDR enabled, CapabilityMask 0xa751e848
			at: map[int]byte{
				17: 0x11, 19: 0x02, 20: 0xa7, 21: 0x51, 22: 0xe8, 23: 0x48, 28: 1, 29: 3, 30: 3, 31: 2,
				32: 0x74, 33: 0x52, 35: 0x45, 60: 0, 61: 0x1e, 62: 0x8f, 63: 0x0f,
			},
			want: PortInfo{
				LID: 17, SMLID: 2, Capabilities: 0xa751e848, Extended: true, State: PortActive, PhysicalState: PhysicalLinkUp,
				Supported: Link{3, 0b1111111}, Enabled: Link{3, 0b1111101}, Active: Link{2, 0b1000100},
			},
			rate: 400, text: "NDR",
		},
		{
			name: "XDR beside the others, of a switch",
			at:   map[int]byte{29: 18, 30: 18, 31: 2, 32: 0x74, 33: 0x52, 35: 0x47, 56: 0b0_01_01_001, 62: 0x0f, 63: 0x0f},
			want: PortInfo{
				State: PortActive, PhysicalState: PhysicalLinkUp, Supported: Link{18, 0xff}, Enabled: Link{18, 0xff},
				Active: Link{2, 0b10000100},
			},
			rate: 800, text: "XDR",
		},
		{
			name: "extended speeds are off",
			at:   map[int]byte{22: 0x40, 29: 3, 30: 3, 31: 2, 32: 0x74, 33: 0x52, 35: 0x47, 62: 0x0f, 63: 30},
			want: PortInfo{
				Capabilities: 1 << 14, State: PortActive, PhysicalState: PhysicalLinkUp, Supported: Link{3, 0x7f},
				Enabled: Link{3, 7}, Active: Link{2, 4},
			},
			rate: 40, text: "QDR",
		},
		{
			name: "a port of old that has no extended speeds, but something in their place",
			at:   map[int]byte{20: 0x02, 29: 3, 30: 3, 31: 2, 32: 0x34, 33: 0x52, 35: 0x23, 56: 0xff, 62: 0xff, 63: 0xff},
			want: PortInfo{
				Capabilities: 1 << 25, State: PortActive, PhysicalState: PhysicalLinkUp, Supported: Link{3, 3},
				Enabled: Link{3, 3}, Active: Link{2, 2},
			},
			rate: 20, text: "DDR",
		},
		{name: "nothing", want: PortInfo{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := decodePortInfo(sparse(64, tt.at))
			if got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
			if rate := got.Active.Rate() * 8 / 1e9; rate != tt.rate || got.Active.Speeds.Name() != tt.text {
				t.Errorf("%v Gb/s %s", rate, got.Active.Speeds.Name())
			}
		})
	}
}

// TestFDR10: the vendor's attribute distinguishes FDR10 among links shown as QDR.
func TestFDR10(t *testing.T) {
	qdr := PortInfo{
		State: PortActive, PhysicalState: PhysicalLinkUp, Supported: Link{3, 7}, Enabled: Link{3, 7}, Active: Link{2, 4},
	}
	for _, tt := range []struct {
		name   string
		at     map[int]byte
		active string
		want   [3]Speeds // supported, enabled, active
	}{
		{"all FDR10", map[int]byte{3: 1, 7: 1, 11: 1, 15: 1}, "FDR10", [3]Speeds{7 | FDR10, 7 | FDR10, 4 | FDR10}},
		{"active is QDR", map[int]byte{7: 1, 11: 1}, "QDR", [3]Speeds{7 | FDR10, 7 | FDR10, 4}},
		{"other bits", map[int]byte{7: 0xfe, 15: 0xfe}, "QDR", [3]Speeds{7, 7, 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := qdr
			p.Add(decodeMellanoxPort(sparse(64, tt.at)))
			if got := [3]Speeds{p.Supported.Speeds, p.Enabled.Speeds, p.Active.Speeds}; got != tt.want ||
				p.Active.Speeds.Name() != tt.active || p.Active.Rate() != qdr.Active.Rate() {
				t.Errorf("%v: %v %s", tt.at, got, p.Active.Speeds.Name())
			}
		})
	}
	edr, down := qdr, qdr
	edr.Active.Speeds, down.State = 1<<4|4, PortDown
	if !qdr.MayBeFDR10() || edr.MayBeFDR10() || down.MayBeFDR10() {
		t.Error("queried for another link, or not for one at QDR")
	}
	for node, want := range map[NodeInfo]bool{
		{VendorID: 0x2c9}: true, {VendorID: 0x119f}: true, {DeviceID: 0xc73b}: true,
		{VendorID: 0x1175, DeviceID: 0x7322}: false, {}: false,
	} {
		if node.MayHaveMellanoxPort() != want {
			t.Errorf("%+v: is queried: %v", node, !want)
		}
	}
	if (FDR10|4).LaneRate() != 10 || (FDR10|1<<3).Name() != "FDR" {
		t.Error("FDR10 is faster than QDR and slower than FDR")
	}
}

func TestLanes(t *testing.T) {
	for w, want := range map[Widths]int{0: 0, 1: 1, 2: 4, 3: 4, 4: 8, 8: 12, 16: 2, 17: 2, 18: 4, 31: 12, 32: 0} {
		if got := w.Lanes(); got != want {
			t.Errorf("%d: %d lanes, want %d", w, got, want)
		}
	}
}

func TestNodes(t *testing.T) {
	node := sparse(64,
		map[int]byte{0: 1, 1: 1, 2: 2, 3: 65, 11: 1, 19: 2, 27: 3, 30: 0xd2, 31: 0xf2, 36: 41, 38: 0x02, 39: 0xc9})
	if got, want := decodeNodeInfo(node), (NodeInfo{Switch, 65, 2, 0xd2f2, 0x2c9, 41}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for text, want := range map[string]string{
		"leaf-3\x00rubbish": "leaf-3", strings.Repeat("x", 64): strings.Repeat("x", 64), "\x00": "",
		" node-1 mlx5_0  ": "node-1 mlx5_0",
	} {
		b := make([]byte, 64)
		copy(b, text)
		if got := decodeNodeDescription(b); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got, want := decodeSwitchInfo(sparse(64, map[int]byte{7: 40, 11: 0x04})), (SwitchInfo{true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := decodeSMInfo(sparse(64, map[int]byte{7: 9, 18: 1, 19: 2, 20: 0xe3})),
		(SMInfo{9, 258, 14, SMMaster}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// FuzzDecode: any answer results in an error or a sensible value.
func FuzzDecode(f *testing.F) {
	queries := []request{
		{class: ClassSubnetDirected, attribute: attrNodeInfo},
		{class: ClassSubnetDirected, attribute: attrPortInfo, modifier: 3},
		{class: ClassSubnetDirected, attribute: attrNodeDescription},
		{class: ClassSubnetLID, attribute: attrSMInfo, route: ToLID(1)},
		{class: ClassSubnetLID, attribute: attrSwitchInfo, route: ToLID(1)},
		{class: ClassPerformance, attribute: perf.AttrClassPortInfo, route: ToLID(1)},
		{class: ClassPerformance, attribute: perf.AttrPortCounters, port: 4, route: ToLID(1)},
		{class: ClassPerformance, attribute: perf.AttrPortCountersExtended, route: ToLID(1)},
	}
	for i := range queries {
		var d Datagram
		queries[i].encode(&d, 5, 0)
		a := answerTo(&d, 0, bytes.Repeat([]byte{0xff, 2, 0x45, 0}, 48))
		f.Add(uint8(i), a.MAD[:])
		f.Add(uint8(i), d.MAD[:])
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		q := queries[int(which)%len(queries)]
		var d Datagram
		copy(d.MAD[:], b)
		data, err := q.decode(&d)
		if err != nil {
			var status StatusError
			if !errors.Is(err, ErrMalformed) && (!errors.As(err, &status) || status == 0 || err.Error() == "") {
				t.Fatal(err)
			}
			return
		}
		p := decodePortInfo(data)
		for _, l := range []Link{p.Supported, p.Enabled, p.Active} {
			if rate := l.Rate(); rate < 0 || rate > 12*200e9/8 || (l.Speeds == 0) != (l.Speeds.Name() == "") {
				t.Fatalf("%+v: %v", l, rate)
			}
		}
		if len(decodeNodeDescription(data)) > 64 && q.class != ClassPerformance {
			t.Fatal("a long name")
		}
		decodeNodeInfo(data)
		decodeMellanoxPort(data)
		decodeSwitchInfo(data)
		decodeSMInfo(data)
		if q.class != ClassPerformance {
			return
		}
		var short, long perf.Counters
		info := perf.DecodeInfo(data)
		short.ReadShort(data, info)
		long.ReadExtended(data, info)
		if v, _ := short.Get(perf.LocalLinkIntegrityErrors); v > 15 {
			t.Fatal("4 bits, and", v)
		}
		for k := range perf.NumCounters {
			if _, ok := long.Get(k); ok != info.Extends(k) {
				t.Fatalf("%+v: counter %d: %v", info, k, ok)
			}
		}
	})
}
