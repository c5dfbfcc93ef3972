package evidence

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"rdma_exporter/internal/words"
)

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

func (f *Fault) pcieLinks(expr string) (out []pcieLink) {
	for _, r := range f.rows(expr, "pci_address") {
		at := r.Labels["pci_address"]
		out = append(out, pcieLink{
			upstream: r.Labels["upstream"], address: at,
			lanes:    f.ofLink("rdma_pcie_link_width_lanes", at),
			maxLanes: f.ofLink("rdma_pcie_link_max_width_lanes", at),
			speed:    f.ofLink("rdma_pcie_link_speed_transfers_per_second", at),
			maxSpeed: f.ofLink("rdma_pcie_link_max_speed_transfers_per_second", at),
		})
	}
	return out
}

func (f *Fault) ofLink(metric, address string) float64 {
	if v, ok := f.number(fmt.Sprintf(`max(%s{$host,pci_address=%q})`, metric, address)); ok {
		return v
	}
	return math.NaN()
}

func (l pcieLink) name() string { return "Link " + l.upstream + " - " + l.address }

func (l pcieLink) narrow() bool       { return l.lanes < l.maxLanes }
func (l pcieLink) narrowOrSlow() bool { return l.narrow() || l.speed < l.maxSpeed }

func (l pcieLink) now() string       { return lanesOf(l.lanes) + atSpeed(l.speed) }
func (l pcieLink) supported() string { return lanesOf(l.maxLanes) + atSpeed(l.maxSpeed) }

func lanesOf(n float64) string { return "x" + when(!math.IsNaN(n), plain(n)) }
func atSpeed(v float64) string { return when(!math.IsNaN(v), " at "+words.Transfers(v)) }

// degradedTo is a headline: " to 0000:c1:00.0 degraded, x8 of x16".
func (l pcieLink) degradedTo() string {
	return " to " + l.address + " degraded, " + lanesOf(l.lanes) + " of " + lanesOf(l.maxLanes)
}

// speeds are those of a degraded link: ", 16 of 32 GT/s".
func (l pcieLink) speeds() string {
	if math.IsNaN(l.speed) {
		return ""
	}
	return ", " + plain(l.speed/1e9) + when(!math.IsNaN(l.maxSpeed), " of "+plain(l.maxSpeed/1e9)) + " GT/s"
}

// lspciOf is a command that shows both ends of links.
func lspciOf(links []pcieLink) string {
	out := "for a in"
	for _, l := range links {
		out += " " + l.upstream + " " + l.address
	}
	return out + " ; do lspci -vvs $a | grep -E '^[0-9a-f]|LnkCap:|LnkSta:' ; done # as root"
}

func pcieDegraded(f *Fault) Text {
	if f.Labels["gpu"] != "" {
		return pcieDegradedGPU(f)
	}
	links := f.pcieLinks(linksOfDevice)
	headline := " degraded"
	if i := slices.IndexFunc(links, pcieLink.narrowOrSlow); i >= 0 {
		headline = links[i].degradedTo() + links[i].speeds()
	}
	var e lines
	for _, l := range links {
		e.add(l.name(), l.now()+", both ends support "+l.supported()+".")
	}
	meaning, rate := "", f.text(rateBesidePCIe, "%v Gb/s", "")
	if capacity, ok := f.number(`max(rdma_device_pcie_available_bytes_per_second{$device}) * 8 / 1e9`); ok {
		meaning = ": the PCIe capacity is " + whole(capacity) + " Gb/s" + when(rate != "", ", for a port of "+rate)
		e.add("Bandwidth", whole(capacity)+" Gb/s to the root port"+when(rate != "", ", port rate "+rate)+".")
	}
	e.add("Not evaluated", "cause of the degradation (card, riser, slot, BIOS).")
	share := roughly(f.Value) + " of what both ends support"
	return Text{
		Summary: f.hostDevice() + ": PCIe link" + headline + ", " + share,
		Description: "A PCIe link on the way to " + f.Labels["device"] + " runs at " + share + meaning + ". Where the " +
			"port is faster than the link, buffers of the card fill: it sends PFC pause (RoCE) or withholds credits " +
			"(InfiniBand), and the fabric slows down with it.",
		Evidence: e,
		Measured: percent(f.Value),
		Limit:    "100%",
		Diagnose: lspciOf(links),
		Action: "Drain the host, then power it off and on. If the link stays degraded, reseat the card, then the riser " +
			"or its cable. Then replace them one by one.",
		DrainReason: f.slowdown("card"),
	}
}

// slowdown is what a degraded link to a card or a GPU does to jobs.
func (f *Fault) slowdown(what string) string {
	if f.Labels["severity"] == "warning" {
		return "More than half of the lanes work, and jobs continue at reduced bandwidth."
	}
	return "At half the lanes or less, the " + what + " slows down every job that uses it."
}

func pcieDegradedGPU(f *Fault) Text {
	gpu, share := "GPU "+f.Labels["gpu"], roughly(f.Value)
	links := f.pcieLinks(linksOfGPU)
	headline := " degraded"
	if i := slices.IndexFunc(links, pcieLink.narrow); i >= 0 {
		headline = links[i].degradedTo()
	}
	return Text{
		Summary: f.host() + " " + gpu + ": PCIe link" + headline + ", " + share + " of its lanes",
		Description: "A PCIe link on the way to " + gpu + " has " + share + " of the lanes that both ends support. The " +
			"GPU feeds its NIC and loads its data slower than the others, and the whole job waits for it.",
		Evidence: f.evidenceOfGPULinks(links),
		Measured: percent(f.Value),
		Limit:    "100%",
		Diagnose: "nvidia-smi -q -i " + f.Labels["gpu"] + " | grep -A4 'Link Width' ; " + lspciOf(links),
		Action: "Drain the host, then power it off and on. If the link stays degraded, reseat the GPU, its riser or its " +
			"board. Then replace them one by one.",
		DrainReason: f.slowdown("GPU"),
	}
}

func (f *Fault) evidenceOfGPULinks(links []pcieLink) lines {
	var e lines
	for _, l := range links {
		e.add(l.name(), lanesOf(l.lanes)+", both ends support "+lanesOf(l.maxLanes)+".")
	}
	for _, r := range f.rows(`max by (device, distance) (rdma_gdr_gpu_info{device!="",$gpu})`, "device") {
		e.add("NIC", r.Labels["device"]+" is the nearest ("+r.Labels["distance"]+").")
	}
	e.add("Last XID", f.text(lastXIDOfPCIeGPU, "%v.", ""))
	if n, ok := f.number(`count(gpu:rdma_pcie_width:short{$host})`); ok {
		e.add("Degraded", plain(n)+" of "+f.text(`count(count by (gpu, UUID) (rdma_gpu_pcie_link_info{$host}))`, "%v", "")+
			" GPUs of this host.")
	}
	e.add("Not evaluated", "speed of the link (an idle GPU lowers it), cause of the degradation.")
	return e
}

func pcieLimitsPort(f *Fault) Text {
	capacity := whole(f.Value*8/1e9) + " Gb/s"
	rate, ok := f.number(rateBesidePCIe)
	slower := capacity + ", below the port rate of " + when(ok, plain(rate)) + " Gb/s"
	links := f.pcieLinks(linksOfDevice)
	var e lines
	for _, r := range f.rows(`max by (bottleneck) (rdma_device_pcie_path_info{$device})`) {
		e.add("Bottleneck", r.Labels["bottleneck"]+f.text(
			`max(rdma_device_pcie_capable_bytes_per_second{$device}) * 8 / 1e9`, ", the card supports %.0f Gb/s", "")+".")
	}
	for _, l := range links {
		e.add(l.name(), l.now()+".")
	}
	e.add("Not evaluated", "packet overhead of PCIe (another 5% to 10%).")
	t := Text{
		Summary: f.hostDevice() + ": PCIe capacity " + slower,
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
		t.Measured, t.Limit = capacity, whole(rate)+" Gb/s"
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

func pcieErrors(f *Fault) Text {
	if f.Labels["gpu"] != "" {
		return pcieErrorsGPU(f)
	}
	errs, reset := deviceCorrectable, ""
	drain := "None of the errors was fatal: the device is in service, and its jobs continue unless the driver resets it."
	switch {
	case f.has(`device:rdma_pcie_errors:critical{$device}`):
		errs, reset = deviceFatal, "Reset the device. "
		drain = "The device is lost until it is reset: new jobs on it fail."
	case f.has(`device:rdma_pcie_aer_nonfatal:increase15m{$device} > 0`):
		errs = deviceNonfatal
	}
	n := whole(f.Value)
	counted := n + " " + errs.severity + " in 15m (limit " + errs.limit + ")"
	links := f.rows(linksOfDevice, "pci_address")
	var e lines
	for _, c := range f.aerCounts(links) {
		e.add("Errors", c.severity+" "+c.count+" at "+c.place+".")
	}
	e.add("Limits", aerCorrectableLimit+" correctable errors in 15m, no nonfatal or fatal ones.")
	e.add("Not evaluated", "errors on hosts whose firmware handles AER itself.")
	return Text{
		Summary: f.hostDevice() + ": PCIe errors, " + counted,
		Description: "PCIe advanced error reporting counted errors of the device or of the ports above it: " + counted +
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

// aerFilesOf is a command that shows the errors of both ends of links.
func aerFilesOf(links []Sample) string {
	var files []string
	for _, l := range links {
		files = append(files, "/sys/bus/pci/devices/"+l.Labels["pci_address"]+"/aer_*")
		if upstream := l.Labels["upstream"]; upstream != "" {
			files = append(files, "/sys/bus/pci/devices/"+upstream+"/aer_*")
		}
	}
	return when(len(files) > 0, " ; grep . "+strings.Join(files, " "))
}

// aerCount is how many errors of a severity an end of a link has had in 15m.
type aerCount struct{ severity, count, place string }

func (f *Fault) aerCounts(links []Sample) (out []aerCount) {
	for _, l := range links {
		upper, lower := l.Labels["upstream"], l.Labels["pci_address"]
		for _, r := range f.rows(fmt.Sprintf(`increase(rdma_pcie_aer_errors_total{$host,pci_address=~%q}[15m]) > 0`,
			upper+"|"+lower), "severity", "pci_address") {
			place := r.Labels["pci_address"]
			if place == upper {
				place += ", the port above " + lower
			}
			out = append(out, aerCount{r.Labels["severity"], whole(r.Value), place})
		}
	}
	return out
}

func pcieErrorsGPU(f *Fault) Text {
	errs, drain := gpuFatal, "A fatal error takes the link down, and the GPU is lost until it is reset."
	if f.Labels["severity"] == "warning" {
		errs = gpuCorrectable
		if f.has(`gpu:rdma_pcie_aer_nonfatal:increase15m{$gpu} > 0`) {
			errs = gpuNonfatal
		}
		drain = "The link stays up: correctable errors are retransmitted, nonfatal ones fail single transactions."
	}
	gpu, n := "GPU "+f.Labels["gpu"], whole(f.Value)
	counted := n + " in 15m (limit " + errs.limit + ")"
	links := f.rows(linksOfGPU, "pci_address")
	var e lines
	for _, c := range f.aerCounts(links) {
		e.add("Errors", c.count+" "+c.severity+" at "+c.place+".")
	}
	e.add("Replays", f.text(`max(increase(rdma_gpu_pcie_replays_total{$gpu}[15m])) > 0`,
		"%.0f packets retransmitted by the GPU in 15m.", ""))
	e.add("Last XID", f.text(lastXIDOfPCIeGPU, "%v.", ""))
	e.add("Limits", aerCorrectableLimit+" correctable, 0 nonfatal, 0 fatal errors in 15m.")
	e.add("Not evaluated", "errors that the firmware handles itself (firmware-first AER).")
	return Text{
		Summary: f.host() + " " + gpu + ": " + errs.severity + " PCIe errors, " + counted,
		Description: "PCIe advanced error reporting (AER) counted " + errs.severity + " errors of " + gpu + " " + errs.of +
			", " + counted + ". " + errs.effect,
		Evidence: e,
		Measured: n,
		Limit:    errs.limit,
		Diagnose: "journalctl -k | grep -iE 'aer|pcie|xid' ; grep . " + aerFilesOfGPU(links) + " # as root",
		Action: "Drain the host and power it off. Reseat the GPU, its riser or its board. If errors continue, replace " +
			"the GPU, then the board.",
		DrainReason: drain,
	}
}

// aerFilesOfGPU are the files with errors of both ends of links; without a link, those of all functions.
func aerFilesOfGPU(links []Sample) string {
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
