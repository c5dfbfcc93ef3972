package netlink

import (
	"encoding/binary"
	"errors"
	"reflect"
	"slices"
	"testing"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/dcb"
)

// dcbReply returns an answer with struct dcbmsg before its attributes.
func dcbReply(attributes ...[]byte) []byte {
	return slices.Concat(append([][]byte{{0, dcbCmdIEEEGet, 0, 0}, Attr(dcbAttrIfname, str("eth0"))}, attributes...)...)
}

func appOf(kind uint16, selector, priority uint8, protocol uint16) []byte {
	return Attr(kind, U8(selector), U8(priority), u16(protocol))
}

func pfcStruct(capability, enabled uint8) []byte {
	b := make([]byte, sizeofPFC)
	b[0], b[1], b[2] = capability, enabled, 1
	binary.NativeEndian.PutUint16(b[4:], 7)
	binary.NativeEndian.PutUint64(b[8+8*3:], 1<<40)
	binary.NativeEndian.PutUint64(b[72+8*7:], 12)
	return b
}

func etsStruct() []byte {
	b := make([]byte, sizeofETS)
	b[0], b[1], b[2] = 1, 8, 0
	b[3], b[4] = 40, 60             // tc_tx_bw
	b[11] = 99                      // tc_rx_bw, not read
	b[19], b[20], b[26] = 2, 2, 255 // tc_tsa
	b[27], b[34], b[35] = 1, 6, 98  // prio_tc, then the peer's recommendation
	return b
}

func bufferStruct() []byte {
	b := make([]byte, sizeofBuffer)
	b[3] = 1
	binary.NativeEndian.PutUint32(b[8:], 20016)
	binary.NativeEndian.PutUint32(b[36:], 1<<31)
	binary.NativeEndian.PutUint32(b[40:], 1027728)
	return b
}

func TestParseDCB(t *testing.T) {
	const withNested = nested
	pfc := &dcb.PFC{
		Capability: 8, Enabled: 1 << 3, MBC: 1, Delay: 7, Requests: dcb.PerPriority{3: 1 << 40},
		Indications: dcb.PerPriority{7: 12},
	}
	ets := &dcb.ETS{
		Willing: 1, Capability: 8, Bandwidth: dcb.PerPriority{40, 60}, Algorithm: dcb.PerPriority{0: 2, 1: 2, 7: 255},
		TrafficClass: dcb.PerPriority{0: 1, 7: 6},
	}
	whole := dcbReply(
		Attr(dcbAttrIEEE,
			Attr(dcbIEEEETS, etsStruct()), Attr(dcbIEEEPFC, pfcStruct(8, 1<<3)),
			Attr(dcbIEEEAppTable, appOf(DCBApp, 5, 3, 26), appOf(DCBApp, 1, 3, 0x8915), appOf(DCBAppDCB, 255, 0, 1),
				appOf(DCBApp, 5, 3, 24)),
			Attr(4, etsStruct()), // of the peer
			Attr(7, make([]byte, 64)),
			Attr(dcbIEEEBuffer, bufferStruct()), Attr(dcbIEEETrust, Attr(DCBApp, U8(5)), Attr(DCBAppDCB, U8(255))),
			Attr(12|withNested, appOf(DCBApp, 5, 1, 1)), // rewrite table: the only attribute flagged as a nest
		),
		Attr(dcbAttrDCBX, U8(13)),
	)
	for _, c := range []struct {
		name string
		msg  []byte
		want dcb.Config
	}{
		{"whole", whole, dcb.Config{
			ETS: ets, PFC: pfc,
			Buffer: &dcb.Buffer{Buffer: dcb.PerPriority{3: 1}, Sizes: dcb.PerPriority{0: 20016, 7: 1 << 31}, Total: 1027728},
			Apps: []dcb.App{
				{Selector: 1, Priority: 3, Protocol: 0x8915},
				{Selector: 5, Priority: 3, Protocol: 24},
				{Selector: 5, Priority: 3, Protocol: 26},
				{Selector: 255, Priority: 0, Protocol: 1},
			},
			Trust: []uint8{5, 255}, DCBX: ptr(13),
		}},
		{"trust in the PCP, with an entry for a DSCP", dcbReply(Attr(dcbAttrIEEE, Attr(dcbIEEEAppTable, appOf(DCBApp, 5, 3, 26)), Attr(dcbIEEETrust, Attr(DCBAppDCB, U8(255))))), dcb.Config{
			Apps: []dcb.App{{Selector: 5, Priority: 3, Protocol: 26}}, Trust: []uint8{255},
		}},
		{"trust in nothing", dcbReply(Attr(dcbAttrIEEE, Attr(dcbIEEETrust))), dcb.Config{Trust: []uint8{}}},
		{"an empty APP table", dcbReply(Attr(dcbAttrIEEE, Attr(dcbIEEEAppTable))), dcb.Config{Apps: []dcb.App{}}},
		{"nothing in it", dcbReply(Attr(dcbAttrIEEE)), dcb.Config{}},
		{"nests that say so", dcbReply(Attr(dcbAttrIEEE|withNested, Attr(dcbIEEEAppTable|withNested, appOf(DCBApp, 5, 6, 48)))), dcb.Config{Apps: []dcb.App{{Selector: 5, Priority: 6, Protocol: 48}}}},
		{"an entry twice", dcbReply(Attr(dcbAttrIEEE, Attr(dcbIEEEAppTable, appOf(DCBApp, 5, 6, 48), appOf(DCBApp, 5, 6, 48)))), dcb.Config{Apps: []dcb.App{{Selector: 5, Priority: 6, Protocol: 48}}}},
		{"structs of other sizes", dcbReply(Attr(dcbAttrIEEE,
			Attr(dcbIEEEETS, etsStruct()[:58]), Attr(dcbIEEEPFC, append(pfcStruct(8, 1), 0)),
			Attr(dcbIEEEBuffer, make([]byte, 40)),
			Attr(dcbIEEEAppTable, Attr(DCBApp, U8(5)), Attr(DCBApp, make([]byte, 8)), appOf(7, 5, 3, 26)),
			Attr(dcbIEEETrust, Attr(DCBApp, u16(5)), Attr(3, U8(5)))),
			Attr(dcbAttrDCBX, make([]byte, 3))), dcb.Config{Apps: []dcb.App{}, Trust: []uint8{}}},
		{"a priority that there is not", dcbReply(Attr(dcbAttrIEEE, Attr(dcbIEEEAppTable, appOf(DCBApp, 5, 8, 26)))), dcb.Config{Apps: []dcb.App{}}},
		{"cut inside a nest", dcbReply(Attr(dcbAttrIEEE, Attr(dcbIEEEPFC, pfcStruct(8, 1<<3)), Attr(dcbIEEEETS, etsStruct())[:20])), dcb.Config{PFC: pfc}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseDCB(c.msg)
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	for name, msg := range map[string][]byte{
		"empty": nil, "half a header": {0, 21}, "no IEEE": dcbReply(),
		"the DCBX mode alone": dcbReply(Attr(dcbAttrDCBX, U8(1))), "cut": whole[:80],
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := parseDCB(msg); !errors.Is(err, access.ErrMalformed) || !reflect.DeepEqual(got, dcb.Config{}) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// TestDCBRequest: struct dcbmsg precedes the attributes.
func TestDCBRequest(t *testing.T) {
	want := slices.Concat([]byte{0, dcbCmdIEEEGet, 0, 0}, Attr(dcbAttrIfname, str("eth0")))
	if got := dcbRequest("eth0").Serialize()[16:]; !slices.Equal(got, want) { // of struct nlmsghdr
		t.Errorf("% x, want % x", got, want)
	}
}

func TestCopiedTreeHasNoDCB(t *testing.T) {
	if _, err := (DCBClient{&network{Copied: true}}).IEEE(t.Context(), "eth0"); !access.IsAbsent(err) {
		t.Error(err)
	}
}

func FuzzParseDCB(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(dcbReply(Attr(dcbAttrIEEE, Attr(dcbIEEEETS, etsStruct()), Attr(dcbIEEEPFC, pfcStruct(8, 255))),
		Attr(dcbAttrDCBX, U8(1))))
	f.Add(dcbReply(Attr(dcbAttrIEEE|nested, Attr(dcbIEEEAppTable, appOf(DCBApp, 5, 3, 26)),
		Attr(dcbIEEEBuffer, bufferStruct()))))
	f.Fuzz(func(t *testing.T, msg []byte) {
		c, err := parseDCB(msg)
		if err != nil {
			if !errors.Is(err, access.ErrMalformed) || !reflect.DeepEqual(c, dcb.Config{}) {
				t.Fatalf("%+v, %v", c, err)
			}
			return
		}
		if c.PFC != nil && c.PFC.Enabled > 255 {
			t.Fatalf("%+v", c.PFC)
		}
		for i, a := range c.Apps {
			if a.Priority >= dcb.Priorities || i > 0 && c.Apps[i-1] == a {
				t.Fatalf("%+v", c.Apps)
			}
		}
	})
}
