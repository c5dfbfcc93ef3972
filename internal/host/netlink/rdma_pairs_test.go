package netlink

import (
	"errors"
	"slices"
	"testing"

	"github.com/vishvananda/netlink/nl"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot/qp"
)

// queuePair returns an entry of RES_QP_GET in the kernel's order (fill_res_qp_entry).
func queuePair(kind, state byte, number, peer uint32, more ...[]byte) []byte {
	return Attr(nldevAttrResQPEntry, slices.Concat(Attr(nl.RDMA_NLDEV_ATTR_PORT_INDEX, u32(1)),
		Attr(nldevAttrResLQPN, u32(number)), Attr(nldevAttrResRQPN, u32(peer)), Attr(nldevAttrResType, []byte{kind}),
		Attr(nldevAttrResState, []byte{state}), slices.Concat(more...)))
}

func TestParsePairs(t *testing.T) {
	const rc, gsi, ud, xrc = 2, 1, 4, 10
	const initialised, rts, err = 1, 3, 6
	ofProcess, ofKernel := Attr(nldevAttrResPID, u32(42)), Attr(nldevAttrResKernName, str("nvme-rdma"))
	one := qp.QueuePair{QPN: 17, PeerQPN: 18, Port: 1, PID: 42, State: rts}
	kernel, failed, shared := one, one, one
	kernel.PID, failed.State, shared.PeerQPN = 0, err, 0
	for name, c := range map[string]struct {
		entry []byte
		want  []qp.QueuePair
	}{
		"connected":     {queuePair(rc, rts, 17, 18, ofProcess), []qp.QueuePair{one}},
		"of the kernel": {queuePair(rc, rts, 17, 18, ofKernel), []qp.QueuePair{kernel}},
		"in error":      {queuePair(rc, err, 17, 18, ofProcess), []qp.QueuePair{failed}},
		"XRC target":    {queuePair(xrc, rts, 17, 0, ofProcess), []qp.QueuePair{shared}},
		"not connected": {queuePair(rc, initialised, 17, 0, ofProcess), nil},
		"datagrams":     {queuePair(ud, rts, 17, 0, ofProcess), nil},
		"management":    {queuePair(gsi, rts, 1, 0, ofKernel), nil},
	} {
		got, device, err := parseResources(resourcesMessage("mlx5_0", nldevAttrResQP, c.entry),
			nldevAttrResQP, nldevAttrResQPEntry, parsePair)
		if err != nil || device != "mlx5_0" || !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v of %q, %v", name, got, device, err)
		}
	}
	_, _, malformed := parseResources(nil, nldevAttrResQP, nldevAttrResQPEntry, parsePair)
	if !errors.Is(malformed, access.ErrMalformed) {
		t.Error(malformed)
	}
}

func FuzzParsePairs(f *testing.F) {
	f.Add(resourcesMessage("mlx5_0", nldevAttrResQP, queuePair(2, 3, 17, 18)))
	f.Fuzz(func(t *testing.T, msg []byte) {
		found, device, err := parseResources(msg, nldevAttrResQP, nldevAttrResQPEntry, parsePair)
		if (err == nil) != (device != "") || len(found) > len(msg)/4 {
			t.Fatalf("%v of %q, %v", found, device, err)
		}
	})
}
