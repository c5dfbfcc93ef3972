package check

import (
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/account"
	"rdma_exporter/internal/maintenance"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/internal/words"
)

// Seen is the state that is reported although it has no alert.
type Seen struct {
	// Objects are all objects of the host, each in one class (account.Class).
	Objects []account.Object `json:"objects"`
	// Stack is set if there are RDMA-capable PCI functions, the RDMA stack of the kernel is not loaded, and it is unknown
	// whether it is expected.
	Stack *Stack `json:"rdma_stack,omitempty"`
	Rates Rates  `json:"rates_unvouched"`
	// NoDevice is set if the host has no RDMA device.
	NoDevice *hostdata.NoDevice `json:"no_rdma_device,omitempty"`
	// Failed is set if reads fail: their data is unknown.
	Failed *FailedReads `json:"failed_reads,omitempty"`
	// FirmwareFirst: the firmware of the host handles PCIe errors, which no counter of the kernel has.
	FirmwareFirst bool `json:"pcie_errors_by_firmware,omitempty"`
	// Functions is set if data of a host with many functions is left out.
	Functions *Functions `json:"functions,omitempty"`
	// Maintenance is set while maintenance is announced for the host.
	Maintenance *maintenance.Notice `json:"maintenance,omitempty"`
	// Fabric is set in the report of a swept fabric.
	Fabric *Fabric `json:"fabric,omitempty"`
	// GPUsReleased is set while the GPUs are released on request, so that the exporter reads none.
	GPUsReleased *accel.GPURelease `json:"gpus_released,omitempty"`
}

// Stack is an RDMA stack that is not loaded.
type Stack struct {
	State     string   `json:"state"`     // snapshot.StackState
	Functions []string `json:"functions"` // PCI addresses of the RDMA-capable functions
}

// FailedReads are the reads that fail.
type FailedReads struct {
	Devices []string `json:"devices"` // devices of the reads, sorted
	Others  []string `json:"others"`  // collectors of reads that belong to no RDMA device, sorted
	First   string   `json:"first"`   // the error of one of them
}

// Rates are the rates of ACTIVE links that neither the configuration nor the far end confirms.
type Rates struct {
	Ports int `json:"ports"`
	// Capable is the highest rate in bits per second that the NIC of one of these ports supports but that is not in use;
	// 0: unknown.
	Capable float64 `json:"capable_bits_per_second,omitempty"`
	// SlowModes are the InfiniBand ports among them in a mode to which a bad link falls back: "mlx5_0/1 (1X)".
	SlowModes []string `json:"slow_modes,omitempty"`
}

// Fabric is a fabric as of its last sweep.
type Fabric struct {
	Switches int `json:"switches"`
	Adapters int `json:"adapters"`
	Links    int `json:"links"`
	// SlowerEnd are the links whose ends have different settings, one lower than the other.
	SlowerEnd []string `json:"settings_differ"`
	// CreditLoops are the ports of suspected credit loops, in order.
	CreditLoops [][]string `json:"credit_loops_suspected"`
	Failed      string     `json:"failed,omitempty"` // why the sweep after it failed
}

// summarise returns the size of the fabric: "6 switches, 15 adapters, 24 links".
func (f *Fabric) summarise() string {
	return fmt.Sprintf("%s, %s, %s", words.Count(f.Switches, "switch"), words.Count(f.Adapters, "adapter"),
		words.Count(f.Links, "link"))
}

// listNotes returns the observations of a sweep that no rule evaluates.
func (f *Fabric) listNotes() (out []string) {
	if f == nil {
		return nil
	}
	if f.Failed != "" {
		out = append(out, "Sweep failed: "+strings.TrimSuffix(f.Failed, "."))
	}
	if len(f.SlowerEnd) > 0 {
		out = append(out, fmt.Sprintf("Lower settings at one end of %s: %s. Set both ends alike and reset the link",
			words.Count(len(f.SlowerEnd), "link"), joinNames(f.SlowerEnd)))
	}
	for _, ports := range f.CreditLoops {
		out = append(out, fmt.Sprintf("Credit loop suspected: %s. Check the routing (engine and root GUIDs of the subnet manager): ibdiagnet -r --skip_plugin all",
			joinNames(ports)))
	}
	return out
}

// Functions is the data that is left out of a host with many functions.
type Functions struct {
	Reduced int `json:"reduced"`          // virtual functions and subfunctions with the metrics of rules only
	Devices int `json:"devices_left_out"` // beyond --limit.devices
	Series  int `json:"series_left_out"`  // beyond --limit.series
}

// Alerts to which the notes belong: a report without the alert has no note.
const (
	portDown     = "RDMAPortDown"
	stackMissing = "RDMADeviceMissing"
	downshifted  = "RDMALinkDegraded"
)

// filter returns the state without the parts that belong to other alerts than those named.
func (s Seen) filter(named func(alert string) bool) Seen {
	if !named(portDown) {
		s.Objects = []account.Object{} // the account is about all objects
	}
	if !named(stackMissing) {
		s.Stack = nil
	}
	if !named(downshifted) {
		s.Rates = Rates{}
	}
	return s
}

// maxNames is the maximum number of objects that a note names.
const maxNames = 16

// Notices returns lines on requests of operators: announced maintenance, released GPUs.
func (s *Seen) Notices() (out []string) {
	if s.Maintenance != nil {
		out = append(out, s.Maintenance.String())
	}
	if s.GPUsReleased != nil {
		out = append(out, s.GPUsReleased.String())
	}
	return out
}

// Notes returns sentences without a full stop: ports that are down, a stack that is not loaded, devices that are left
// out.
func (s *Seen) Notes() []string {
	return slices.Concat(notEmpty(
		explainNoDevice(s.NoDevice), s.Failed.describe(), s.describeUnknown(), s.describeStack(),
		s.Rates.describeSlowModes(), s.Functions.describeLeftOut(),
	), s.Fabric.listNotes())
}

// Standing returns notes on what is so on most healthy hosts: rates that nothing confirms, errors that firmware
// handles, functions that are only partly read.
func (s *Seen) Standing() []string {
	return notEmpty(s.Rates.describe(), s.describeFirmwareFirst(), s.Functions.describeReduced())
}

func notEmpty(notes ...string) []string {
	return slices.DeleteFunc(notes, func(s string) bool { return s == "" })
}

// summarise returns the state in a headline: "no RDMA device on this host", "reads of 2 devices failed".
func (s *Seen) summarise() string {
	switch {
	case s.NoDevice != nil:
		return noDeviceText
	case s.Failed != nil:
		return s.Failed.summarise()
	}
	return ""
}

const noDeviceText = "no RDMA device on this host"

// explainNoDevice returns the reason why a host has no RDMA devices. If the kernel could use PCI functions for RDMA,
// RDMADeviceMissing or the note on the stack explains it instead.
func explainNoDevice(n *hostdata.NoDevice) string {
	switch {
	case n == nil || n.Functions > 0 && !n.Namespaced:
		return ""
	case n.Functions > 0:
		return fmt.Sprintf("RDMA devices belong to network namespaces (rdma system show), and another one may have those of %s. "+
			"Ports, links and transceivers are not monitored. Run the exporter in the namespace of the devices",
			words.Count(n.Functions, "PCI function"))
	}
	return "/sys/class/infiniband has no device, and no PCI function supports RDMA (those passed through to virtual machines not counted): there are no ports, links or transceivers to monitor. " +
		"If this host should have an RDMA NIC, look for it: lspci | grep -iE 'infiniband|ethernet|fabric'. A virtual machine has only NICs that the hypervisor passes through. " +
		"To be alerted, pin the devices in --config.file (present: true)"
}

// summarise returns "reads of 2 devices failed".
func (f *FailedReads) summarise() string {
	if len(f.Devices) == 0 {
		return "reads failed"
	}
	return "reads of " + words.Count(len(f.Devices), "device") + " failed"
}

func (f *FailedReads) describe() string {
	if f == nil {
		return ""
	}
	of := slices.Concat(f.Devices, words.Map(f.Others, func(name string) string { return "collector " + name }))
	return fmt.Sprintf("Reads failed: %s. Rules are not evaluated for what these reads would have returned, and faults there are not reported. First error: %s. All errors: log, \"read failed\"",
		joinNames(of), strings.TrimSuffix(f.First, "."))
}

// HasUnknown reports whether the state of a compute object is unknown. The host is then not ok.
func (s *Seen) HasUnknown() bool { return len(account.Unknowns(s.Objects)) > 0 }

// describeUnknown returns the compute objects whose state is unknown, by reason, with a remedy.
func (s *Seen) describeUnknown() string {
	var parts []string
	byReason := map[string][]string{}
	never := false
	for _, o := range account.Unknowns(s.Objects) {
		if byReason[o.Reason] == nil {
			parts = append(parts, o.Reason)
		}
		byReason[o.Reason] = append(byReason[o.Reason], o.Name)
		never = never || o.Unused
	}
	if len(parts) == 0 {
		return ""
	}
	text := "Unknown: " + strings.Join(words.Map(parts, func(reason string) string {
		return fmt.Sprintf("%s (%s)", joinNames(byReason[reason]), reason)
	}), "; ")
	if never {
		text += ". No history vouches that ports were in use. If they are not cabled on purpose: rdma_exporter accept NAME. " +
			"To be alerted, pin them in --config.file (active: true)"
	}
	return text
}

func (s *Seen) describeStack() string {
	if s.Stack == nil {
		return ""
	}
	return fmt.Sprintf("RDMA stack not loaded, unknown whether it is expected: %s with RDMA capability: %s. To be alerted, pin the devices in --config.file (present: true)",
		words.Count(len(s.Stack.Functions), "PCI function"), joinNames(s.Stack.Functions))
}

func (s *Seen) describeFirmwareFirst() string {
	if !s.FirmwareFirst {
		return ""
	}
	return "PCIe errors are reported by firmware first: the counters of the kernel (AER) do not count them"
}

// describe returns a warning that links that were slow from the start are not detected.
func (r Rates) describe() string {
	if r.Ports == 0 {
		return ""
	}
	what, them := fmt.Sprintf("Rates of %d ports are", r.Ports), "them"
	if r.Ports == 1 {
		what, them = "The rate of 1 port is", "it"
	}
	able := ""
	if r.Capable > 0 {
		able = fmt.Sprintf(" (the NIC supports %.0f Gb/s)", r.Capable/1e9)
	}
	return fmt.Sprintf("%s inferred%s: no alert if slow from the start. Pin %s: rdma_exporter expect list", what, able, them)
}

// describeSlowModes returns which links are probably degraded since boot, and what settles it.
func (r Rates) describeSlowModes() string {
	if len(r.SlowModes) == 0 {
		return ""
	}
	return fmt.Sprintf("Probably degraded since boot: %s. To know without a pin, read the far end: --collector.neighbour.subnet",
		joinNames(r.SlowModes))
}

// describeLeftOut returns the numbers left out by limits: "984 devices left out (--limit.devices)".
func (f *Functions) describeLeftOut() string {
	var out []string
	if f != nil && f.Devices > 0 {
		out = append(out, words.Count(f.Devices, "device")+" left out (--limit.devices)")
	}
	if f != nil && f.Series > 0 {
		out = append(out, fmt.Sprintf("%d series left out (--limit.series)", f.Series))
	}
	return strings.Join(out, ", ")
}

func (f *Functions) describeReduced() string {
	if f == nil || f.Reduced == 0 {
		return ""
	}
	return words.Count(f.Reduced, "function") + " beside physical ones (virtual functions, subfunctions) with identity, state and the counters of rules only (--device.functions)"
}

// joinNames joins at most maxNames names.
func joinNames(names []string) string {
	if n := len(names) - maxNames; n > 0 {
		names = append(names[:maxNames:maxNames], fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
}
