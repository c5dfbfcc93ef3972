package ebpf

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// probe is a program and the function that it observes.
type probe struct {
	name     string // of the program, at most 15 characters
	function string
	end      bool // at the end of the function
	code     func(hook) asm.Instructions
}

// probeSet is the probes of one kind of facts: all of them, or none.
type probeSet struct {
	what   string
	needs  error // not nil: cannot be attached
	probes []probe
	has    *bool // set if attached
}

// modulesTraced are the modules with observed functions. Kprobes in a module end with it, and do not prevent that it is
// unloaded.
var modulesTraced = []string{"ib_core", "ib_uverbs", "nvidia_peermem", "nv_peer_mem", "amdgpu"}

// traceFacts are the kinds of facts that the attached programs report.
type traceFacts struct{ dmabuf, imports, host, peermem, events, qpEvents, pairs bool }

// trace is the attached programs.
type trace struct {
	facts   traceFacts
	missing []string // what is not observed, and why
	maps    *traceMaps
	links   []link.Link
	cache   *btf.Cache
}

// attachTrace attaches all programs that this kernel permits. Without those of DMA-BUF it is an error.
func attachTrace() (t *trace, err error) {
	if _, known := argumentOffsets[runtime.GOARCH]; !known {
		return nil, errNoRegisters
	}
	t = &trace{cache: btf.NewCache()}
	defer func() {
		t.cache = nil // megabytes of the kernel's types
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	types, err := readKernelTypes(t.cache)
	if err != nil {
		return t, err
	}
	if t.maps, err = newTraceMaps(); err != nil {
		return t, err
	}
	for _, s := range t.sets(types) {
		err := t.attachSet(s)
		switch {
		case err == nil, errors.Is(err, os.ErrNotExist): // the module is not loaded, or the kernel has another function
		case s.has == &t.facts.dmabuf:
			return t, fmt.Errorf("%s: %w", s.what, err)
		default:
			t.missing = append(t.missing, fmt.Sprintf("%s: %v", s.what, err))
		}
	}
	if !t.facts.dmabuf {
		return t, fmt.Errorf("attachments of DMA-BUFs: %w", os.ErrNotExist)
	}
	return t, nil
}

// sets lists the probes. Functions of the kernel itself have a trampoline (fentry, fexit) where the kernel supports it,
// functions of modules kprobes: a trampoline would hold the module, and its update would fail.
func (t *trace) sets(types *kernelTypes) []probeSet {
	m := t.maps
	return []probeSet{
		{"attachments of DMA-BUFs", nil, []probe{
			{"rdma_dma_attach", "dma_buf_dynamic_attach", true, func(h hook) asm.Instructions { return m.attached(h, types) }},
			{"rdma_dma_detach", "dma_buf_detach", false, func(h hook) asm.Instructions { return m.ended(h, traceDMABUF, 1) }},
		}, &t.facts.dmabuf},
		// Functions of the RDMA core that import a DMA-BUF: argument 0 is the device, the other one the size of the part.
		{"RDMA device of DMA-BUFs", nil, []probe{
			{"rdma_import", "ib_umem_dmabuf_get", false, saveArguments(m.importing, 2)},
		}, &t.facts.imports},
		// Since Linux 6.1, with a device of its own for data direct (mlx5) since 6.12.
		{"RDMA device of pinned DMA-BUFs", nil, []probe{
			{"rdma_import_dev", "ib_umem_dmabuf_get_pinned_with_dma_device", false, saveArguments(m.importing, 3)},
		}, new(bool)},
		{"RDMA device of pinned DMA-BUFs", nil, []probe{
			{"rdma_import_pin", "ib_umem_dmabuf_get_pinned", false, saveArguments(m.importing, 2)},
		}, new(bool)},
		{"host memory", types.rdmaError, []probe{
			{"rdma_umem_begin", "ib_umem_get", false, saveArguments(m.registering, 2)},
			{"rdma_umem_end", "ib_umem_get", true, func(h hook) asm.Instructions { return m.registered(h, types) }},
			{"rdma_umem_free", "ib_umem_release", false, func(h hook) asm.Instructions { return m.released(h, types.rdma) }},
		}, &t.facts.host},
		{"memory of nvidia_peermem", nil, peerProbes(m, types, "nv_mem_acquire", "nv_dma_map", "nv_mem_release"), &t.facts.peermem},
		{"memory of amdgpu by peer memory", nil, peerProbes(m, types, "amd_acquire", "amd_dma_map", "amd_release"), &t.facts.peermem},
		{"events of ports and devices", types.rdmaError, []probe{
			{"rdma_event", "ib_dispatch_event", false, func(h hook) asm.Instructions {
				return m.dispatched(h, types.rdma, element{-1, -1})
			}},
		}, &t.facts.events},
		{"events of queue pairs", types.rdmaError, []probe{
			{"rdma_qp_event", "ib_uverbs_qp_event_handler", false, func(h hook) asm.Instructions {
				return m.dispatched(h, types.rdma, element{types.rdma.qpTask, types.rdma.qpNumber})
			}},
			{"rdma_cq_event", "ib_uverbs_cq_event_handler", false, func(h hook) asm.Instructions {
				return m.dispatched(h, types.rdma, element{types.rdma.cqTask, -1})
			}},
		}, &t.facts.qpEvents},
		{"peers of queue pairs", types.pairsMissing(), []probe{
			{"rdma_pair_end", "ib_destroy_qp_user", false, func(h hook) asm.Instructions { return m.pairEnded(h, types.rdma) }},
			{"rdma_qp_user", "ib_modify_qp_with_udata", true, func(h hook) asm.Instructions { return m.pairModified(h, types.rdma, 4) }},
			{"rdma_qp_user_in", "ib_modify_qp_with_udata", false, func(h hook) asm.Instructions { return m.pairModifies(h, types.rdma) }},
			{"rdma_qp_kern", "ib_modify_qp", true, func(h hook) asm.Instructions { return m.pairModified(h, types.rdma, 3) }},
			{"rdma_qp_kern_in", "ib_modify_qp", false, func(h hook) asm.Instructions { return m.pairModifies(h, types.rdma) }},
		}, &t.facts.pairs},
	}
}

// peerProbes observe a peer memory client: acquire(address, size), dma_map(sg, context, device), release(context).
func peerProbes(m *traceMaps, types *kernelTypes, acquire, dmaMap, release string) []probe {
	return []probe{
		{"rdma_peer_get", acquire, false, saveArguments(m.acquiring, 1)},
		{"rdma_peer_map", dmaMap, false, func(h hook) asm.Instructions { return m.mapped(h, types) }},
		{"rdma_peer_free", release, false, func(h hook) asm.Instructions { return m.ended(h, tracePeermem, 0) }},
	}
}

// attachSet attaches the probes of a set. The ends of registrations are observed first: one that begins meanwhile would
// stay for ever.
func (t *trace) attachSet(s probeSet) error {
	if s.needs != nil {
		return s.needs
	}
	var links []link.Link
	for i := range slices.Backward(s.probes) {
		more, err := t.attachProbe(&s.probes[i])
		links = append(links, more...)
		if err != nil {
			return errors.Join(err, closeLinks(links))
		}
	}
	t.links = append(t.links, links...)
	*s.has = true
	return nil
}

// attachProbe attaches a program to its function.
func (t *trace) attachProbe(p *probe) ([]link.Link, error) {
	var traced error
	if t.inKernel(p.function) {
		l, err := t.trampoline(p)
		if err == nil {
			return []link.Link{l}, nil
		}
		traced = err
	}
	links, err := t.kprobe(p)
	if traced != nil && err != nil {
		err = fmt.Errorf("%w; %w", traced, err)
	}
	return links, err
}

// inKernel reports whether a function is one of the kernel itself.
func (t *trace) inKernel(function string) bool {
	spec, err := t.cache.Kernel()
	var f *btf.Func
	return err == nil && spec.TypeByName(function, &f) == nil
}

func (t *trace) trampoline(p *probe) (link.Link, error) {
	at := ebpf.AttachTraceFEntry
	if p.end {
		at = ebpf.AttachTraceFExit
	}
	prog, err := t.load(&ebpf.ProgramSpec{
		Name: p.name, Type: ebpf.Tracing, AttachType: at, AttachTo: p.function,
		Instructions: p.code(hook{fentry: true}),
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.function, err)
	}
	defer prog.Close() // the link holds it
	l, err := link.AttachTracing(link.TracingOptions{Program: prog})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.function, err)
	}
	return l, nil
}

// kprobe attaches a program by a kprobe. A program at the end of dma_buf_dynamic_attach needs one at its begin that
// keeps the arguments.
func (t *trace) kprobe(p *probe) (links []link.Link, err error) {
	if !hasKprobes() { // the library would try files of tracefs
		return nil, errNoKprobes
	}
	attach := link.Kprobe
	if p.end {
		attach = link.Kretprobe
	}
	l, err := t.kprobeOf(p.name, p.function, p.code(hook{}), attach)
	if err != nil {
		return nil, err
	}
	links = []link.Link{l}
	if p.name == "rdma_dma_attach" {
		l, err := t.kprobeOf("rdma_dma_begin", p.function, saveArguments(t.maps.attaching, 1)(hook{}), link.Kprobe)
		if err != nil {
			return nil, errors.Join(err, closeLinks(links))
		}
		links = append(links, l)
	}
	return links, nil
}

var errNoKprobes = errors.New("no kprobes in this kernel (CONFIG_KPROBE_EVENTS)")

func hasKprobes() bool {
	_, err := os.Stat("/sys/bus/event_source/devices/kprobe/type")
	return err == nil
}

func (t *trace) kprobeOf(name, function string, code asm.Instructions,
	attach func(string, *ebpf.Program, *link.KprobeOptions) (link.Link, error),
) (link.Link, error) {
	prog, err := t.load(&ebpf.ProgramSpec{Name: name, Type: ebpf.Kprobe, Instructions: code})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", function, err)
	}
	defer prog.Close()
	l, err := attach(function, prog, nil)
	if errors.Is(err, unix.EACCES) {
		return nil, errParanoid
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", function, err)
	}
	return l, nil
}

// errParanoid is the refusal of perf_event_open by kernels of Debian and Ubuntu, whose default of the setting is 3 and
// 4.
var errParanoid = errors.New("kprobes need kernel.perf_event_paranoid of 2 or less, or CAP_SYS_ADMIN")

// load loads one program, with the types that are already parsed. Helpers that read kernel memory are for programs with
// a GPL-compatible licence.
func (t *trace) load(spec *ebpf.ProgramSpec) (*ebpf.Program, error) {
	spec.License = "Dual MIT/GPL"
	c, err := ebpf.NewCollectionWithOptions(&ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{spec.Name: spec}},
		ebpf.CollectionOptions{Cache: t.cache})
	// The library supposes the limit of locked memory, which kernels have not applied since 5.11.
	if errors.Is(err, unix.EPERM) {
		return nil, errNotPermitted
	}
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.DetachProgram(spec.Name), nil
}

var errNotPermitted = fmt.Errorf("load program: %w: no CAP_BPF and CAP_PERFMON, kernel lockdown, or a kernel without tracing programs", unix.EPERM)

func closeLinks(links []link.Link) error {
	var errs []error
	for _, l := range links {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// close detaches all programs. The kernel does the same when the process ends.
func (t *trace) close() error {
	err := closeLinks(t.links)
	t.links = nil
	if t.maps != nil {
		err = errors.Join(err, t.maps.close())
	}
	return err
}
