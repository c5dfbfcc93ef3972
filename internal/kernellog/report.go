package kernellog

import (
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/lazy"
)

// firmwareReport joins the lines of a PCIe error that the host's firmware reports. The kernel prints its record
// (drivers/firmware/efi/cper.c, cper_estatus_print), at most some in a while, and then the registers of the device
// (drivers/pci/pcie/aer.c, pci_print_aer; before 6.8 cper_print_aer). Either may be missing.
type firmwareReport struct {
	number   string // of the record
	severity Kind   // of the record, or of its section; Ignored: unknown
	at       time.Duration

	held    Event // registers whose severity is not printed yet
	holding bool

	counted   string // device whose record or registers are counted
	countedAt time.Duration
	registers bool // were among them
}

const reportTime = time.Second // in which a report is printed

// severities are those of a record (cper_severity_str) as those of PCIe.
var severities = map[string]Kind{"corrected": PCIeCorrectable, "recoverable": PCIeNonFatal, "fatal": PCIeFatal}

var (
	recordSeverity = lazy.Regexp(`^(?:event severity|Error \d+, type): (\w+)`)
	register       = lazy.Regexp(`aer_(?:(status): (0x[0-9a-f]{8})|(layer)=|uncor_(severity): (0x[0-9a-f]{8}))`)
	correctedBit   = lazy.Regexp(`^ *\[ ?\d+\] (?:RxErr|BadTLP|BadDLLP|Rollover|Timeout|NonFatalErr|CorrIntErr|HeaderOF)\b`)
)

// correctableBits and uncorrectableBits are those that only one of the status registers has (PCI Express Base
// Specification, Advanced Error Reporting).
const (
	correctableBits   = 0x000001c1
	uncorrectableBits = 0x07ff0030
)

// line takes a line and what Parse made of it. mine reports whether it is of a report, which e and found then are of.
func (r *firmwareReport) line(at time.Duration, line string, parsed Event, ok bool) (e Event, found, mine bool) {
	line = unprinted(line)
	if head := reportNumber(line); head != "" {
		number, _, _ := strings.Cut(head, "}")
		return r.record(at, number, line[len(head):], parsed, ok)
	}
	m := []string(nil)
	if ok && parsed.Kind == PCIeFirmware {
		m = register().FindStringSubmatch(line)
	}
	switch {
	case m != nil:
		e, found = r.registerOf(at, m, parsed)
		return e, found, true
	case r.holding && !ok && at-r.at <= reportTime:
		var bit Event
		text := bit.origin(line)
		if bit.PCIAddress == r.held.PCIAddress && correctedBit().MatchString(text) {
			e = r.count(at, r.held, PCIeCorrectable)
			return e, true, true
		}
	case r.holding && !ok:
		e, found = r.release()
		return e, found, true
	}
	return parsed, ok, false
}

// record takes a line of a record of the firmware.
func (r *firmwareReport) record(
	at time.Duration, number, text string, parsed Event, ok bool,
) (e Event, found, mine bool) {
	if number != r.number || at-r.at > reportTime {
		r.number, r.severity = number, Ignored
	}
	r.at = at
	if m := recordSeverity().FindStringSubmatch(text); m != nil {
		r.severity = severities[m[1]]
	}
	if !ok {
		return Event{}, false, true
	}
	e = r.count(at, parsed, r.severity)
	r.registers = false
	return e, true, true
}

// registerOf takes a line of the registers of a device.
func (r *firmwareReport) registerOf(at time.Duration, m []string, parsed Event) (Event, bool) {
	same := r.counted == parsed.PCIAddress && at-r.countedAt <= reportTime
	value := uint64(0)
	if s := m[2] + m[5]; s != "" {
		value, _ = strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 32)
	}
	switch {
	case m[1] != "" && same && !r.registers:
		r.registers = true
		return Event{}, false
	case m[1] != "" && value&correctableBits != 0 && value&uncorrectableBits == 0:
		return r.count(at, parsed, PCIeCorrectable), true
	case m[1] != "":
		e, ok := r.release()
		r.held, r.holding, r.at = parsed, true, at
		return e, ok
	case r.holding && r.held.PCIAddress == parsed.PCIAddress && m[4] != "":
		status, _, _ := strings.Cut(strings.TrimPrefix(r.held.Detail, "status 0x"), ",")
		bits, _ := strconv.ParseUint(status, 16, 32)
		severity := PCIeNonFatal
		if bits&value != 0 {
			severity = PCIeFatal
		}
		return r.count(at, r.held, severity), true
	case r.holding && r.held.PCIAddress == parsed.PCIAddress, same:
		return Event{}, false
	}
	return r.count(at, parsed, PCIeFirmware), true
}

// count makes an event of a severity, and notes that further lines are of the same report.
func (r *firmwareReport) count(at time.Duration, e Event, severity Kind) Event {
	if severity != Ignored {
		e.Kind = severity
	}
	r.holding, r.counted, r.countedAt, r.registers = false, e.PCIAddress, at, true
	return e
}

// release returns the registers whose severity did not come.
func (r *firmwareReport) release() (Event, bool) {
	if !r.holding {
		return Event{}, false
	}
	return r.count(r.at, r.held, Ignored), true
}
