package kernellog

import (
	"strings"
	"testing"
	"time"
)

// record is what the kernel prints of a record of the host's firmware (drivers/firmware/efi/cper.c), registers what it
// prints of those of the device (drivers/pci/pcie/aer.c, pci_print_aer).
const (
	record = `{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 4
{1}[Hardware Error]: event severity: recoverable
{1}[Hardware Error]:  Error 0, type: recoverable
{1}[Hardware Error]:   section_type: PCIe error
{1}[Hardware Error]:   port_type: 4, root port
{1}[Hardware Error]:   version: 3.0
{1}[Hardware Error]:   command: 0x0547, status: 0x4010
{1}[Hardware Error]:   device_id: 0000:5d:01.0
{1}[Hardware Error]:   slot: 7
{1}[Hardware Error]:   vendor_id: 0x8086, device_id: 0x347a
{1}[Hardware Error]:   aer_uncor_status: 0x00200000, aer_uncor_mask: 0x00100020
{1}[Hardware Error]:   aer_uncor_severity: 0x00062030
{1}[Hardware Error]:   TLP Header: 00000000 00000000 00000000 00000000
`
	registers = `pcieport 0000:5d:01.0: AER: aer_status: 0x00200000, aer_mask: 0x00100020
pcieport 0000:5d:01.0:    [21] ACSViol                (First)
pcieport 0000:5d:01.0: AER: aer_layer=Transaction Layer, aer_agent=Receiver ID
pcieport 0000:5d:01.0: AER: aer_uncor_severity: 0x00062030
`
	corrected = `pcieport 0000:5d:01.0: AER: aer_status: 0x00001000, aer_mask: 0x00002000
pcieport 0000:5d:01.0:    [12] Timeout
pcieport 0000:5d:01.0: AER: aer_layer=Data Link Layer, aer_agent=Transmitter ID
`
	unplugged = "mlx5_core 0000:5e:00.0: Port module event: module 0, Cable unplugged\n"
	quietLine = "pcieport 0000:5c:01.0: bridge window [mem 0x1-0x2]\n"
)

func TestReports(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want string // kinds and addresses, and what Flush returns
	}{
		"record": {record, "pcie_nonfatal 0000:5d:01.0"},
		"record of corrected errors": {
			strings.ReplaceAll(record, "recoverable", "corrected"), "pcie_correctable 0000:5d:01.0",
		},
		"record of a fatal error":  {strings.ReplaceAll(record, "recoverable", "fatal"), "pcie_fatal 0000:5d:01.0"},
		"the section is no worse":  {strings.Replace(record, "severity: recoverable", "severity: fatal", 1), "pcie_nonfatal 0000:5d:01.0"},
		"severity is not printed":  {"{1}[Hardware Error]:   device_id: 0000:5d:01.0\n", "pcie_firmware_first 0000:5d:01.0"},
		"memory":                   {strings.ReplaceAll(record, "device_id: 0000:5d:01.0", "node: 0 card: 2"), ""},
		"of the boot before":       {strings.ReplaceAll(record, "{1}", ""), ""},
		"two records":              {record + strings.ReplaceAll(record, "{1}", "{2}"), "pcie_nonfatal 0000:5d:01.0, pcie_nonfatal 0000:5d:01.0"},
		"record of two devices":    {record + strings.ReplaceAll(record, "5d:01", "5c:01"), "pcie_nonfatal 0000:5d:01.0, pcie_nonfatal 0000:5c:01.0"},
		"record and registers":     {record + registers, "pcie_nonfatal 0000:5d:01.0"},
		"registers, twice":         {record + registers + registers, "pcie_nonfatal 0000:5d:01.0, pcie_nonfatal 0000:5d:01.0"},
		"registers alone":          {registers, "pcie_nonfatal 0000:5d:01.0"},
		"registers of a fatal one": {strings.ReplaceAll(registers, "status: 0x00200000", "status: 0x00040000"), "pcie_fatal 0000:5d:01.0"},
		"registers between lines":  {strings.Replace(registers, "\npcieport 0000:5d:01.0: AER: aer_layer", "\n"+unplugged+"pcieport 0000:5d:01.0: AER: aer_layer", 1), "module_unplugged 0000:5e:00.0, pcie_nonfatal 0000:5d:01.0"},
		"corrected":                {corrected, "pcie_correctable 0000:5d:01.0"},
		"corrected, by the bit":    {strings.ReplaceAll(corrected, "0x00001000", "0x00000001"), "pcie_correctable 0000:5d:01.0"},
		"completion timeout":       {strings.NewReplacer("00200000", "00004000", "[21] ACSViol", "[14] CmpltTO").Replace(registers), "pcie_nonfatal 0000:5d:01.0"},
		"end of the log":           {registers[:strings.Index(registers, "\n")+1], "pcie_firmware_first 0000:5d:01.0"},
		"lost lines":               {registers[:strings.Index(registers, "\n")+1] + later + quietLine, "pcie_firmware_first 0000:5d:01.0"},
		"first line lost":          {registers[strings.Index(registers, "\n")+1:], "pcie_firmware_first 0000:5d:01.0"},
	} {
		t.Run(name, func(t *testing.T) {
			var j Joiner
			var got []string
			at := time.Hour
			add := func(e Event, ok bool) {
				if ok {
					got = append(got, string(e.Kind)+" "+e.PCIAddress)
				}
			}
			for line := range strings.Lines(c.text) {
				if line == later {
					at += time.Minute
					continue
				}
				add(j.Line(at, strings.TrimRight(line, "\n")))
			}
			add(j.Flush())
			if s := strings.Join(got, ", "); s != c.want {
				t.Errorf("%s, want %s", s, c.want)
			}
		})
	}
}

const later = "a minute later\n"

// FuzzReports: whatever is printed, no event is made of a line that is none, and none without a kind.
func FuzzReports(f *testing.F) {
	f.Add(record + registers)
	f.Add(corrected + unplugged)
	f.Fuzz(func(t *testing.T, text string) {
		var j Joiner
		taken, events := 0, 0
		for line := range strings.Lines(text) {
			taken++
			if e, ok := j.Line(time.Hour, line); ok {
				events++
				if e.Kind == Ignored || len(e.Detail) > maxDetail {
					t.Errorf("%+v", e)
				}
			}
		}
		if _, ok := j.Flush(); ok {
			events++
		}
		if events > taken {
			t.Errorf("%d events of %d lines", events, taken)
		}
	})
}
