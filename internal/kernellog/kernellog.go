// Package kernellog recognises lines of the kernel log that report a fault of an RDMA device, its PCIe path or a GPU.
// It does no I/O. Of a line only the kind, the object and the fields of its pattern are kept, never free text.
package kernellog

import (
	"strings"

	"rdma_exporter/internal/lazy"
	"rdma_exporter/internal/words"
)

// Event is a recognised line, or several that belong together.
type Event struct {
	Kind       Kind
	Driver     string // that printed it, or whose function is on the stack; Firmware; empty: unknown
	PCIAddress string // of the function: 0000:4d:00.0; empty: unknown
	Netdev     string
	Device     string // RDMA device
	Detail     string // captured fields: "module 0, Cable error, High Temperature"; empty: none
}

// Firmware is the driver of what the firmware of the host reports (drivers/acpi/apei/ghes.c).
const Firmware = "ghes"

// maxDetail limits Event.Detail, in bytes.
const maxDetail = 96

// Parse recognises a line, as the kernel or a log file has it.
func Parse(line string) (Event, bool) {
	var e Event
	text := e.origin(line)
	for _, p := range e.candidates(text) {
		m := p.form().FindStringSubmatch(text)
		if m == nil {
			continue
		}
		if p.Kind == Ignored {
			return Event{}, false
		}
		e.Kind = p.Kind
		e.fields(p.form().SubexpNames(), m)
		if e.Kind == PCIeFirmware {
			e.Driver = Firmware // not that of the device, which the prefix of its registers names
		}
		return e, true
	}
	return Event{}, false
}

// numbers are the groups whose values are not clear without their name.
var numbers = of("module", "queue", "status", "xid", "sxid", "slot", "sensors", "pid", "errno", "port", "channel",
	"celsius", "devices")

// fields takes the named groups of a match: pci, netdev, device and driver are the object, all others the detail, in
// order.
func (e *Event) fields(names, values []string) {
	var detail []string
	for i, name := range names {
		switch v := values[i]; {
		case name == "" || v == "":
		case name == "pci":
			e.PCIAddress = address(v)
		case name == "netdev":
			e.Netdev = v
		case name == "device":
			e.Device = v
		case name == "driver":
			e.Driver = v
		case numbers[name]:
			detail = append(detail, name+" "+printable(v))
		default:
			detail = append(detail, printable(v))
		}
	}
	e.Detail = words.Cut(strings.Join(detail, ", "), maxDetail)
}

var short = lazy.Regexp(`^([0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.([0-7]))?$`)

// address completes a bus address as the IOMMU drivers and NVRM print it: 4d:00.0 without domain, 0000:4d:00 without
// function.
func address(s string) string {
	s = strings.ReplaceAll(strings.ToLower(s), "0x", "")
	if m := short().FindStringSubmatch(s); m != nil {
		s = "0000:" + s
	}
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// printable replaces what a detail may not contain.
func printable(s string) string {
	bad := func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }
	return words.Replace(strings.TrimSpace(s), bad, '_')
}
