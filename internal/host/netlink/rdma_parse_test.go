package netlink

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink/nl"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
)

// Attr builds a netlink attribute, padded to four bytes.
func Attr(kind uint16, payload ...[]byte) []byte {
	body := slices.Concat(payload...)
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(body)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), body...)
	return append(b, make([]byte, -len(b)&3)...)
}

func U8(v uint8) []byte   { return []byte{v} }
func u16(v uint16) []byte { return binary.NativeEndian.AppendUint16(nil, v) }
func u32(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }
func u64(v uint64) []byte { return binary.NativeEndian.AppendUint64(nil, v) }
func str(s string) []byte { return append([]byte(s), 0) }

const nested = 1 << 15 // NLA_F_NESTED

func counter(name string, value []byte) []byte {
	return Attr(nl.RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY|nested,
		Attr(nl.RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, str(name)),
		Attr(nl.RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, value))
}

func statsMessage(device string, counters ...[]byte) []byte {
	return slices.Concat(
		Attr(nl.RDMA_NLDEV_ATTR_DEV_INDEX, u32(3)), Attr(nl.RDMA_NLDEV_ATTR_DEV_NAME, str(device)),
		Attr(nl.RDMA_NLDEV_ATTR_PORT_INDEX, u32(1)),
		Attr(nl.RDMA_NLDEV_ATTR_STAT_HWCOUNTERS|nested, counters...))
}

func TestAttributes(t *testing.T) {
	whole := slices.Concat(Attr(1, U8(7)), Attr(2|nested, Attr(3)), Attr(4, str("name")))
	kinds := func(b []byte) (out []uint16) {
		for kind := range eachAttribute(b) {
			out = append(out, kind)
		}
		return out
	}
	for _, c := range []struct {
		name string
		msg  []byte
		want []uint16
	}{
		{"nothing", nil, nil},
		{"whole", whole, []uint16{1, 2, 4}},
		{"last one unpadded", whole[:len(whole)-3], []uint16{1, 2, 4}},
		{"last one cut", whole[:len(whole)-4], []uint16{1, 2}},
		{"half a header", append(Attr(1), 4, 0, 9), []uint16{1}},
		{"length 0", append(Attr(1), 0, 0, 9, 0, 4, 0, 5, 0), []uint16{1}},
		{"length 3", append(Attr(1), 3, 0, 9, 0), []uint16{1}},
		{"length beyond the end", append(Attr(1), 9, 0, 9, 0, 1, 2, 3, 4), []uint16{1}},
		{"flags", Attr(5 | nested | 1<<14), []uint16{5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := kinds(c.msg); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
	for range eachAttribute(whole) {
		break // a reader that stops early
	}
}

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		name    string
		payload []byte
		want    uint64
		ok      bool
	}{
		{"8 bits", U8(200), 200, true},
		{"16 bits", u16(40000), 40000, true},
		{"32 bits", u32(4e9), 4e9, true},
		{"64 bits", u64(1<<64 - 1), 1<<64 - 1, true},
		{"empty", nil, 0, false},
		{"3 bytes", make([]byte, 3), 0, false},
		{"16 bytes", make([]byte, 16), 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := parseNumber(c.payload); got != c.want || ok != c.ok {
				t.Errorf("% x: %d %v", c.payload, got, ok)
			}
		})
	}
}

func TestParseDevice(t *testing.T) {
	for _, c := range []struct {
		name  string
		msg   []byte
		want  string
		index uint32
		bad   bool
	}{
		{"whole", slices.Concat(Attr(nl.RDMA_NLDEV_ATTR_DEV_INDEX, u32(7)), Attr(nl.RDMA_NLDEV_ATTR_DEV_NAME, str("mlx5_0")), Attr(nl.RDMA_NLDEV_ATTR_PORT_INDEX, u32(1))), "mlx5_0", 7, false},
		{"without index", Attr(nl.RDMA_NLDEV_ATTR_DEV_NAME, str("mlx5_0")), "", 0, true},
		{"without name", Attr(nl.RDMA_NLDEV_ATTR_DEV_INDEX, u32(7)), "", 0, true},
		{"index of a wrong size", slices.Concat(Attr(nl.RDMA_NLDEV_ATTR_DEV_INDEX, make([]byte, 3)), Attr(nl.RDMA_NLDEV_ATTR_DEV_NAME, str("mlx5_0"))), "", 0, true},
		{"empty", nil, "", 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			name, index, err := parseDevice(c.msg)
			if name != c.want || index != c.index || c.bad != errors.Is(err, access.ErrMalformed) {
				t.Errorf("%q %d %v", name, index, err)
			}
		})
	}
}

func ptr(v uint64) *uint64 { return &v }

func same(a, b *uint64) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

func samePort(a, b host.RDMAPort) bool {
	return same(a.State, b.State) && same(a.PhysicalState, b.PhysicalState) && same(a.LID, b.LID) &&
		same(a.SMLID, b.SMLID) &&
		same(a.LMC, b.LMC) && same(a.Capabilities, b.Capabilities) && a.Netdev == b.Netdev
}

func TestParsePort(t *testing.T) {
	name := Attr(nl.RDMA_NLDEV_ATTR_DEV_NAME, str("mlx5_0"))
	states := slices.Concat(name, Attr(nl.RDMA_NLDEV_ATTR_PORT_STATE, U8(4)),
		Attr(nl.RDMA_NLDEV_ATTR_PORT_PHYS_STATE, U8(5)))
	for _, c := range []struct {
		name string
		msg  []byte
		want host.RDMAPort
		bad  bool
	}{
		{
			"InfiniBand", slices.Concat(states, Attr(nl.RDMA_NLDEV_ATTR_CAP_FLAGS, u64(0x2651e848)),
				Attr(nl.RDMA_NLDEV_ATTR_LID, u32(17)),
				Attr(nl.RDMA_NLDEV_ATTR_SM_LID, u32(1)), Attr(nl.RDMA_NLDEV_ATTR_LMC, U8(0))),
			host.RDMAPort{State: ptr(4), PhysicalState: ptr(5), LID: ptr(17), SMLID: ptr(1), LMC: ptr(0), Capabilities: ptr(0x2651e848)},
			false,
		},
		{
			"RoCE", slices.Concat(states, Attr(50, u32(9)), Attr(nl.RDMA_NLDEV_ATTR_NDEV_NAME, str("eth0"))),
			host.RDMAPort{State: ptr(4), PhysicalState: ptr(5), Netdev: "eth0"},
			false,
		},
		{"without states", name, host.RDMAPort{}, false},
		{
			"a state of a wrong size",
			slices.Concat(name, Attr(nl.RDMA_NLDEV_ATTR_PORT_STATE, make([]byte, 5)), Attr(nl.RDMA_NLDEV_ATTR_PORT_PHYS_STATE, U8(5))),
			host.RDMAPort{PhysicalState: ptr(5)},
			false,
		},
		{"cut within the states", states[:len(states)-8], host.RDMAPort{State: ptr(4)}, false},
		{"a name without NUL", slices.Concat(Attr(nl.RDMA_NLDEV_ATTR_DEV_NAME, []byte("mlx5_0")), Attr(nl.RDMA_NLDEV_ATTR_NDEV_NAME, []byte("eth0"))), host.RDMAPort{Netdev: "eth0"}, false},
		{"without device", Attr(nl.RDMA_NLDEV_ATTR_PORT_STATE, U8(4)), host.RDMAPort{}, true},
		{"an empty device", slices.Concat(Attr(nl.RDMA_NLDEV_ATTR_DEV_NAME, str("")), Attr(nl.RDMA_NLDEV_ATTR_PORT_STATE, U8(4))), host.RDMAPort{}, true},
		{"empty", nil, host.RDMAPort{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, device, err := parsePort(c.msg)
			if c.bad {
				if !errors.Is(err, access.ErrMalformed) || device != "" || !samePort(p, host.RDMAPort{}) {
					t.Errorf("%+v %q %v, want ErrMalformed", p, device, err)
				}
				return
			}
			if err != nil || device != "mlx5_0" || !samePort(p, c.want) {
				t.Errorf("%+v %q %v", p, device, err)
			}
		})
	}
}

func TestParseStats(t *testing.T) {
	two := []host.Stat{{Name: "rx_write_requests", Value: 1}, {Name: "Nak Sequence Error", Value: 1<<64 - 1}}
	counters := [][]byte{counter(two[0].Name, u64(1)), counter(two[1].Name, u64(1<<64-1))}
	whole := statsMessage("mlx5_0", counters...)
	for _, c := range []struct {
		name string
		msg  []byte
		want []host.Stat
		bad  bool
	}{
		{"two, in the kernel's order", whole, two, false},
		{"none", statsMessage("mlx5_0"), nil, false},
		{"a counter of 32 bits", statsMessage("mlx5_0", counter("a", u32(9))), []host.Stat{{Name: "a", Value: 9}}, false},
		{"a value of a wrong size", statsMessage("mlx5_0", counter("a", make([]byte, 5)), counters[0]), two[:1], false},
		{"a value of zero length", statsMessage("mlx5_0", counter("a", nil), counters[0]), two[:1], false},
		{"an empty name", statsMessage("mlx5_0", counter("", u64(1)), counters[0]), two[:1], false},
		{"a counter without value", statsMessage("mlx5_0", Attr(nl.RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY, Attr(nl.RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, str("a"))), counters[0]), two[:1], false},
		{"another attribute among them", statsMessage("mlx5_0", Attr(94, u32(1)), counters[0]), two[:1], false},
		{"an attribute before the name", slices.Concat(whole[8:]), two, false},
		{"without device", Attr(nl.RDMA_NLDEV_ATTR_STAT_HWCOUNTERS, counters...), nil, true},
		{"empty", nil, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			stats, device, err := parseStats(c.msg, nil)
			if c.bad {
				if !errors.Is(err, access.ErrMalformed) || stats != nil {
					t.Errorf("%v %v, want ErrMalformed", stats, err)
				}
				return
			}
			if err != nil || device != "mlx5_0" || !slices.Equal(stats, c.want) {
				t.Errorf("%v %q %v", stats, device, err)
			}
		})
	}
}

func TestParseStatsOfATruncatedMessageGivesWhatIsWhole(t *testing.T) {
	whole := statsMessage("mlx5_0", counter("a", u64(1)), counter("b", u64(2)))
	want, _, err := parseStats(whole, nil)
	if err != nil || len(want) != 2 {
		t.Fatal(want, err)
	}
	for n := range whole {
		if stats, device, err := parseStats(whole[:n], nil); err == nil &&
			(device != "mlx5_0" || !slices.Equal(stats, want[:len(stats)])) {
			t.Errorf("%d of %d bytes: %v of %q", n, len(whole), stats, device)
		}
	}
}

func TestParseStatsUsesTheBuffer(t *testing.T) {
	buf := make([]host.Stat, 0, 8)
	stats, _, err := parseStats(statsMessage("mlx5_0", counter("a", u64(1))), buf)
	if err != nil || len(stats) != 1 || &stats[0] != &buf[:1][0] {
		t.Errorf("%v %v", stats, err)
	}
}

func FuzzParseStats(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(statsMessage("mlx5_0", counter("a", u64(1)), counter("b c", u32(2)), counter("d", make([]byte, 3))))
	f.Add(statsMessage("mlx5_0")[:11])
	f.Add(slices.Concat(Attr(nl.RDMA_NLDEV_ATTR_STAT_HWCOUNTERS,
		Attr(nl.RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY, []byte{0, 0, 0, 0})),
		Attr(nl.RDMA_NLDEV_ATTR_DEV_NAME, str("x"))))
	f.Fuzz(func(t *testing.T, msg []byte) {
		stats, device, err := parseStats(msg, nil)
		if (err == nil) != (device != "") || err != nil && stats != nil {
			t.Fatalf("%v of %q, %v", stats, device, err)
		}
		if len(stats) > len(msg)/16 { // headers of a counter, its name and value, and one byte of each
			t.Fatalf("%d counters from %d bytes", len(stats), len(msg))
		}
		length := len(device)
		for _, s := range stats {
			length += len(s.Name)
			if s.Name == "" || strings.ContainsRune(s.Name, 0) {
				t.Fatalf("name %q", s.Name)
			}
		}
		if length > len(msg) {
			t.Fatalf("%d bytes of names from %d bytes", length, len(msg))
		}
	})
}

func FuzzParsePort(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(slices.Concat(Attr(nl.RDMA_NLDEV_ATTR_DEV_NAME, str("mlx5_0")), Attr(nl.RDMA_NLDEV_ATTR_PORT_STATE, U8(4)),
		Attr(nl.RDMA_NLDEV_ATTR_NDEV_NAME, str("eth0"))))
	f.Add(Attr(nl.RDMA_NLDEV_ATTR_PORT_STATE, u64(4)))
	f.Fuzz(func(t *testing.T, msg []byte) {
		p, device, err := parsePort(msg)
		if (err == nil) != (device != "") || err != nil && !samePort(p, host.RDMAPort{}) {
			t.Fatalf("%+v of %q, %v", p, device, err)
		}
		if len(device)+len(p.Netdev) > len(msg) {
			t.Fatalf("%q and %q from %d bytes", device, p.Netdev, len(msg))
		}
	})
}
