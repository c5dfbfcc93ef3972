package kmsg

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/kernellog"
)

func TestParseRecord(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		seq  uint64
		at   time.Duration
		want string
		ok   bool

		function string
	}{
		"plain":              {"6,339,5140900,-;NET: Registered protocol family 10\n", 339, 5140900 * time.Microsecond, "NET: Registered protocol family 10", true, ""},
		"with dictionary":    {"3,340,5690716,-;mlx5_core 0000:4d:00.0: x\n SUBSYSTEM=pci\n DEVICE=+pci:0000:4d:00.0\n", 340, 5690716 * time.Microsecond, "mlx5_core 0000:4d:00.0: x", true, "0000:4d:00.0"},
		"with caller":        {"6,1,0,-,caller=T1;a;b\n", 1, 0, "a;b", true, ""},
		"of user space":      {"12,7,99,-;mlx5_core 0000:4d:00.0: Port module event: module 0, Cable unplugged\n", 7, 99 * time.Microsecond, "", true, ""},
		"no text":            {"6,339,5140900,-;\n", 339, 5140900 * time.Microsecond, "", true, ""},
		"not a record":       {"hello\n", 0, 0, "", false, ""},
		"too few fields":     {"6,1;x\n", 0, 0, "", false, ""},
		"odd number":         {"6,x,1,-;x\n", 0, 0, "", false, ""},
		"time of 1000 years": {"6,1,9223372036854775807,-;x\n", 0, 0, "", false, ""},
		"empty":              {"", 0, 0, "", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			seq, at, text, function, ok := parseRecord([]byte(c.text))
			if seq != c.seq || at != c.at || text != c.want || ok != c.ok || function != c.function {
				t.Errorf("%d, %v, %q, %q, %v", seq, at, text, function, ok)
			}
		})
	}
}

// kmsgOf reads records from a datagram socket, which like /dev/kmsg has one for each read.
func kmsgOf(t *testing.T) (*Kmsg, func(records ...string)) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	k := &Kmsg{fd: -1, open: func() (int, error) { return fds[0], nil }}
	t.Cleanup(func() { unix.Close(fds[1]); k.Close() })
	return k, func(records ...string) {
		for _, r := range records {
			if err := unix.Send(fds[1], []byte(r), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestKernelLog(t *testing.T) {
	k, print := kmsgOf(t)
	read := func(lost uint64, want ...uint64) {
		t.Helper()
		r, err := k.KernelLog(context.Background())
		var got []uint64
		for _, e := range r.Events {
			got = append(got, e.Seq)
		}
		if err != nil || r.Lost != lost || fmt.Sprint(got) != fmt.Sprint(want) || r.Skipped != 0 {
			t.Errorf("%v, lost %d, skipped %d, %v; want %v, lost %d", got, r.Lost, r.Skipped, err, want, lost)
		}
	}
	read(0)
	print("6,10,1000000,-;Linux version 6.8\n", "3,11,2000000,-;mlx5_core 0000:4d:00.0: temp_warn:170:(pid 0): High temperature on sensors with bit set 0 1\n", "garbage")
	read(0, 11)
	print("6,12,3000000,-;x\n", "3,40,9000000,-;NETDEV WATCHDOG: eth1 (mlx5_core): transmit queue 19 timed out\n")
	read(27, 11, 40)
	read(27, 11, 40)
	r, _ := k.KernelLog(context.Background())
	if want := (host.KernelEvent{
		Seq: 40, At: 9 * time.Second,
		Event: kernellog.Event{Kind: kernellog.TransmitTimeout, Driver: "mlx5_core", Netdev: "eth1", Detail: "queue 19"},
		Line:  "NETDEV WATCHDOG: eth1 (mlx5_core): transmit queue 19 timed out",
	}); r.Events[1] != want {
		t.Errorf("%+v", r.Events[1])
	}
}

// TestKernelLogAtItsEnd: registers of a PCIe error whose last line is not printed yet are counted once.
func TestKernelLogAtItsEnd(t *testing.T) {
	k, send := kmsgOf(t)
	for _, records := range [][]string{
		{"3,1,1000,-;pcieport 0000:5d:01.0: AER: aer_status: 0x00200000, aer_mask: 0x00100020\n"},
		{
			"3,2,1010,-;pcieport 0000:5d:01.0: AER: aer_layer=Transaction Layer, aer_agent=Receiver ID\n",
			"3,3,1020,-;pcieport 0000:5d:01.0: AER: aer_uncor_severity: 0x00062030\n",
		},
	} {
		send(records...)
		r, err := k.KernelLog(context.Background())
		if err != nil || len(r.Events) != 1 || r.Events[0].Event.Kind != kernellog.PCIeFirmware || r.Events[0].Seq != 1 {
			t.Fatalf("%v, %+v", err, r.Events)
		}
	}
}

// TestKernelLogIsBounded: the oldest events go first.
func TestKernelLogIsBounded(t *testing.T) {
	k := &Kmsg{credit: host.MaxKernelEvents + 5}
	for i := range host.MaxKernelEvents + 5 {
		k.record(fmt.Appendf(nil, "3,%d,%d,-;mlx5_core 0000:4d:00.0: Port module event: module 0, Cable unplugged\n", i+1, i))
	}
	if len(k.events) != host.MaxKernelEvents || k.events[0].Seq != 6 ||
		k.events[host.MaxKernelEvents-1].Seq != host.MaxKernelEvents+5 {
		t.Errorf("%d events from %d", len(k.events), k.events[0].Seq)
	}
}

// TestKernelLogIsSampled: of a storm each tenth record is examined, and the others are counted. What comes after it is
// read again.
func TestKernelLogIsSampled(t *testing.T) {
	k := &Kmsg{credit: kmsgBurst}
	const storm, before = 100_000, 10
	for i := range storm {
		k.record(fmt.Appendf(nil, "3,%d,%d,-;mlx5_core 0000:4d:00.0: Port module event: module 0, Cable unplugged\n", before+i, i))
	}
	examined := kmsgBurst + (storm-kmsgBurst)/kmsgSample
	if got := uint64(len(k.events)) + k.dropped; got != uint64(examined) ||
		k.skipped != uint64(storm-examined) || k.lost != 0 {
		t.Errorf("%d events, %d skipped, %d lost; want %d examined", got, k.skipped, k.lost, examined)
	}
	k.credit = 1
	k.record([]byte("3,200001,5,-;mlx5_core 0000:4d:00.0: Port module event: module 0, Cable plugged\n"))
	if last := k.events[len(k.events)-1]; last.Seq != 200001 || last.Kind != kernellog.ModulePlugged {
		t.Errorf("%+v", last)
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add([]byte("6,339,5140900,-;NET: Registered protocol family 10\n"))
	f.Add([]byte("3,340,5690716,-,caller=C1;mlx5_core 0000:4d:00.0: \\x41\n SUBSYSTEM=pci\n"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		k := &Kmsg{credit: 2}
		k.record(b)
		k.record(b)
	})
}
