package ebpf

import (
	"cmp"
	"fmt"

	"github.com/cilium/ebpf/btf"
)

// pairTypes are offsets of the structures of a queue pair and of its modification.
type pairTypes struct {
	device, real, kind, port             int32 // ib_qp; the first two pointers
	portSize                             int32 // of port: 1 before Linux 5.13, else 4
	state, peer                          int32 // ib_qp_attr: qp_state, dest_qp_num
	pathType, pathFlags, pathGID, pathID int32 // its ah_attr
}

func readPairTypes(specs []*btf.Spec) (*pairTypes, error) {
	t := &pairTypes{}
	f := typeFinder{specs: specs}
	for _, w := range []struct {
		to              *int32
		structure, path string
	}{
		{&t.device, "ib_qp", "device"},
		{&t.real, "ib_qp", "real_qp"},
		{&t.kind, "ib_qp", "qp_type"},
		{&t.port, "ib_qp", "port"},
		{&t.state, "ib_qp_attr", "qp_state"},
		{&t.peer, "ib_qp_attr", "dest_qp_num"},
		{&t.pathType, "ib_qp_attr", "ah_attr.type"},
		{&t.pathFlags, "ib_qp_attr", "ah_attr.ah_flags"},
		{&t.pathGID, "ib_qp_attr", "ah_attr.grh.dgid"},
		{&t.pathID, "ib_qp_attr", "ah_attr.ib.dlid"},
	} {
		f.offset(w.to, w.structure, w.path)
	}
	f.size(&t.portSize, "ib_qp", "port")
	if f.err != nil {
		return nil, fmt.Errorf("no type information (BTF) of queue pairs: %w", f.err)
	}
	return t, nil
}

// pairsMissing is why moves of queue pairs cannot be observed; nil: they can.
func (t *kernelTypes) pairsMissing() error {
	if t.rdma == nil {
		return t.rdmaError
	}
	return cmp.Or(t.rdma.pairsError, nil)
}
