package foreign_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/internal/expect"
	"rdma_exporter/test/machine"
	"rdma_exporter/test/machines"
)

// TestState: a state directory that another user wrote, or a capture of it, has no text that a terminal or a shell
// obeys, and no address that leads elsewhere.
func TestState(t *testing.T) {
	m := newMarks()
	a := machines.Load(t, "device-missing")
	for i, e := range a.Rounds[0].Entries {
		if e.Path != "exporter/state.json" {
			continue
		}
		var d expect.Data
		must(t, json.Unmarshal(e.Data, &d))
		for key, f := range d.Functions {
			f.Device += m.nodeName("device of another address")
			f.PCIAddress += m.printable("PCI address")
			f.NodeGUID, f.Driver, f.BoardID, f.Earlier = "", m.payload("driver"), m.payload("board"), m.payload("earlier")
			d.Functions["evil "+key] = f
			known := d.Functions[key]
			known.Device += m.nodeName("device")
			known.NodeGUID += m.payload("GUID")
			d.Functions[key] = known
		}
		b, err := json.Marshal(d)
		must(t, err)
		a.Rounds[0].Entries[i].Data = b
	}
	file := filepath.Join(t.TempDir(), "state.txtar")
	must(t, machine.Write(a, file))
	for _, name := range []string{"check", "topo", "inventory list", "expect list"} {
		for _, args := range commands[name].args {
			line := strings.TrimSpace(name + " " + args)
			out, errs := m.run(t, append([]string{"--replay=" + file}, strings.Fields(line)...)...)
			m.scanOutput(t, line, out)
			m.scan(t, line+", log", errs)
			if sign := payload(m.of("device of another address"))[:5]; name == "check" && strings.Contains(out, sign) {
				t.Errorf("%s: a device is missing at what is no address:\n%s", line, out)
			}
		}
	}
	for _, name := range []string{"device", "PCI address", "GUID"} {
		if !m.seen[name] {
			t.Errorf("%s: not shown (%v)", name, m.seen)
		}
	}
}
