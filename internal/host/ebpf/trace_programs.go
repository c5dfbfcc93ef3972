package ebpf

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// The programs are written as instructions: neither a compiler nor compiled objects are needed. They copy some words
// into a ring buffer and change nothing. Arguments are in R6 to R9, which calls preserve; records are built on the
// stack.

// argumentOffsets are the offsets of the arguments of a function in struct pt_regs, and of its result.
var argumentOffsets = map[string]struct {
	arguments []int16
	result    int16
}{
	"amd64": {[]int16{112, 104, 96, 88, 72}, 80}, // di, si, dx, cx, r8; ax
	"arm64": {[]int16{0, 8, 16, 24, 32}, 0},      // x0 to x4; x0
}

var errNoRegisters = fmt.Errorf("not supported on %s", runtime.GOARCH)

// traceMaps are shared by the programs.
type traceMaps struct {
	ring *ebpf.Map // of records
	lost *ebpf.Map // one number: records that did not fit
	// Arguments by thread, from the entry of a function to its end or to the next function that it calls: two words each.
	attaching, registering, importing, acquiring, modifying *ebpf.Map
}

const (
	// traceRing is the size of the ring buffer: half a second at maxTraceRate fits twice.
	traceRing = 2 << 20
	// traceThreads limits the threads that are inside one function at a time.
	traceThreads = 8192
)

func newTraceMaps() (m *traceMaps, err error) {
	m = &traceMaps{}
	for _, s := range []struct {
		to   **ebpf.Map
		spec ebpf.MapSpec
	}{
		{&m.ring, ebpf.MapSpec{Name: "rdma_events", Type: ebpf.RingBuf, MaxEntries: traceRing}},
		{&m.lost, ebpf.MapSpec{Name: "rdma_lost", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1}},
		{&m.attaching, threadMap("rdma_attaching", ebpf.Hash)},
		{&m.registering, threadMap("rdma_registerin", ebpf.Hash)},
		{&m.importing, threadMap("rdma_importing", ebpf.LRUHash)}, // no end is observed of these
		{&m.acquiring, threadMap("rdma_acquiring", ebpf.LRUHash)},
		{&m.modifying, threadMap("rdma_modifying", ebpf.Hash)},
	} {
		if *s.to, err = ebpf.NewMap(&s.spec); err != nil {
			return m, fmt.Errorf("create map %s: %w", s.spec.Name, err)
		}
	}
	return m, nil
}

func threadMap(name string, kind ebpf.MapType) ebpf.MapSpec {
	return ebpf.MapSpec{Name: name, Type: kind, KeySize: 8, ValueSize: 16, MaxEntries: traceThreads}
}

func (m *traceMaps) close() error {
	var errs []error
	for _, one := range []*ebpf.Map{m.ring, m.lost, m.attaching, m.registering, m.importing, m.acquiring, m.modifying} {
		if one != nil {
			errs = append(errs, one.Close())
		}
	}
	return errors.Join(errs...)
}

// Places on the stack below a record.
const (
	scratch   = -8  // one word
	threadKey = -16 // of the maps by thread
	pair      = -32 // a value of theirs
	record    = -32 // the end of a record, its begin is below
)

// hook is how a program is attached to a function.
type hook struct {
	fentry bool // by a trampoline (fentry or fexit), else by a kprobe
}

// endArguments is the number of arguments of the functions whose end is observed, dma_buf_dynamic_attach, ib_umem_get
// and ib_modify_qp_with_udata: the result follows them.
const endArguments = 4

// load loads an argument. R1 is the context, as at the start of the program.
func (h hook) load(to asm.Register, n int) asm.Instruction {
	if h.fentry {
		return asm.LoadMem(to, asm.R1, int16(8*n), asm.DWord)
	}
	return asm.LoadMem(to, asm.R1, argumentOffsets[runtime.GOARCH].arguments[n], asm.DWord)
}

func (h hook) loadResult(to asm.Register) asm.Instruction { return h.loadResultAfter(to, endArguments) }

// loadResultAfter is loadResult of a function with another number of arguments.
func (h hook) loadResultAfter(to asm.Register, arguments int) asm.Instruction {
	if h.fentry {
		return asm.LoadMem(to, asm.R1, int16(8*arguments), asm.DWord)
	}
	return asm.LoadMem(to, asm.R1, argumentOffsets[runtime.GOARCH].result, asm.DWord)
}

func program(parts ...asm.Instructions) (out asm.Instructions) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return append(out, asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"), asm.Return())
}

// read copies kernel memory at a register plus an offset to the stack; zeros if it is not readable.
func read(to int16, size int32, from asm.Register, offset int32) asm.Instructions {
	return copyMemory(asm.FnProbeReadKernel, to, size, from, offset)
}

// readString copies a string with its final zero.
func readString(to int16, size int32, from asm.Register, offset int32) asm.Instructions {
	return copyMemory(asm.FnProbeReadKernelStr, to, size, from, offset)
}

func copyMemory(f asm.BuiltinFunc, to int16, size int32, from asm.Register, offset int32) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, int32(to)),
		asm.Mov.Imm(asm.R2, size),
		asm.Mov.Reg(asm.R3, from), asm.Add.Imm(asm.R3, offset),
		f.Call(),
	}
}

// readPointer loads the word at a register plus an offset.
func readPointer(to, from asm.Register, offset int32) asm.Instructions {
	return append(read(scratch, 8, from, offset), asm.LoadMem(to, asm.RFP, scratch, asm.DWord))
}

// zero clears size bytes of the stack, a multiple of 8.
func zero(at int16, size int) (out asm.Instructions) {
	out = append(out, asm.Mov.Imm(asm.R0, 0))
	for i := 0; i < size; i += 8 {
		out = append(out, asm.StoreMem(asm.RFP, at+int16(i), asm.R0, asm.DWord))
	}
	return out
}

func storeWord(at int16, value int32) asm.Instructions {
	return asm.Instructions{asm.Mov.Imm(asm.R0, value), asm.StoreMem(asm.RFP, at, asm.R0, asm.Word)}
}

// storePID stores the current process in the initial PID namespace.
func storePID(at int16) asm.Instructions {
	return asm.Instructions{
		asm.FnGetCurrentPidTgid.Call(), asm.RSh.Imm(asm.R0, 32), asm.StoreMem(asm.RFP, at, asm.R0, asm.Word),
	}
}

// output appends the record at the end of the stack's upper part to the ring buffer, and counts one that does not fit.
func (m *traceMaps) output(size int) asm.Instructions {
	return append(asm.Instructions{
		asm.LoadMapPtr(asm.R1, m.ring.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, int32(record-size)),
		asm.Mov.Imm(asm.R3, int32(size)),
		asm.Mov.Imm(asm.R4, unix.BPF_RB_NO_WAKEUP), // the reader comes by itself
		asm.FnRingbufOutput.Call(),
		asm.JEq.Imm(asm.R0, 0, "exit"),
	}, m.lose()...)
}

// lose counts a lost record.
func (m *traceMaps) lose() asm.Instructions {
	return asm.Instructions{
		asm.LoadMapValue(asm.R1, m.lost.FD(), 0),
		asm.Mov.Imm(asm.R2, 1),
		asm.AddAtomic.Mem(asm.R1, asm.R2, asm.DWord, 0),
	}
}

// keyOfThread stores the key of the maps by thread.
func keyOfThread() asm.Instructions {
	return asm.Instructions{asm.FnGetCurrentPidTgid.Call(), asm.StoreMem(asm.RFP, threadKey, asm.R0, asm.DWord)}
}

// savedArguments loads what saveArguments has stored into R6 and R7, and removes it. It continues at a label if there
// is nothing.
func savedArguments(m *ebpf.Map, nothing string) asm.Instructions {
	out := keyOfThread()
	out = append(out,
		asm.LoadMapPtr(asm.R1, m.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, threadKey),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, nothing),
		asm.LoadMem(asm.R6, asm.R0, 0, asm.DWord), asm.LoadMem(asm.R7, asm.R0, 8, asm.DWord),
	)
	return append(out, drop(m)...)
}

// drop removes what saveArguments has stored under the key of keyOfThread.
func drop(m *ebpf.Map) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, m.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, threadKey),
		asm.FnMapDeleteElem.Call(),
	}
}

// failed leaves the program if a function has returned an error pointer or null.
func failed(result asm.Register) asm.Instructions {
	return asm.Instructions{asm.JEq.Imm(result, 0, "exit"), asm.JGT.Imm(result, -4096, "exit")}
}

// saveArguments returns a program at the begin of a function that stores its argument 0 and another one, by thread.
func saveArguments(m *ebpf.Map, other int) func(hook) asm.Instructions {
	return func(h hook) asm.Instructions {
		return program(asm.Instructions{h.load(asm.R6, 0), h.load(asm.R7, other)}, keyOfThread(), asm.Instructions{
			asm.StoreMem(asm.RFP, pair, asm.R6, asm.DWord), asm.StoreMem(asm.RFP, pair+8, asm.R7, asm.DWord),
			asm.LoadMapPtr(asm.R1, m.FD()),
			asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, threadKey),
			asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, pair),
			asm.Mov.Imm(asm.R4, 0),
			asm.FnMapUpdateElem.Call(),
		})
	}
}

// beginRecord starts a record of a registration: R8 is the identity.
func beginRecord(mechanism int32) asm.Instructions {
	const at = record - beginSize
	return append(sequence(zero(at, beginSize), storeWord(at, recordBegin), storePID(at+beginPID),
		storeWord(at+beginMechanism, mechanism)),
		asm.StoreMem(asm.RFP, at+beginID, asm.R8, asm.DWord))
}

func sequence(parts ...asm.Instructions) (out asm.Instructions) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// attached returns the program at the end of dma_buf_dynamic_attach(dmabuf, device): R6, R7 and the attachment R8.
func (m *traceMaps) attached(h hook, t *kernelTypes) asm.Instructions {
	const at = record - beginSize
	var arguments asm.Instructions
	if h.fentry {
		arguments = asm.Instructions{h.load(asm.R6, 0), h.load(asm.R7, 1), h.loadResult(asm.R8)}
	} else {
		arguments = append(asm.Instructions{h.loadResult(asm.R8)}, savedArguments(m.attaching, "exit")...)
	}
	out := sequence(
		arguments, failed(asm.R8), beginRecord(traceDMABUF),
		read(at+beginBytes, 8, asm.R6, t.dmabufSize),
		readPointer(asm.R9, asm.R6, t.dmabufExporter), readString(at+beginExporter, exporterSize, asm.R9, 0),
		readPointer(asm.R9, asm.R7, t.deviceName), readString(at+beginFunction, functionSize, asm.R9, 0),
		// The RDMA core has called: R6 is its device, R7 the size of the part that it registers.
		savedArguments(m.importing, "output"),
		asm.Instructions{asm.StoreMem(asm.RFP, at+beginBytes, asm.R7, asm.DWord)},
	)
	if t.rdma != nil {
		out = append(out, readString(at+beginDevice, deviceSize, asm.R6, t.rdma.name)...)
	}
	return program(out, labelled("output", m.output(beginSize)))
}

func labelled(label string, code asm.Instructions) asm.Instructions {
	code[0] = code[0].WithSymbol(label)
	return code
}

// ended returns a program at the begin of a function that ends a registration: its identity is an argument.
func (m *traceMaps) ended(h hook, mechanism int32, argument int) asm.Instructions {
	return program(asm.Instructions{h.load(asm.R8, argument)}, m.endRecord(mechanism))
}

func (m *traceMaps) endRecord(mechanism int32) asm.Instructions {
	const at = record - endSize
	return sequence(storeWord(at, recordEnd), storeWord(at+endMechanism, mechanism),
		asm.Instructions{asm.StoreMem(asm.RFP, at+endID, asm.R8, asm.DWord)}, m.output(endSize))
}

// released returns the program at the begin of ib_umem_release(umem). Memory of a DMA-BUF is not host memory.
func (m *traceMaps) released(h hook, t *rdmaTypes) asm.Instructions {
	out := asm.Instructions{h.load(asm.R8, 0)}
	if t.umemDMABUFMask != 0 {
		out = append(out, read(scratch, 1, asm.R8, t.umemDMABUF)...)
		out = append(out, asm.LoadMem(asm.R1, asm.RFP, scratch, asm.Byte), asm.And.Imm(asm.R1, t.umemDMABUFMask),
			asm.JNE.Imm(asm.R1, 0, "exit"))
	}
	return program(out, m.endRecord(traceHost))
}

// registered returns the program at the end of ib_umem_get(device, address, size): R6, R7 and the result R8.
func (m *traceMaps) registered(h hook, t *kernelTypes) asm.Instructions {
	const at = record - beginSize
	return program(
		asm.Instructions{h.loadResult(asm.R8)}, savedArguments(m.registering, "exit"), failed(asm.R8),
		beginRecord(traceHost),
		asm.Instructions{asm.StoreMem(asm.RFP, at+beginBytes, asm.R7, asm.DWord)},
		readString(at+beginDevice, deviceSize, asm.R6, t.rdma.name),
		readPointer(asm.R9, asm.R6, t.rdma.dmaDevice),
		readPointer(asm.R9, asm.R9, t.deviceName), readString(at+beginFunction, functionSize, asm.R9, 0),
		m.output(beginSize),
	)
}

// mapped returns the program at the begin of a peer memory client's dma_map(sg, context, device): its context R8 is the
// identity. It was acquired by the same thread. The registration is not one of host memory.
func (m *traceMaps) mapped(h hook, t *kernelTypes) asm.Instructions {
	const at = record - beginSize
	return program(
		asm.Instructions{h.load(asm.R8, 1), h.load(asm.R9, 2)},
		beginRecord(tracePeermem),
		readPointer(asm.R9, asm.R9, t.deviceName), readString(at+beginFunction, functionSize, asm.R9, 0),
		keyOfThread(), drop(m.registering),
		savedArguments(m.acquiring, "output"),
		asm.Instructions{asm.StoreMem(asm.RFP, at+beginBytes, asm.R7, asm.DWord)},
		labelled("output", m.output(beginSize)),
	)
}

// element is an event's element: offsets of the pointer to the creating task, and of the number of a queue pair;
// negative if there is none.
type element struct{ task, number int32 }

// dispatched returns the program at the begin of a function with an event as argument 0.
func (m *traceMaps) dispatched(h hook, t *rdmaTypes, of element) asm.Instructions {
	const at = record - asyncSize
	out := sequence(
		asm.Instructions{h.load(asm.R6, 0)},
		zero(at, asyncSize), storeWord(at, recordAsync),
		read(at+asyncEvent, 4, asm.R6, t.eventKind),
		readPointer(asm.R7, asm.R6, t.eventDevice), readString(at+asyncDevice, deviceSize, asm.R7, t.name),
	)
	if of.task < 0 {
		out = append(out, read(at+asyncPort, t.eventPortSize, asm.R6, t.eventElement)...)
	} else {
		out = append(out, readPointer(asm.R8, asm.R6, t.eventElement)...)
		if of.number >= 0 {
			out = append(out, read(at+asyncQPN, 4, asm.R8, of.number)...)
		}
		out = append(out, readPointer(asm.R8, asm.R8, of.task)...)
		out = append(out, read(at+asyncPID, 4, asm.R8, t.taskTGID)...)
	}
	return program(out, m.output(asyncSize))
}
