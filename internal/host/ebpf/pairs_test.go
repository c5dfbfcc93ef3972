package ebpf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/cilium/ebpf/btf"

	"rdma_exporter/internal/snapshot/qp"
)

// moved returns a record of a move as a program writes it.
func moved(state uint32, result int32, pathType, lid uint32, peer, device string) []byte {
	b := make([]byte, pairSize)
	u32 := func(at int, v uint32) { binary.NativeEndian.PutUint32(b[at:], v) }
	u32(0, recordPair)
	u32(pairPID, 4711)
	u32(pairQPN, 17)
	u32(pairPort, 1)
	u32(pairState, state)
	u32(pairResult, uint32(result))
	u32(pairPeerQPN, 18)
	u32(pairPathType, pathType)
	u32(pairPathID, lid)
	if peer != "" {
		gid := netip.MustParseAddr(peer).As16()
		copy(b[pairGID:], gid[:])
	}
	copy(b[pairCommand:], "python3")
	copy(b[pairDevice:], device)
	return b
}

// ofKernel makes a record one of a queue pair that no process created. The caller's command stays: a worker thread.
func ofKernel(b []byte) []byte {
	clear(b[pairPID:][:4])
	return b
}

func destroyed(number uint32, device string) []byte {
	b := make([]byte, pairEndSize)
	binary.NativeEndian.PutUint32(b, recordPairEnd)
	binary.NativeEndian.PutUint32(b[pairEndPID:], 4711)
	binary.NativeEndian.PutUint32(b[pairEndQPN:], number)
	copy(b[pairEndDevice:], device)
	return b
}

func eventOf(number, event uint32, device string) []byte {
	b := happened(4711, event, 0xffff, device)
	binary.NativeEndian.PutUint32(b[asyncQPN:], number)
	return b
}

func TestPairLog(t *testing.T) {
	const rtr, err, etimedout, lastWQE, portActive = 2, 6, 110, 16, 9
	const v4, v6 = "::ffff:10.1.2.3", "fe80::ff:fe00:1"
	const gid4 = "0000:0000:0000:0000:0000:ffff:0a01:0203"
	at := time.Unix(100, 0)
	base := qp.PairEvent{Seq: 1, At: at, Device: "mlx5_0", Port: 1, QPN: 17, PID: 4711}
	with := func(change func(*qp.PairEvent)) []qp.PairEvent {
		e := base
		change(&e)
		return []qp.PairEvent{e}
	}
	connected := func(peer string, roce bool) []qp.PairEvent {
		return with(func(e *qp.PairEvent) {
			e.Kind, e.PeerQPN, e.Peer, e.RoCE, e.Command = qp.PairConnected, 18, peer, roce, "python3"
		})
	}
	for name, c := range map[string]struct {
		record []byte
		want   []qp.PairEvent
	}{
		"RoCE":       {moved(rtr, 0, pathRoCE, 0, v4, "mlx5_0"), connected(gid4, true)},
		"RoCE, IPv6": {moved(rtr, 0, pathRoCE, 0, v6, "mlx5_0"), connected("fe80:0000:0000:0000:0000:00ff:fe00:0001", true)},
		"InfiniBand": {moved(rtr, 0, pathInfiniBand, 0xffff0007, v6, "mlx5_0"), connected("lid:7", false)},
		"Omni-Path":  {moved(rtr, 0, pathOmniPath, 0x10007, "", "mlx5_0"), connected("lid:65543", false)},
		"of the kernel": {ofKernel(moved(rtr, 0, pathRoCE, 0, v4, "mlx5_0")), with(func(e *qp.PairEvent) {
			e.Kind, e.PeerQPN, e.Peer, e.RoCE, e.PID, e.Command = qp.PairConnected, 18, gid4, true, 0, "kernel"
		})},
		"refused": {moved(rtr, -etimedout, pathRoCE, 0, v4, "mlx5_0"), with(func(e *qp.PairEvent) {
			e.Kind, e.PeerQPN, e.Peer, e.RoCE, e.Command, e.Errno = qp.PairRefused, 18, gid4, true, "python3", etimedout
		})},
		"error":         {moved(err, 0, 0, 0, "", "mlx5_0"), with(func(e *qp.PairEvent) { e.Kind = qp.PairError })},
		"error refused": {moved(err, -22, 0, 0, "", "mlx5_0"), nil},
		"end":           {destroyed(17, "mlx5_0"), with(func(e *qp.PairEvent) { e.Kind, e.Port = qp.PairEnded, 0 })},
		"event": {eventOf(17, lastWQE, "mlx5_0"), with(func(e *qp.PairEvent) {
			e.Kind, e.Event, e.Port = qp.PairEvented, "qp_last_wqe_reached", 0
		})},
		"event of a completion queue": {happened(7, 0, 0, "mlx5_0"), nil},
		"event of a port":             {eventOf(17, portActive, "mlx5_0"), nil},
		"registration":                {began(traceHost, 7, 1, 32, "", "", "mlx5_0"), nil},
	} {
		r, ok := decodeTrace(c.record)
		if !ok {
			t.Fatalf("%s: no record", name)
		}
		var l pairLog
		l.add(&r, at)
		if got := l.after(0); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestPairLogIsBounded: readers at different places get what is kept, and see by the numbers what is not.
func TestPairLogIsBounded(t *testing.T) {
	var l pairLog
	const n = 5*pairsKept + 7
	for i := range uint32(n) {
		r, _ := decodeTrace(destroyed(i, fmt.Sprint("mlx5_", i%8)))
		l.add(&r, time.Time{})
	}
	if len(l.events) > 2*pairsKept || len(l.names) > pairsKept {
		t.Errorf("%d events, %d names", len(l.events), len(l.names))
	}
	for after, want := range map[uint64]int{0: pairsKept, n - pairsKept: pairsKept, n - 3: 3, n: 0, n + 9: 0} {
		got := l.after(after)
		if len(got) != want || want > 0 && got[want-1].Seq != n {
			t.Errorf("after %d: %d events, want %d", after, len(got), want)
		}
	}
}

// kernelOf returns types with the members that programs read; ports have a width of their own.
func kernelOf(t *testing.T, portSize uint32) *btf.Spec {
	t.Helper()
	u := func(size uint32) btf.Type { return &btf.Int{Name: fmt.Sprint("u", size*8), Size: size} }
	word, port := u(4), u(portSize)
	pointer := &btf.Pointer{Target: &btf.Void{}}
	structure := func(name string, members ...btf.Member) *btf.Struct {
		s := &btf.Struct{Name: name}
		for _, m := range members {
			size, err := btf.Sizeof(m.Type)
			if err != nil {
				t.Fatal(err)
			}
			m.Offset = btf.Bits(s.Size * 8)
			s.Size += uint32(size)
			s.Members = append(s.Members, m)
		}
		return s
	}
	grh := structure("ib_global_route", btf.Member{Name: "dgid", Type: &btf.Array{Index: word, Type: u(1), Nelems: 16}})
	infiniband := structure("ib_ah_attr", btf.Member{Name: "dlid", Type: u(2)})
	path := structure("rdma_ah_attr", btf.Member{Name: "grh", Type: grh}, btf.Member{Name: "ah_flags", Type: u(1)},
		btf.Member{Name: "type", Type: word},
		btf.Member{Type: &btf.Union{Size: 2, Members: []btf.Member{{Name: "ib", Type: infiniband}}}})
	content := &btf.Union{Size: 8, Members: []btf.Member{{Name: "qp", Type: pointer}, {Name: "port_num", Type: port}}}
	b, err := btf.NewBuilder([]btf.Type{
		structure("ib_qp", btf.Member{Name: "device", Type: pointer}, btf.Member{Name: "real_qp", Type: pointer},
			btf.Member{Name: "qp_num", Type: word}, btf.Member{Name: "port", Type: port},
			btf.Member{Name: "qp_type", Type: word}),
		structure("ib_qp_attr", btf.Member{Name: "qp_state", Type: word}, btf.Member{Name: "dest_qp_num", Type: word},
			btf.Member{Name: "ah_attr", Type: path}),
		structure("ib_event", btf.Member{Name: "device", Type: pointer}, btf.Member{Name: "element", Type: content},
			btf.Member{Name: "event", Type: word}),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := b.Marshal(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// TestTypesOfPairs: the width of a port is that of the running kernel.
func TestTypesOfPairs(t *testing.T) {
	for _, size := range []uint32{1, 4} {
		spec := kernelOf(t, size)
		got, err := readPairTypes([]*btf.Spec{spec})
		want := &pairTypes{
			device: 0, real: 8, kind: int32(20 + size), port: 20, portSize: int32(size), state: 0, peer: 4,
			pathType: 8 + 17, pathFlags: 8 + 16, pathGID: 8, pathID: 8 + 21,
		}
		if err != nil || *got != *want {
			t.Errorf("%d: %+v, want %+v: %v", size, got, want, err)
		}
		var width int32
		f := typeFinder{specs: []*btf.Spec{spec}}
		f.size(&width, "ib_event", "element.port_num")
		if f.err != nil || width != int32(size) {
			t.Errorf("event: %d, want %d: %v", width, size, f.err)
		}
	}
	if _, err := readPairTypes(nil); err == nil {
		t.Error("types without BTF")
	}
}
