package host

import (
	"encoding/binary"
	"errors"
	"reflect"
	"slices"
	"testing"
)

// dcbReply is an answer with struct dcbmsg before its attributes.
func dcbReply(attributes ...[]byte) []byte {
	return slices.Concat(append([][]byte{{0, dcbCmdIEEEGet, 0, 0}, attr(dcbAttrIfname, str("eth0"))}, attributes...)...)
}

func appOf(kind uint16, selector, priority uint8, protocol uint16) []byte {
	return attr(kind, u8(selector), u8(priority), u16(protocol))
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
	pfc := &DCBPFC{
		Capability: 8, Enabled: 1 << 3, MBC: 1, Delay: 7, Requests: PerPriority{3: 1 << 40}, Indications: PerPriority{7: 12},
	}
	ets := &DCBETS{
		Willing: 1, Capability: 8, Bandwidth: PerPriority{40, 60}, Algorithm: PerPriority{0: 2, 1: 2, 7: 255},
		TrafficClass: PerPriority{0: 1, 7: 6},
	}
	whole := dcbReply(
		attr(dcbAttrIEEE,
			attr(dcbIEEEETS, etsStruct()), attr(dcbIEEEPFC, pfcStruct(8, 1<<3)),
			attr(dcbIEEEAppTable, appOf(dcbApp, 5, 3, 26), appOf(dcbApp, 1, 3, 0x8915), appOf(dcbAppDCB, 255, 0, 1),
				appOf(dcbApp, 5, 3, 24)),
			attr(4, etsStruct()), // of the peer
			attr(7, make([]byte, 64)),
			attr(dcbIEEEBuffer, bufferStruct()), attr(dcbIEEETrust, attr(dcbApp, u8(5)), attr(dcbAppDCB, u8(255))),
			attr(12|withNested, appOf(dcbApp, 5, 1, 1)), // rewrite table: the only attribute flagged as a nest
		),
		attr(dcbAttrDCBX, u8(13)),
	)
	for _, c := range []struct {
		name string
		msg  []byte
		want DCBConfig
	}{
		{"whole", whole, DCBConfig{
			ETS: ets, PFC: pfc,
			Buffer: &DCBBuffer{Buffer: PerPriority{3: 1}, Sizes: PerPriority{0: 20016, 7: 1 << 31}, Total: 1027728},
			Apps:   []DCBApp{{1, 3, 0x8915}, {5, 3, 24}, {5, 3, 26}, {255, 0, 1}},
			Trust:  []uint8{5, 255}, DCBX: ptr(13),
		}},
		{"trust in the PCP, with an entry for a DSCP", dcbReply(attr(dcbAttrIEEE, attr(dcbIEEEAppTable, appOf(dcbApp, 5, 3, 26)), attr(dcbIEEETrust, attr(dcbAppDCB, u8(255))))), DCBConfig{
			Apps: []DCBApp{{5, 3, 26}}, Trust: []uint8{255},
		}},
		{"trust in nothing", dcbReply(attr(dcbAttrIEEE, attr(dcbIEEETrust))), DCBConfig{Trust: []uint8{}}},
		{"an empty APP table", dcbReply(attr(dcbAttrIEEE, attr(dcbIEEEAppTable))), DCBConfig{Apps: []DCBApp{}}},
		{"nothing in it", dcbReply(attr(dcbAttrIEEE)), DCBConfig{}},
		{"nests that say so", dcbReply(attr(dcbAttrIEEE|withNested, attr(dcbIEEEAppTable|withNested, appOf(dcbApp, 5, 6, 48)))), DCBConfig{Apps: []DCBApp{{5, 6, 48}}}},
		{"an entry twice", dcbReply(attr(dcbAttrIEEE, attr(dcbIEEEAppTable, appOf(dcbApp, 5, 6, 48), appOf(dcbApp, 5, 6, 48)))), DCBConfig{Apps: []DCBApp{{5, 6, 48}}}},
		{"structs of other sizes", dcbReply(attr(dcbAttrIEEE,
			attr(dcbIEEEETS, etsStruct()[:58]), attr(dcbIEEEPFC, append(pfcStruct(8, 1), 0)),
			attr(dcbIEEEBuffer, make([]byte, 40)),
			attr(dcbIEEEAppTable, attr(dcbApp, u8(5)), attr(dcbApp, make([]byte, 8)), appOf(7, 5, 3, 26)),
			attr(dcbIEEETrust, attr(dcbApp, u16(5)), attr(3, u8(5)))),
			attr(dcbAttrDCBX, make([]byte, 3))), DCBConfig{Apps: []DCBApp{}, Trust: []uint8{}}},
		{"a priority that there is not", dcbReply(attr(dcbAttrIEEE, attr(dcbIEEEAppTable, appOf(dcbApp, 5, 8, 26)))), DCBConfig{Apps: []DCBApp{}}},
		{"cut inside a nest", dcbReply(attr(dcbAttrIEEE, attr(dcbIEEEPFC, pfcStruct(8, 1<<3)), attr(dcbIEEEETS, etsStruct())[:20])), DCBConfig{PFC: pfc}},
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
		"the DCBX mode alone": dcbReply(attr(dcbAttrDCBX, u8(1))), "cut": whole[:80],
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := parseDCB(msg); !errors.Is(err, ErrMalformed) || !reflect.DeepEqual(got, DCBConfig{}) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// TestDCBRequest: struct dcbmsg precedes the attributes.
func TestDCBRequest(t *testing.T) {
	want := slices.Concat([]byte{0, dcbCmdIEEEGet, 0, 0}, attr(dcbAttrIfname, str("eth0")))
	if got := dcbRequest("eth0").Serialize()[16:]; !slices.Equal(got, want) { // of struct nlmsghdr
		t.Errorf("% x, want % x", got, want)
	}
}

func TestCopiedTreeHasNoDCB(t *testing.T) {
	if _, err := (dcbClient{&network{copied: true}}).IEEE(t.Context(), "eth0"); !IsAbsent(err) {
		t.Error(err)
	}
}

func FuzzParseDCB(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(dcbReply(attr(dcbAttrIEEE, attr(dcbIEEEETS, etsStruct()), attr(dcbIEEEPFC, pfcStruct(8, 255))),
		attr(dcbAttrDCBX, u8(1))))
	f.Add(dcbReply(attr(dcbAttrIEEE|nested, attr(dcbIEEEAppTable, appOf(dcbApp, 5, 3, 26)),
		attr(dcbIEEEBuffer, bufferStruct()))))
	f.Fuzz(func(t *testing.T, msg []byte) {
		c, err := parseDCB(msg)
		if err != nil {
			if !errors.Is(err, ErrMalformed) || !reflect.DeepEqual(c, DCBConfig{}) {
				t.Fatalf("%+v, %v", c, err)
			}
			return
		}
		if c.PFC != nil && c.PFC.Enabled > 255 {
			t.Fatalf("%+v", c.PFC)
		}
		for i, a := range c.Apps {
			if a.Priority >= DCBPriorities || i > 0 && c.Apps[i-1] == a {
				t.Fatalf("%+v", c.Apps)
			}
		}
	})
}
