package main

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

func TestExtract(t *testing.T) {
	data, err := os.ReadFile("testdata/example.c")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range extractFile("example.c", uncommented(data)) {
		got = append(got, fmt.Sprintf("%s %s|%s%s", m.function, m.macro, m.tag, m.format))
	}
	want := []string{
		`example_probe pci_err|TAG: Cannot enable (PCI) "device", aborting`,
		"example_probe dev_err_ratelimited|TAG: status 0x%08x of queue %d",
		"example_probe mlx5_core_warn|%s(0x%x) timeout, address %x",
		"example_probe printk|printk %s",
		"example_read pr_err_once|example: no (%pR) memory",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func TestSamples(t *testing.T) {
	for form, want := range map[string]string{
		"status 0x%08x, mask %#x of %d": "status 0x0000001f, mask 0x1f of 7",
		"%s(0x%x) timeout":              "CREATE_CQ(0x1f) timeout",
		"device %pR at %5.2llu%%":       "device 0000:5e:00.0 at 7%",
	} {
		if got := samples(form); !slices.Contains(got, want) {
			t.Errorf("%s: %q, want %q", form, got, want)
		}
	}
}

// TestJudge: a message is recognised behind the prefix of its macro, silent for its driver only, or unknown.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		driver, macro, format, tag, want string
	}{
		{"mlx5_core", "mlx5_core_warn", "failed to allocate command entry", "", "kind command_timeout"},
		{"mlx5_core", "mlx5_ib_warn", "WC error: %d, Message: %s", "", "kind completion_error"},
		{"mlx4_core", "en_err", "TX timeout on queue: %d, QP: 0x%x", "", "kind transmit_timeout"},
		{"ib_core", "ipoib_warn", "transmit timeout: latency %d msecs", "", "kind transmit_timeout"},
		{"ib_core", "pr_warn", "%s: Unknown symbol %s (err %d)", "", "kind module_refused"},
		{"pcieport", "pci_warn", "containment event, status:%#06x: unmasked uncorrectable error detected", "DPC: ", "kind pcie_contained"},
		{"pcieport", "pci_err", "device recovery failed", "AER: ", "kind recovery_failed"},
		{"nvidia", "NV_DEV_PRINTF", "RmInitAdapter failed! (0x%x:0x%x:%d)", "", "kind gpu_failed"},
		{"nvidia", "peer_err", "invalid page_table", "", "kind peer_memory"},
		{"mlx5_core", "mlx5_core_warn", "FWTracer: Failed to create mkey", "", "unknown"},
	} {
		s := subsystem{driver: c.driver}
		m := message{macro: c.macro, format: c.format, tag: c.tag, function: "probe", file: "x.c"}
		if got := s.classify(m); got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.driver, c.format, got, c.want)
		}
	}
	m := message{file: "core/diag/fw_tracer.c", function: "init", macro: "mlx5_core_warn", format: "FWTracer: Failed"}
	for driver, want := range map[string]string{"mlx5_core": "silent: " + debugging, "mlx4_core": "unknown"} {
		s := subsystem{driver: driver}
		if got := s.classify(m); got != want {
			t.Errorf("%s: %s, want %s", driver, got, want)
		}
	}
}

// TestSilent: each entry is of a subsystem, tells why, and matches by something.
func TestSilent(t *testing.T) {
	drivers := map[string]bool{"": true}
	for _, s := range subsystems {
		drivers[s.driver] = true
	}
	for _, x := range silent {
		if !drivers[x.driver] || x.reason == "" || x.form == nil && x.function == nil {
			t.Errorf("%+v", x)
		}
	}
}
