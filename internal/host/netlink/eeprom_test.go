package netlink

import (
	"bytes"
	"errors"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/transceiver"
)

func TestParseModuleEEPROM(t *testing.T) {
	header := Attr(ethtoolHeader|nested, Attr(1, u32(5)), Attr(unix.ETHTOOL_A_HEADER_DEV_NAME, str("eth0")))
	ref := transceiver.Ref{Address: transceiver.AddressA0, Offset: 14, Length: 4}
	for _, c := range []struct {
		name string
		msg  []byte
		want []byte
		err  access.Reason
	}{
		{"whole", slices.Concat(header, Attr(moduleEEPROMData, []byte{0x34, 0x9A, 0x80, 0xE8})), []byte{0x34, 0x9A, 0x80, 0xE8}, ""},
		{"less than was asked for", slices.Concat(header, Attr(moduleEEPROMData, []byte{0x34, 0x9A})), []byte{0x34, 0x9A}, ""},
		{"more than was asked for", slices.Concat(header, Attr(moduleEEPROMData, make([]byte, 128))), make([]byte, 4), ""},
		{"no data", header, nil, access.Malformed},
		{"a module that does not answer", slices.Concat(header, Attr(moduleEEPROMData, nil)), nil, access.IO},
		{"empty", nil, nil, access.Malformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseModuleEEPROM(c.msg, ref)
			if !bytes.Equal(got, c.want) || (err == nil) != (c.err == "") || err != nil && access.ReasonOf(err) != c.err {
				t.Errorf("% x, %v", got, err)
			}
		})
	}
}

func FuzzParseModuleEEPROM(f *testing.F) {
	f.Add([]byte(nil), uint8(4))
	f.Add(Attr(moduleEEPROMData, []byte{1, 2, 3, 4}), uint8(3))
	f.Fuzz(func(t *testing.T, msg []byte, length uint8) {
		got, err := parseModuleEEPROM(msg, transceiver.Ref{Address: transceiver.AddressA0, Length: length})
		if len(got) > int(length) || err == nil && len(got) == 0 && length > 0 {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	})
}

func TestModuleEEPROMRequest(t *testing.T) {
	request := func(ref transceiver.Ref) (b []byte) {
		for _, a := range moduleEEPROMRequest(ref) {
			b = append(b, a.Serialize()...)
		}
		return b
	}
	lower := slices.Concat(Attr(moduleEEPROMOffset, u32(14)), Attr(moduleEEPROMLength, u32(4)),
		Attr(moduleEEPROMPage, U8(0)), Attr(moduleEEPROMAddress, U8(0x50)))
	if got := request(transceiver.Ref{Address: 0x50, Offset: 14, Length: 4}); !bytes.Equal(got, lower) {
		t.Errorf("% x", got)
	}
	banked := slices.Concat(
		Attr(moduleEEPROMOffset, u32(154)), Attr(moduleEEPROMLength, u32(60)), Attr(moduleEEPROMPage, U8(0x11)),
		Attr(moduleEEPROMAddress, U8(0x50)), Attr(moduleEEPROMBank, U8(1)),
	)
	if got := request(transceiver.Ref{Address: 0x50, Page: 0x11, Bank: 1, Offset: 154, Length: 60}); !bytes.Equal(
		got, banked,
	) {
		t.Errorf("% x", got)
	}
}

// Requests that the kernel would reject are not sent.
func TestInvalidModuleEEPROMRequests(t *testing.T) {
	c := &EthtoolClient{}
	for _, ref := range []transceiver.Ref{
		{}, {Address: 0x50, Offset: 100, Length: 100}, {Address: 0x50, Page: 1, Length: 1},
	} {
		if _, err := c.ModuleEEPROM(t.Context(), "eth0", ref); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%+v: %v", ref, err)
		}
	}
}

func TestBusy(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.EBUSY: true, syscall.EAGAIN: true, syscall.EIO: false, syscall.EPERM: false,
	} {
		if Busy(&access.Error{Op: "query", Path: "ethtool/eth0/eeprom/50-00-0", Err: err}) != want {
			t.Error(err)
		}
	}
}
