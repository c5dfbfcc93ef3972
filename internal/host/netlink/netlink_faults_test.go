package netlink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink/nl"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
)

// answers returns an RDMA client whose kernel returns one reply after the other, the last one repeatedly, except to
// queries for the list of devices.
func answers(devices map[string]uint32, replies ...func() ([][]byte, error)) (*RDMAClient, *int) {
	c, asked := NewRDMAClient(), 0
	c.Exchange = func(cmd, _ int, _ ...*nl.RtAttr) (msgs [][]byte, err error) {
		if cmd == nl.RDMA_NLDEV_CMD_GET {
			for name, index := range devices {
				msgs = append(msgs, slices.Concat(Attr(nl.RDMA_NLDEV_ATTR_DEV_INDEX, u32(index)),
					Attr(nl.RDMA_NLDEV_ATTR_DEV_NAME, str(name))))
			}
			return msgs, nil
		}
		asked++
		return replies[min(asked, len(replies))-1]()
	}
	return c, &asked
}

func says(parts ...[]byte) func() ([][]byte, error) {
	return func() ([][]byte, error) { return [][]byte{slices.Concat(parts...)}, nil }
}

func fails(err error) func() ([][]byte, error) { return func() ([][]byte, error) { return nil, err } }

// TestMalformedAnswers: a malformed answer is an error with its reason after at most two queries, and the next query
// succeeds. Unknown attributes are ignored.
func TestMalformedAnswers(t *testing.T) {
	device := Attr(nl.RDMA_NLDEV_ATTR_DEV_NAME, str("mlx5_0"))
	active := Attr(nl.RDMA_NLDEV_ATTR_PORT_STATE, U8(4))
	beyond := func(b []byte) []byte { // an attribute longer than the rest of the message
		b = slices.Clone(b)
		b[0] += 64
		return b
	}
	for _, c := range []struct {
		name   string
		reply  func() ([][]byte, error)
		port   access.Reason // "": answered
		stats  access.Reason
		listed int // parsed counters of stats
	}{
		{"whole", says(device, active, Attr(nl.RDMA_NLDEV_ATTR_STAT_HWCOUNTERS|nested, counter("a", u64(1)), counter("b", u64(2)))), "", "", 2},
		{"unknown attributes", says(Attr(900, []byte("?")), device, Attr(901|nested, Attr(1, nil)), active, Attr(nl.RDMA_NLDEV_ATTR_STAT_HWCOUNTERS|nested, Attr(77, nil), counter("a", u64(1)))), "", "", 1},
		{"an error acknowledged", fails(syscall.EINVAL), access.Invalid, access.Invalid, 0},
		{"not permitted", fails(syscall.EPERM), access.Permission, access.Permission, 0},
		{"busy", fails(syscall.EBUSY), access.IO, access.IO, 0},
		{"buffers full", fails(syscall.ENOBUFS), access.IO, access.IO, 0},
		{"no reply in time", fails(syscall.EAGAIN), access.IO, access.IO, 0},
		{"of another request", fails(fmt.Errorf("Wrong Seq nr %d, expected %d", 2, 1)), access.IO, access.IO, 0},
		{"of another sender", fails(fmt.Errorf("Wrong sender portid %d, expected %d", 7, 0)), access.IO, access.IO, 0},
		{"interrupted", fails(nl.ErrDumpInterrupted), access.IO, access.IO, 0},
		{"empty", func() ([][]byte, error) { return nil, nil }, access.Malformed, access.Malformed, 0},
		{"of no bytes", says(nil), access.Malformed, access.Malformed, 0},
		{"of another device", says(Attr(nl.RDMA_NLDEV_ATTR_DEV_NAME, str("mlx5_1")), active), access.Gone, access.Gone, 0},
		{"cut within a head", says(device[:2]), access.Malformed, access.Malformed, 0},
		{"cut within the name", says(device[:7]), access.Malformed, access.Malformed, 0},
		{"cut behind the name", says(device, active[:3]), "", "", 0},
		{"longer than the message", says(beyond(device), active), access.Malformed, access.Malformed, 0},
		{"a nest longer than the message", says(device, active, beyond(Attr(nl.RDMA_NLDEV_ATTR_STAT_HWCOUNTERS|nested, counter("a", u64(1))))), "", "", 0},
		{"a counter longer than its nest", says(device, active, Attr(nl.RDMA_NLDEV_ATTR_STAT_HWCOUNTERS|nested, counter("a", u64(1)), beyond(counter("b", u64(2))))), "", "", 1},
		{"an attribute of length 0", says(device, active, []byte{0, 0, nl.RDMA_NLDEV_ATTR_STAT_HWCOUNTERS, 0x80}), "", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			ok := says(device, active)
			client, asked := answers(map[string]uint32{"mlx5_0": 3, "mlx5_1": 4}, c.reply, c.reply, ok)
			p, err := client.Port(context.Background(), "mlx5_0", 1)
			if (err == nil) != (c.port == "") || err != nil && access.ReasonOf(err) != c.port ||
				err != nil && p != (host.RDMAPort{}) {
				t.Errorf("port: %+v, %v, want reason %q", p, err, c.port)
			}
			if *asked > 2 {
				t.Errorf("asked %d times", *asked)
			}
			*asked = 2
			if p, err := client.Port(context.Background(), "mlx5_0", 1); err != nil || p.State == nil || *p.State != 4 {
				t.Errorf("the next one: %+v, %v", p, err)
			}
			client, _ = answers(map[string]uint32{"mlx5_0": 3}, c.reply)
			stats, err := client.Stats(context.Background(), "mlx5_0", 1, nil)
			if (err == nil) != (c.stats == "") || err != nil && access.ReasonOf(err) != c.stats || len(stats) != c.listed {
				t.Errorf("stats: %v, %v, want reason %q", stats, err, c.stats)
			}
			holders, err := client.Holders(context.Background(), "mlx5_0", false)
			if (err == nil) != (len(c.stats) == 0 || c.name == "empty") || err != nil && holders != nil {
				t.Errorf("holders: %v, %v", holders, err)
			}
		})
	}
}

// TestInterruptedDump: a list that changed during the dump is queried again, and is an error if it keeps changing.
func TestInterruptedDump(t *testing.T) {
	list := [][]byte{{1}}
	for tries, want := range map[int]bool{0: true, 1: true, dumpTries - 1: true, dumpTries: false, 100: false} {
		t.Run(fmt.Sprintf("interrupted %d times", tries), func(t *testing.T) {
			asked := 0
			msgs, err := repeatDump(func() ([][]byte, error) {
				if asked++; asked <= tries {
					return [][]byte{{1}, {1}}, nl.ErrDumpInterrupted
				}
				return list, nil
			})
			if want != (err == nil && len(msgs) == 1) ||
				!want && (msgs != nil || !errors.Is(err, nl.ErrDumpInterrupted)) || asked > dumpTries {
				t.Errorf("%v, %v, asked %d times", msgs, err, asked)
			}
		})
	}
	if _, err := repeatDump(func() ([][]byte, error) { return nil, syscall.EPERM }); !errors.Is(err, syscall.EPERM) {
		t.Errorf("another error: %v", err)
	}
}
