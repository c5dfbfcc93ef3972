package commands_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/command"
	"rdma_exporter/test/machines"
)

// TestKernelLogInCheck: a finding has the last messages of its device, with the time since boot of the recording.
func TestKernelLogInCheck(t *testing.T) {
	_, out, errs := runProgram(t, "--replay="+machines.Fixture("command-timeouts"), "check", "--json",
		"--only=RDMADeviceFailed")
	var r check.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Findings) != 1 {
		t.Fatalf("%v, %d findings\n%s\n%s", err, len(r.Findings), out, errs)
	}
	log := r.Findings[0].Identity["kernel_log"]
	if len(log) != 1 {
		t.Fatalf("%v", log)
	}
	if at, err := time.Parse(time.RFC3339, log[0]["time"]); err != nil || time.Since(at) > time.Hour {
		t.Errorf("time %s: %v", log[0]["time"], err)
	}
	for name, want := range map[string]string{
		"kind": "command_timeout", "pci_address": "0000:40:00.0", "detail": "DESTROY_MKEY", "since_boot_seconds": "3481675.0",
	} {
		if log[0][name] != want {
			t.Errorf("%s is %q, want %q", name, log[0][name], want)
		}
	}
}

// TestWholeKernelLogIsNotAnonymous: lines of the kernel log name anything.
func TestWholeKernelLogIsNotAnonymous(t *testing.T) {
	if code, _, _ := runProgram(t, "--replay="+machines.Fixture("command-timeouts"),
		"capture", "--output=-", "--kernel-log",
		"--anonymise"); code != command.UsageError {
		t.Errorf("exit %d", code)
	}
}

// TestFirmwareFirstInCheck: check says once that the firmware of the host reports PCIe errors, where it does.
func TestFirmwareFirstInCheck(t *testing.T) {
	for machine, want := range map[string]int{"pcie-firmware-first": 1, "pcie-errors": 0, "three-rails-ok": 0} {
		_, out, errs := runProgram(t, "--replay="+machines.Fixture(machine), "check", "--verbose")
		if n := strings.Count(out, "PCIe errors are reported by firmware first"); n != want {
			t.Errorf("%s: %d times, want %d\n%s\n%s", machine, n, want, out, errs)
		}
	}
}
