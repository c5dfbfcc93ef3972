package infiniband

import (
	"context"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

var (
	stackLoaded = metric.Unknown(map[string][]string{"": {`rdma_stack_info{expected="unknown"}`}},
		metric.Of("rdma_stack_info", metric.Asks(source.PCI, metric.Host("rdma_stack_loaded",
			"Whether the kernel's RDMA stack is loaded: an RDMA device is registered, and ib_uverbs is available to applications. Absent on hosts without an RDMA-capable PCI function, and where it is unknown whether the Ethernet controllers are meant for RDMA.",
			"/sys/class/infiniband, /sys/class/infiniband_verbs, /sys/bus/pci/devices/ADDRESS/{vendor,device,class}",
		))))
	stackInfo = metric.Of(
		"rdma_stack_info",
		metric.Beside("rdma_stack_loaded", metric.Asks(source.PCI, metric.Host(
			"rdma_stack_info",
			"Missing part of an RDMA stack that is not loaded, always 1. state: no_device, no_uverbs. expected: reason why the stack is expected: configuration, inventory, compute, rdma_function (InfiniBand, Omni-Path, EFA), device; unknown where the only candidates are RDMA-capable Ethernet controllers.",
			"/sys/class/infiniband, /sys/class/infiniband_verbs; the inventory in the state directory",
			"state",
			"expected",
		))),
	)
	stackSettled = metric.Beside("rdma_stack_loaded", metric.Host(
		"rdma_stack_settled_seconds",
		"Time since the host booted, or since the exporter observed a kernel module being loaded or removed. Only for an RDMA stack that is not loaded.",
		"/proc/uptime, entries of /sys/module"))
	stackFunction = metric.Beside("rdma_stack_loaded", metric.Host("rdma_stack_function_info",
		"RDMA-capable PCI function of a host without an RDMA device, always 1. kind: rdma (RDMA adapter), ethernet (Ethernet controller with RDMA support). driver is empty where none is bound. Functions passed through to a virtual machine (vfio-pci) are not included.",
		"/sys/bus/pci/devices/ADDRESS/{vendor,device,class,driver}", "pci_address", "kind", "driver"))
	verbsNode = metric.Asks(source.PCI, metric.Device("rdma_device_verbs_node_present",
		"Whether the uverbs node of the device exists in /dev/infiniband, as applications need to open it. Absent where /dev belongs to a container.",
		"/sys/class/infiniband_verbs/uverbsN/ibdev, /dev/infiniband", "node"))
)

// stackDescs are those of the stack.
var stackDescs = []*metric.Desc{stackLoaded, stackInfo, stackSettled, stackFunction, verbsNode}

// stack is the state of the RDMA stack, read each minute and when devices are added or removed.
type stack struct {
	last    reading.Last
	devices []string
	nodes   []hostdata.VerbsNode
	state   hostdata.StackState // empty: no RDMA-capable function, or unknown
	ready   []hostdata.StackFunction
	bare    []hostdata.BareFunction // without an RDMA device, beside others that have one
	apart   bool                    // network namespaces have their own devices
	modules uint64                  // hash of the names of those that are loaded
	changed time.Time               // of the last change; zero: none observed
}

// readStack reads whether the RDMA stack is loaded.
func (c *infiniBand) readStack(ctx context.Context, h *host.Host) {
	now := h.Now()
	names, err := h.Devices() // including excluded ones
	if err != nil && !access.IsAbsent(err) {
		c.stack.state = ""
		return
	}
	if !c.stack.last.Due(now, shared.SlowInterval) && slices.Equal(names, c.stack.devices) {
		return
	}
	s := c.stack
	if _, err := reading.OfHost(ctx, h, "pci", source.PCI, func(r reading.Reads) { s.read(r, names) }); err == nil {
		c.stack = s
	}
}

func (s *stack) read(r reading.Reads, names []string) {
	s.last.Read(r.Now())
	s.devices, s.state, s.apart = slices.Clone(names), "", namespacesExclusive(r)
	all := functionsOfNICs(r)
	s.ready, s.nodes, s.bare = nil, nil, nil
	if len(names) > 0 {
		s.nodes = verbsNodes(r)
		s.bare = withoutDevice(all, s.apart)
		if verbsLoaded(r) {
			s.state = hostdata.StackLoaded
			return
		}
		s.state = hostdata.StackNoVerbs
	} else if s.ready = functionsForRDMA(all); len(s.ready) > 0 && !s.apart {
		s.state = hostdata.StackNoDevice
	}
	if loaded, ok := loadedModules(r); ok && s.state != "" {
		if s.modules != 0 && s.modules != loaded {
			s.changed = s.last.Time()
		}
		s.modules = loaded
	}
}

// verbsLoaded reports whether ib_uverbs is loaded, true where unknown: it creates its class when it is loaded
// (ib_uverbs_init, drivers/infiniband/core/uverbs_main.c).
func verbsLoaded(r reading.Reads) bool {
	for _, dir := range []string{sysfs.VerbsDir, "sys/module/ib_uverbs"} {
		if _, err := r.Host.Files.List(dir); !access.IsAbsent(err) {
			return true
		}
	}
	_, err := r.Host.Files.List("sys/module/ib_core") // a tree without modules is no evidence
	return err != nil
}

// namespacesExclusive reports whether RDMA devices belong to network namespaces: another one may have those that are
// not visible.
func namespacesExclusive(r reading.Reads) bool {
	s, err := r.Host.RDMA.System(r.Ctx)
	return err == nil && s.NetnsMode != nil && *s.NetnsMode == 0
}

// loadedModules returns a hash of the names of modules.
func loadedModules(r reading.Reads) (uint64, bool) {
	names, err := r.Host.Files.List("sys/module")
	if err != nil {
		return 0, false
	}
	sum := fnv.New64a()
	for _, n := range names {
		sum.Write([]byte(n + "\n"))
	}
	return sum.Sum64(), true
}

// verbsNodes compares the nodes in /dev/infiniband with the class; nil where /dev is not the host's. Only udev links
// each character device in /dev/char, a container runtime does not.
func verbsNodes(r reading.Reads) (out []hostdata.VerbsNode) {
	if links, err := r.Host.Files.List("dev/char"); err != nil || len(links) == 0 {
		return nil
	}
	there, err := r.Host.Files.List("dev/infiniband")
	if err != nil && !access.IsAbsent(err) {
		return nil
	}
	names, _ := r.Host.Files.List(sysfs.VerbsDir)
	for _, n := range names {
		if !strings.HasPrefix(n, "uverbs") {
			continue
		}
		if device := r.Optional(sysfs.VerbsDir + "/" + n + "/ibdev"); device != "" {
			out = append(out, hostdata.VerbsNode{Device: device, Name: n, Present: slices.Contains(there, n)})
		}
	}
	return out
}

// noDevice is nil if the kernel has an RDMA device, or unknown.
func (c *infiniBand) noDevice(h *host.Host) *hostdata.NoDevice {
	names, err := h.Devices() // including excluded ones
	if len(names) > 0 || err != nil && !access.IsAbsent(err) || !c.stack.last.Known() {
		return nil
	}
	return &hostdata.NoDevice{Functions: len(c.stack.ready), Namespaced: c.stack.apart && len(c.stack.ready) > 0}
}

// stackOf returns the expectation of the stack, and its reason.
func (c *infiniBand) stackOf(now time.Time, boot hostdata.Boot, devices []snapshot.Device) *hostdata.Stack {
	s := &c.stack
	if s.state == "" {
		return nil
	}
	out := &hostdata.Stack{State: s.state, Nodes: slices.DeleteFunc(slices.Clone(s.nodes),
		func(n hostdata.VerbsNode) bool { return !c.roster.Wanted(n.Device) })}
	if s.state == hostdata.StackLoaded {
		return out
	}
	out.Functions = s.ready[:min(len(s.ready), hostdata.StackFunctions)]
	if boot.Uptime != nil {
		out.Settled = time.Duration(min(*boot.Uptime, 1e9) * float64(time.Second)) // 30 years
	}
	if since := now.Sub(s.changed); !s.changed.IsZero() && (out.Settled == 0 || since < out.Settled) {
		out.Settled = since
	}
	out.Expected = c.stackExpected(devices)
	return out
}

func (c *infiniBand) stackExpected(devices []snapshot.Device) hostdata.StackExpected {
	compute := func(d snapshot.Device) bool {
		return slices.ContainsFunc(d.Ports, func(p snapshot.Port) bool { return p.Role == string(pci.Compute) })
	}
	switch {
	case len(c.conf.Current().Required(c.conf.Hostname)) > 0:
		return hostdata.ExpectedConfiguration
	case slices.ContainsFunc(c.stack.ready, func(f hostdata.StackFunction) bool {
		return slices.ContainsFunc(c.absent.functions,
			func(known expect.FunctionRecord) bool { return known.PCIAddress == f.PCIAddress })
	}):
		return hostdata.ExpectedInventory
	case slices.ContainsFunc(devices, compute):
		return hostdata.ExpectedCompute
	case len(devices) > 0:
		return hostdata.ExpectedDevice
	case slices.ContainsFunc(c.stack.ready, func(f hostdata.StackFunction) bool { return f.Kind == string(pci.RDMAOnly) }):
		return hostdata.ExpectedFunction
	}
	return hostdata.ExpectedUnknown
}

func emitStack(s metric.Sink, st *hostdata.Stack) {
	if st == nil {
		return
	}
	for _, n := range st.Nodes {
		s.Emit(verbsNode, metric.BoolValue(n.Present), n.Device, n.Name)
	}
	if st.State == hostdata.StackLoaded {
		s.Emit(stackLoaded, 1)
		return
	}
	if st.Expected != hostdata.ExpectedUnknown {
		s.Emit(stackLoaded, 0)
	}
	s.Emit(stackInfo, 1, string(st.State), string(st.Expected))
	if st.Settled > 0 {
		s.Emit(stackSettled, st.Settled.Seconds())
	}
	for _, f := range st.Functions {
		s.Emit(stackFunction, 1, f.PCIAddress, f.Kind, f.Driver)
	}
}
