package ebpf

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// kernelTypes are offsets in structures of the running kernel and its modules, in bytes. The BTF that they are from is
// not kept.
type kernelTypes struct {
	deviceName                 int32 // device.kobj.name, a pointer
	dmabufSize, dmabufExporter int32 // the latter a pointer
	rdma                       *rdmaTypes
	rdmaError                  error // why rdma is nil
}

// rdmaTypes are those of the RDMA core, whose modules may have been built without BTF.
type rdmaTypes struct {
	name, dmaDevice                      int32 // ib_device; the latter a pointer
	eventDevice, eventElement, eventKind int32 // ib_event; the first a pointer
	qpTask, cqTask                       int32 // pointers to the task that created the object
	taskTGID                             int32
	umemDMABUF                           int32 // ib_umem.is_dmabuf: its byte
	umemDMABUFMask                       int32 // and bit; 0: not found
	eventPortSize                        int32 // of ib_event.element.port_num: 1 before Linux 5.13, else 4
	qpNumber                             int32 // ib_qp
	pairs                                *pairTypes
	pairsError                           error // why pairs is nil
}

// readKernelTypes parses the BTF of the kernel and of the RDMA core: some 25 ms of CPU time, seconds on an emulated
// one.
func readKernelTypes(cache *btf.Cache) (*kernelTypes, error) {
	kernel, err := cache.Kernel()
	if err != nil {
		return nil, fmt.Errorf("no type information of the kernel (CONFIG_DEBUG_INFO_BTF): %w", err)
	}
	t := &kernelTypes{}
	f := typeFinder{specs: []*btf.Spec{kernel}}
	f.offset(&t.deviceName, "device", "kobj.name")
	f.offset(&t.dmabufSize, "dma_buf", "size")
	f.offset(&t.dmabufExporter, "dma_buf", "exp_name")
	if f.err != nil {
		return nil, f.err
	}
	t.rdma, t.rdmaError = readRDMATypes(cache, kernel)
	return t, nil
}

func readRDMATypes(cache *btf.Cache, kernel *btf.Spec) (*rdmaTypes, error) {
	t := &rdmaTypes{}
	f := typeFinder{}
	for _, module := range []string{"ib_core", "ib_uverbs"} {
		if spec, err := cache.Module(module); err == nil {
			f.specs = append(f.specs, spec)
		}
	}
	f.specs = append(f.specs, kernel) // drivers built in
	f.offset(&t.name, "ib_device", "name")
	f.offset(&t.dmaDevice, "ib_device", "dma_device")
	f.offset(&t.eventDevice, "ib_event", "device")
	f.offset(&t.eventElement, "ib_event", "element")
	f.offset(&t.eventKind, "ib_event", "event")
	f.offset(&t.qpTask, "ib_qp", "res.task")
	f.offset(&t.cqTask, "ib_cq", "res.task")
	f.offset(&t.taskTGID, "task_struct", "tgid")
	f.offset(&t.qpNumber, "ib_qp", "qp_num")
	f.size(&t.eventPortSize, "ib_event", "element.port_num")
	if f.err != nil {
		return nil, fmt.Errorf("no type information (BTF) of ib_core: %w", f.err)
	}
	f.bit(&t.umemDMABUF, &t.umemDMABUFMask, "ib_umem", "is_dmabuf")
	t.pairs, t.pairsError = readPairTypes(f.specs)
	return t, nil
}

// typeFinder finds members of structures; err is the first failure.
type typeFinder struct {
	specs []*btf.Spec
	err   error
}

var errNoMember = errors.New("no such member")

// member finds a member by its path in a structure: its offset in bits, and itself.
func (f *typeFinder) member(structure, path string) (at btf.Bits, found btf.Member, err error) {
	err = fmt.Errorf("struct %s: %w", structure, btf.ErrNotFound)
	for _, spec := range f.specs {
		types, lookup := spec.AnyTypesByName(structure)
		if lookup != nil {
			continue
		}
		for _, t := range types {
			if at, found, err = memberAt(t, strings.Split(path, ".")); err == nil {
				return at, found, nil
			}
		}
	}
	return 0, found, fmt.Errorf("struct %s, %s: %w", structure, path, err)
}

// memberAt searches members without name, too.
func memberAt(t btf.Type, path []string) (at btf.Bits, found btf.Member, err error) {
	var members []btf.Member
	switch t := btf.UnderlyingType(t).(type) {
	case *btf.Struct:
		members = t.Members
	case *btf.Union:
		members = t.Members
	}
	for _, m := range members {
		rest := path
		switch {
		case m.Name == path[0] && len(path) == 1:
			return m.Offset, m, nil
		case m.Name == path[0]:
			rest = path[1:]
		case m.Name != "":
			continue
		}
		if at, found, err := memberAt(m.Type, rest); err == nil {
			return m.Offset + at, found, nil
		}
	}
	return 0, found, errNoMember
}

func (f *typeFinder) offset(to *int32, structure, path string) {
	at, _, err := f.member(structure, path)
	if f.err = cmp.Or(f.err, err); err == nil {
		*to = int32(at.Bytes())
	}
}

// size is the width of an integer in bytes.
func (f *typeFinder) size(to *int32, structure, path string) {
	_, m, err := f.member(structure, path)
	if err == nil {
		var n int
		n, err = btf.Sizeof(m.Type)
		*to = int32(n)
	}
	f.err = cmp.Or(f.err, err)
}

// bit is the byte and the mask of a bit field on a little-endian machine; unchanged if there is none.
func (f *typeFinder) bit(at, mask *int32, structure, path string) {
	bits, m, err := f.member(structure, path)
	if err == nil && m.BitfieldSize == 1 {
		*at, *mask = int32(bits/8), 1<<(bits%8)
	}
}
