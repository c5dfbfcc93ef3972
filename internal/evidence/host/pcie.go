package host

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"rdma_exporter/internal/evidence/fault"
	"rdma_exporter/internal/words"
)

// pcieFaults are those of PCIe links.
var pcieFaults = fault.Kinds{
	"pcie_degraded/link":    {Write: pcieDegraded},
	"pcie_degraded/slot":    {Write: pcieLimitsPort},
	"pcie_errors/fatal":     {Write: pcieErrors},
	"pcie_errors/recovered": {Write: pcieErrors},
}

const (
	linksOfDevice    = `max by (pci_address, upstream) (rdma_device_pcie_link_info{$device})`
	linksOfGPU       = `max by (pci_address, upstream) (rdma_gpu_pcie_link_info{$gpu})`
	rateBesidePCIe   = `max(rdma_port_rate_bytes_per_second{$device}) * 8 / 1e9`
	lastXIDOfPCIeGPU = `max(rdma_gpu_last_xid{$gpu})`
)

// aerCorrectableLimit is how many correctable errors in 15m are no fault.
const aerCorrectableLimit = "{aer-correctable}"

// pcieLink is a link on the path to a device or a GPU. NaN: the figure is unknown.
type pcieLink struct {
	upstream, address string
	lanes, maxLanes   float64
	speed, maxSpeed   float64 // transfers per second and lane
}

func pcieLinks(f *fault.Fault, expr string) (out []pcieLink) {
	for _, r := range f.Rows(expr, "pci_address") {
		at := r.Labels["pci_address"]
		out = append(out, pcieLink{
			upstream: r.Labels["upstream"], address: at,
			lanes:    ofLink(f, "rdma_pcie_link_width_lanes", at),
			maxLanes: ofLink(f, "rdma_pcie_link_max_width_lanes", at),
			speed:    ofLink(f, "rdma_pcie_link_speed_transfers_per_second", at),
			maxSpeed: ofLink(f, "rdma_pcie_link_max_speed_transfers_per_second", at),
		})
	}
	return out
}

func ofLink(f *fault.Fault, metric, address string) float64 {
	if v, ok := f.Number(fmt.Sprintf(`max(%s{$host,pci_address=%q})`, metric, address)); ok {
		return v
	}
	return math.NaN()
}

func (l pcieLink) name() string { return "Link " + l.upstream + " - " + l.address }

func (l pcieLink) narrow() bool       { return l.lanes < l.maxLanes }
func (l pcieLink) narrowOrSlow() bool { return l.narrow() || l.speed < l.maxSpeed }

func (l pcieLink) now() string       { return lanesOf(l.lanes) + atSpeed(l.speed) }
func (l pcieLink) supported() string { return lanesOf(l.maxLanes) + atSpeed(l.maxSpeed) }

func lanesOf(n float64) string { return "x" + fault.When(!math.IsNaN(n), fault.Plain(n)) }
func atSpeed(v float64) string { return fault.When(!math.IsNaN(v), " at "+words.Transfers(v)) }

// degradedTo returns a headline: " to 0000:c1:00.0 degraded, x8 of x16".
func (l pcieLink) degradedTo() string {
	return " to " + l.address + " degraded, " + lanesOf(l.lanes) + " of " + lanesOf(l.maxLanes)
}

// speeds returns the speeds of a degraded link: ", 16 of 32 GT/s".
func (l pcieLink) speeds() string {
	if math.IsNaN(l.speed) {
		return ""
	}
	return ", " + fault.Plain(
		l.speed/1e9,
	) + fault.When(
		!math.IsNaN(l.maxSpeed),
		" of "+fault.Plain(l.maxSpeed/1e9),
	) + " GT/s"
}

// lspciOf returns a command that shows both ends of links.
func lspciOf(links []pcieLink) string {
	out := "for a in"
	for _, l := range links {
		out += " " + l.upstream + " " + l.address
	}
	return out + " ; do lspci -vvs $a | grep -E '^[0-9a-f]|LnkCap:|LnkSta:' ; done # as root"
}

func pcieDegraded(f *fault.Fault) fault.Text {
	if f.Labels["gpu"] != "" {
		return pcieDegradedGPU(f)
	}
	links := pcieLinks(f, linksOfDevice)
	headline := " degraded"
	if i := slices.IndexFunc(links, pcieLink.narrowOrSlow); i >= 0 {
		headline = links[i].degradedTo() + links[i].speeds()
	}
	var e fault.Lines
	for _, l := range links {
		e.Add(l.name(), l.now()+", both ends support "+l.supported()+".")
	}
	meaning, rate := "", f.Text(rateBesidePCIe, "%v Gb/s", "")
	if capacity, ok := f.Number(`max(rdma_device_pcie_available_bytes_per_second{$device}) * 8 / 1e9`); ok {
		meaning = ": the PCIe capacity is " + fault.Whole(
			capacity,
		) + " Gb/s" + fault.When(
			rate != "",
			", for a port of "+rate,
		)
		e.Add("Bandwidth", fault.Whole(capacity)+" Gb/s to the root port"+fault.When(rate != "", ", port rate "+rate)+".")
	}
	e.Add("Not evaluated", "cause of the degradation (card, riser, slot, BIOS).")
	share := fault.Roughly(f.Value) + " of what both ends support"
	return fault.Text{
		Summary: f.HostDevice() + ": PCIe link" + headline + ", " + share,
		Description: "A PCIe link on the way to " + f.Labels["device"] + " runs at " + share + meaning + ". Where the " +
			"port is faster than the link, buffers of the card fill: it sends PFC pause (RoCE) or withholds credits " +
			"(InfiniBand), and the fabric slows down with it.",
		Evidence: e,
		Measured: fault.Percent(f.Value),
		Limit:    "100%",
		Diagnose: lspciOf(links),
		Action: "Drain the host, then power it off and on. If the link stays degraded, reseat the card, then the riser " +
			"or its cable. Then replace them one by one.",
		DrainReason: slowdown(f, "card"),
	}
}

// slowdown returns what a degraded link to a card or a GPU does to jobs.
func slowdown(f *fault.Fault, what string) string {
	if f.Labels["severity"] == "warning" {
		return "More than half of the lanes work, and jobs continue at reduced bandwidth."
	}
	return "At half the lanes or less, the " + what + " slows down every job that uses it."
}

func pcieDegradedGPU(f *fault.Fault) fault.Text {
	gpu, share := "GPU "+f.Labels["gpu"], fault.Roughly(f.Value)
	links := pcieLinks(f, linksOfGPU)
	headline := " degraded"
	if i := slices.IndexFunc(links, pcieLink.narrow); i >= 0 {
		headline = links[i].degradedTo()
	}
	return fault.Text{
		Summary: f.Host() + " " + gpu + ": PCIe link" + headline + ", " + share + " of its lanes",
		Description: "A PCIe link on the way to " + gpu + " has " + share + " of the lanes that both ends support. The " +
			"GPU feeds its NIC and loads its data slower than the others, and the whole job waits for it.",
		Evidence: evidenceOfGPULinks(f, links),
		Measured: fault.Percent(f.Value),
		Limit:    "100%",
		Diagnose: "nvidia-smi -q -i " + f.Labels["gpu"] + " | grep -A4 'Link Width' ; " + lspciOf(links),
		Action: "Drain the host, then power it off and on. If the link stays degraded, reseat the GPU, its riser or its " +
			"board. Then replace them one by one.",
		DrainReason: slowdown(f, "GPU"),
	}
}

func evidenceOfGPULinks(f *fault.Fault, links []pcieLink) fault.Lines {
	var e fault.Lines
	for _, l := range links {
		e.Add(l.name(), lanesOf(l.lanes)+", both ends support "+lanesOf(l.maxLanes)+".")
	}
	for _, r := range f.Rows(`max by (device, distance) (rdma_gdr_gpu_info{device!="",$gpu})`, "device") {
		e.Add("NIC", r.Labels["device"]+" is the nearest ("+r.Labels["distance"]+").")
	}
	e.Add("Last XID", f.Text(lastXIDOfPCIeGPU, "%v.", ""))
	if n, ok := f.Number(`count(gpu:rdma_pcie_width:short{$host})`); ok {
		e.Add(
			"Degraded",
			fault.Plain(n)+" of "+f.Text(`count(count by (gpu, UUID) (rdma_gpu_pcie_link_info{$host}))`, "%v", "")+
				" GPUs of this host.",
		)
	}
	e.Add("Not evaluated", "speed of the link (an idle GPU lowers it), cause of the degradation.")
	return e
}

func pcieLimitsPort(f *fault.Fault) fault.Text {
	capacity := fault.Whole(f.Value*8/1e9) + " Gb/s"
	rate, ok := f.Number(rateBesidePCIe)
	slower := capacity + ", below the port rate of " + fault.When(ok, fault.Plain(rate)) + " Gb/s"
	links := pcieLinks(f, linksOfDevice)
	var e fault.Lines
	for _, r := range f.Rows(`max by (bottleneck) (rdma_device_pcie_path_info{$device})`) {
		e.Add("Bottleneck", r.Labels["bottleneck"]+f.Text(
			`max(rdma_device_pcie_capable_bytes_per_second{$device}) * 8 / 1e9`, ", the card supports %.0f Gb/s", "")+".")
	}
	for _, l := range links {
		e.Add(l.name(), l.now()+".")
	}
	e.Add("Not evaluated", "packet overhead of PCIe (another 5% to 10%).")
	t := fault.Text{
		Summary: f.HostDevice() + ": PCIe capacity " + slower,
		Description: "The PCIe links between the device and its root port have a capacity of " + slower + ". No link is " +
			"degraded: the slot is of an older generation or has fewer lanes than the card supports. The port never " +
			"reaches its rate, but nothing is faulty.",
		Evidence: e,
		Diagnose: lspciOf(links),
		Action: "Move the card to a slot of its own generation and width, if the host has one, and set the speed of the " +
			"slot to automatic in the BIOS. If the slot is intended, ignore the device in --config.file.",
		DrainReason: "Nothing is faulty, and jobs run at the bandwidth of the slot.",
	}
	if ok {
		t.Measured, t.Limit = capacity, fault.Whole(rate)+" Gb/s"
	}
	return t
}

// aerErrors are errors of a severity, by advanced error reporting.
type aerErrors struct {
	severity, limit string
	of              string // on a GPU: whose errors
	effect          string
}

var (
	deviceFatal = aerErrors{
		severity: "fatal", limit: "0",
		effect: "The link goes down, the device is lost until it is reset, and its jobs fail.",
	}
	deviceNonfatal = aerErrors{
		severity: "nonfatal", limit: "0",
		effect: "Each has lost a transaction: the driver may reset the card, and jobs on it fail.",
	}
	deviceCorrectable = aerErrors{
		severity: "correctable", limit: aerCorrectableLimit,
		effect: "The link retransmits, which costs bandwidth and latency.",
	}
	gpuFatal = aerErrors{
		severity: "fatal", limit: "0", of: "or of the ports above it",
		effect: "A fatal error takes the link down: the GPU is lost until it is reset, and jobs on it fail.",
	}
	gpuNonfatal = aerErrors{
		severity: "nonfatal", limit: "0", of: "and the ports above it",
		effect: "A nonfatal error has lost a transaction: the driver may reset the GPU, and jobs on it fail.",
	}
	gpuCorrectable = aerErrors{
		severity: "correctable", limit: aerCorrectableLimit, of: "and the ports above it",
		effect: "The packets are retransmitted, at the cost of bandwidth and latency; a bad contact is likely.",
	}
)

func pcieErrors(f *fault.Fault) fault.Text {
	if f.Labels["gpu"] != "" {
		return pcieErrorsGPU(f)
	}
	errs, reset := deviceCorrectable, ""
	drain := "None of the errors was fatal: the device is in service, and its jobs continue unless the driver resets it."
	switch {
	case f.Has(`device:rdma_pcie_errors:critical{$device}`):
		errs, reset = deviceFatal, "Reset the device. "
		drain = "The device is lost until it is reset: new jobs on it fail."
	case f.Has(`device:rdma_pcie_aer_nonfatal:increase15m{$device} > 0`):
		errs = deviceNonfatal
	}
	n := fault.Whole(f.Value)
	counted := n + " " + errs.severity + " in 15m (limit " + errs.limit + ")"
	links := f.Rows(linksOfDevice, "pci_address")
	var e fault.Lines
	for _, c := range aerCounts(f, links) {
		e.Add("Errors", c.severity+" "+c.count+" at "+c.place+".")
	}
	e.Add("Limits", aerCorrectableLimit+" correctable errors in 15m, no nonfatal or fatal ones.")
	e.Add("AER", notCounted(f))
	return fault.Text{
		Summary: f.HostDevice() + ": PCIe errors, " + counted,
		Description: "PCIe advanced error reporting (AER) or the kernel log has errors of the device or of the ports above it: " + counted +
			". " + errs.effect,
		Evidence: e,
		Measured: n,
		Limit:    errs.limit,
		Diagnose: "journalctl -k | grep -iE 'aer|pcie' | tail -40" + aerFilesOf(links) + " # as root",
		Action: "Drain the host. " + reset + "Power the host off and reseat the card, then the riser or its cable. If " +
			"the errors continue, replace the card, then the riser, then the board.",
		DrainReason: drain,
	}
}

// notCounted says which errors the counters of the kernel lack.
func notCounted(f *fault.Fault) string {
	if f.Has(`rdma_kernel_log_events_total{driver="ghes",$host}`) {
		return "PCIe errors are reported by firmware first on this host: the counters of the kernel do not count them."
	}
	return "errors that the firmware of the host handles (firmware first) are in the kernel log alone."
}

// aerFilesOf returns a command that shows the errors of both ends of links.
func aerFilesOf(links []fault.Sample) string {
	var files []string
	for _, l := range links {
		files = append(files, "/sys/bus/pci/devices/"+l.Labels["pci_address"]+"/aer_*")
		if upstream := l.Labels["upstream"]; upstream != "" {
			files = append(files, "/sys/bus/pci/devices/"+upstream+"/aer_*")
		}
	}
	return fault.When(len(files) > 0, " ; grep . "+strings.Join(files, " "))
}

// aerCount is how many errors of a severity an end of a link has had in 15m.
type aerCount struct{ severity, count, place string }

func aerCounts(f *fault.Fault, links []fault.Sample) (out []aerCount) {
	for _, l := range links {
		upper, lower := l.Labels["upstream"], l.Labels["pci_address"]
		for _, r := range f.Rows(fmt.Sprintf(`increase(rdma_pcie_aer_errors_total{$host,pci_address=~%q}[15m]) > 0`,
			upper+"|"+lower), "severity", "pci_address") {
			place := r.Labels["pci_address"]
			if place == upper {
				place += ", the port above " + lower
			}
			out = append(out, aerCount{r.Labels["severity"], fault.Whole(r.Value), place})
		}
	}
	return out
}

func pcieErrorsGPU(f *fault.Fault) fault.Text {
	errs, drain := gpuFatal, "A fatal error takes the link down, and the GPU is lost until it is reset."
	if f.Labels["severity"] == "warning" {
		errs = gpuCorrectable
		if f.Has(`gpu:rdma_pcie_aer_nonfatal:increase15m{$gpu} > 0`) {
			errs = gpuNonfatal
		}
		drain = "The link stays up: correctable errors are retransmitted, nonfatal ones fail single transactions."
	}
	gpu, n := "GPU "+f.Labels["gpu"], fault.Whole(f.Value)
	counted := n + " in 15m (limit " + errs.limit + ")"
	links := f.Rows(linksOfGPU, "pci_address")
	var e fault.Lines
	for _, c := range aerCounts(f, links) {
		e.Add("Errors", c.count+" "+c.severity+" at "+c.place+".")
	}
	e.Add("Replays", f.Text(`max(increase(rdma_gpu_pcie_replays_total{$gpu}[15m])) > 0`,
		"%.0f packets retransmitted by the GPU in 15m.", ""))
	e.Add("Last XID", f.Text(lastXIDOfPCIeGPU, "%v.", ""))
	e.Add("Limits", aerCorrectableLimit+" correctable, 0 nonfatal, 0 fatal errors in 15m.")
	e.Add("AER", notCounted(f))
	return fault.Text{
		Summary: f.Host() + " " + gpu + ": " + errs.severity + " PCIe errors, " + counted,
		Description: "PCIe advanced error reporting (AER) or the kernel log has " + errs.severity + " errors of " + gpu +
			" " + errs.of + ", " + counted + ". " + errs.effect,
		Evidence: e,
		Measured: n,
		Limit:    errs.limit,
		Diagnose: "journalctl -k | grep -iE 'aer|pcie|xid' ; grep . " + aerFilesOfGPU(links) + " # as root",
		Action: "Drain the host and power it off. Reseat the GPU, its riser or its board. If errors continue, replace " +
			"the GPU, then the board.",
		DrainReason: drain,
	}
}

// aerFilesOfGPU returns the files with errors of both ends of links; without a link, those of all functions.
func aerFilesOfGPU(links []fault.Sample) string {
	var files []string
	for _, l := range links {
		files = append(files, "/sys/bus/pci/devices/"+l.Labels["upstream"]+"/aer_dev_*",
			"/sys/bus/pci/devices/"+l.Labels["pci_address"]+"/aer_dev_*")
	}
	if len(files) == 0 {
		return "/sys/bus/pci/devices/*/aer_dev_*"
	}
	return strings.Join(files, " ")
}
