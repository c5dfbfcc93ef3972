package ebpf

import (
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// Bits of enum ib_qp_attr_mask.
const (
	maskState = 1 << 0
	maskPath  = 1 << 7  // IB_QP_AV
	maskPeer  = 1 << 20 // IB_QP_DEST_QPN
)

// Of enum ib_qp_state.
const (
	stateRTR = 2
	stateERR = 6
)

// connectedKinds are those of enum ib_qp_type with one peer: RC, UC, XRC initiator and target.
var connectedKinds = []int32{2, 3, 9, 10}

// pairModifies returns the program at the begin of a function with a queue pair, its attributes and their mask. It
// keeps the first two for moves to RTR with a path and a peer, and for moves to ERR.
func (m *traceMaps) pairModifies(h hook, t *rdmaTypes) asm.Instructions {
	const path = maskPath | maskPeer
	out := asm.Instructions{
		h.load(asm.R6, 0), h.load(asm.R7, 1), h.load(asm.R8, 2),
		asm.Mov.Reg(asm.R1, asm.R8), asm.And.Imm(asm.R1, maskState), asm.JEq.Imm(asm.R1, 0, "exit"),
	}
	out = append(out, zero(scratch, 8)...)
	out = append(out, read(scratch, 4, asm.R7, t.pairs.state)...)
	out = append(out,
		asm.LoadMem(asm.R1, asm.RFP, scratch, asm.Word),
		asm.JEq.Imm(asm.R1, stateERR, "keep"), asm.JNE.Imm(asm.R1, stateRTR, "exit"),
		asm.And.Imm(asm.R8, path), asm.JNE.Imm(asm.R8, path, "exit"),
	)
	keep := append(labelled("keep", keyOfThread()),
		asm.StoreMem(asm.RFP, pair, asm.R6, asm.DWord), asm.StoreMem(asm.RFP, pair+8, asm.R7, asm.DWord))
	keep = append(keep, m.store(unix.BPF_NOEXIST)...)
	keep = append(keep, asm.JEq.Imm(asm.R0, 0, "exit"))
	// The end of this thread's last call was not observed, or the map is full.
	keep = append(keep, m.lose()...)
	return program(out, keep, m.store(unix.BPF_ANY))
}

// store stores two words of the current thread in the map of modifications.
func (m *traceMaps) store(flags int32) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, m.modifying.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, threadKey),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, pair),
		asm.Mov.Imm(asm.R4, flags),
		asm.FnMapUpdateElem.Call(),
	}
}

// realPair loads the queue pair itself into R6, which may be a handle of a shared XRC target, and leaves the program
// for a kind without one peer.
func realPair(t *rdmaTypes) asm.Instructions {
	out := append(readPointer(asm.R6, asm.R6, t.pairs.real), zero(scratch, 8)...)
	out = append(out, read(scratch, 4, asm.R6, t.pairs.kind)...)
	out = append(out, asm.LoadMem(asm.R1, asm.RFP, scratch, asm.Word))
	for _, kind := range connectedKinds {
		out = append(out, asm.JEq.Imm(asm.R1, kind, "connected"))
	}
	return append(out, asm.Ja.Label("exit"))
}

// pairModified returns the program at the end of a modification: the result R8, R6 and R7 of pairModifies. The caller
// holds the attributes until its return.
func (m *traceMaps) pairModified(h hook, t *rdmaTypes, arguments int) asm.Instructions {
	const at = record - pairSize
	p := t.pairs
	return program(
		asm.Instructions{h.loadResultAfter(asm.R8, arguments)}, savedArguments(m.modifying, "exit"), realPair(t),
		labelled("connected", zero(at, pairSize)), storeWord(at, recordPair),
		asm.Instructions{asm.StoreMem(asm.RFP, at+pairResult, asm.R8, asm.Word)},
		read(at+pairState, 4, asm.R7, p.state),
		read(at+pairPeerQPN, 4, asm.R7, p.peer),
		read(at+pairPathType, 4, asm.R7, p.pathType),
		read(at+pairPathFlags, 1, asm.R7, p.pathFlags),
		read(at+pairPathID, 4, asm.R7, p.pathID),
		read(at+pairGID, gidSize, asm.R7, p.pathGID),
		read(at+pairQPN, 4, asm.R6, t.qpNumber),
		read(at+pairPort, p.portSize, asm.R6, p.port),
		readPointer(asm.R9, asm.R6, t.qpTask), read(at+pairPID, 4, asm.R9, t.taskTGID),
		readPointer(asm.R9, asm.R6, p.device), readString(at+pairDevice, deviceSize, asm.R9, t.name),
		asm.Instructions{
			asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, at+pairCommand), asm.Mov.Imm(asm.R2, commandSize),
			asm.FnGetCurrentComm.Call(),
		},
		m.output(pairSize),
	)
}

// pairEnded returns the program at the begin of ib_destroy_qp_user(queue pair). A shared XRC target ends with its last
// handle.
func (m *traceMaps) pairEnded(h hook, t *rdmaTypes) asm.Instructions {
	const at = record - pairEndSize
	return program(
		asm.Instructions{h.load(asm.R6, 0), asm.Mov.Reg(asm.R7, asm.R6)}, realPair(t),
		labelled("connected", asm.Instructions{asm.JNE.Reg(asm.R6, asm.R7, "exit")}),
		zero(at, pairEndSize), storeWord(at, recordPairEnd), storePID(at+pairEndPID),
		read(at+pairEndQPN, 4, asm.R6, t.qpNumber),
		readPointer(asm.R9, asm.R6, t.pairs.device), readString(at+pairEndDevice, deviceSize, asm.R9, t.name),
		m.output(pairEndSize),
	)
}
