//go:build e2e

package kernel

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

const kernelLogDir = "/sys/kernel/debug/fakerdma"

func events(device, pci, kind string) string {
	return fmt.Sprintf(`rdma_kernel_log_events_total{device=%q,driver="mlx5_core",kind=%q,pci_address=%q}`,
		device, kind, pci)
}

// testKernelLog: lines that the kernel has printed are counted, those of a process are not, whatever they claim. A
// storm costs no scrape, and each of its lines is counted, sampled or overwritten.
func testKernelLog(t *testing.T, g *guest) {
	console := g.must(t, "cat /proc/sys/kernel/printk")
	g.must(t, "echo 1 >/proc/sys/kernel/printk") // the console is slower than the log
	defer g.must(t, "echo '"+console+"' >/proc/sys/kernel/printk")
	print := func(line string) { g.must(t, `echo "`+line+`" >`+kernelLogDir+"/log") }
	first, second := g.must(t, "basename $(readlink -f /sys/class/infiniband/mlx5_0/device)"),
		g.must(t, "basename $(readlink -f /sys/class/infiniband/mlx5_1/device)")

	// A process has the facility of user space, also if it asks for that of the kernel, and its flags are its own.
	for _, forged := range []string{"", "<3>", "<0>", "<11>"} {
		g.must(t,
			"echo '"+forged+"mlx5_core "+first+": Port module event[error]: module 0, Cable error, High Temperature' >/dev/kmsg")
	}
	print("mlx5_core " + first + ": wait_func:1195:(pid 1967079): ENABLE_HCA(0x104) timeout. Will cause a leak of a command resource")
	// Continued
	print("mlx5_core " + first + ": poll_health:825:(pid 0): device|'s health compromised - reached miss count")
	print("mlx5_core " + second + ": Port module event: module 1, Cable unplugged")
	print("mlx5_core " + second + " ens0f0np0: NETDEV WATCHDOG: CPU: 1: transmit queue 3 timed out 5400 ms")
	print("DMAR: [DMA Write NO_PASID] Request device [" + second[len("0000:"):] +
		"] fault addr 0xb97ff000 [fault reason 0x05] PTE Write access is not set")
	g.expect(t, samples{
		events("mlx5_0", first, "command_timeout"): 1, events("mlx5_0", first, "firmware_stopped"): 1,
		events("mlx5_1", second, "module_unplugged"): 1, events("mlx5_1", second, "transmit_timeout"): 1,
		fmt.Sprintf(`rdma_kernel_log_events_total{device="mlx5_1",kind="iommu_fault",pci_address=%q}`, second):                        1,
		fmt.Sprintf(`rdma_kernel_log_recent_events{device="mlx5_0",driver="mlx5_core",kind="command_timeout",pci_address=%q}`, first): 1,
		"rdma_kernel_log_overruns_total{}": 0,
	})
	s, err := scrape(t.Context(), g.url)
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := s[events("mlx5_0", first, "module_error")]; ok {
		t.Errorf("%v messages of a process are counted", n)
	}

	if g.kernelSince(t, 6, 12) { // older ones print a stack with it
		g.set(t, "mlx5_1", map[string]int{"tx_stopped": 1}) // the kernel's own watchdog
		g.expect(t, samples{events("mlx5_1", second, "transmit_timeout"): 2})
	}

	bus, err := strconv.ParseUint(strings.Split(first, ":")[1], 16, 8)
	if err != nil {
		t.Fatal(err)
	}
	g.must(t, aerOf(byte(bus), 0, badTLP)) // the kernel's own report of an injected error
	g.expect(t, samples{events("mlx5_0", first, "pcie_correctable"): 1})

	testHungTask(t, g)

	const storm = 100_000
	before := s["rdma_kernel_log_skipped_total{}"]
	g.must(t, fmt.Sprintf("echo %d >%s/log_times", storm, kernelLogDir))
	print("mlx5_core " + second + ": Port module event: module 1, Cable plugged")
	g.must(t, "echo 1 >"+kernelLogDir+"/log_times")
	eventually(t, func() error {
		s, err := scrape(t.Context(), g.url)
		if err != nil {
			return err
		}
		counted, skipped, lost := s[events("mlx5_1", second, "module_plugged")], s["rdma_kernel_log_skipped_total{}"]-before,
			s["rdma_kernel_log_overruns_total{}"]
		t.Logf("of %d messages %.0f counted, %.0f skipped, %.0f overwritten", storm, counted, skipped, lost)
		if sum := counted + skipped + lost; counted == 0 || lost == 0 || sum < storm || sum > storm+1000 {
			return fmt.Errorf("of %d messages %.0f are counted, %.0f skipped, %.0f overwritten", storm, counted, skipped, lost)
		}
		return nil
	})
	print("mlx5_core " + second + ": Port module event: module 1, Cable unplugged")
	g.expect(t, samples{events("mlx5_1", second, "module_unplugged"): 2})
}

// testHungTask: a process waits in a query of a device for longer than the kernel finds normal, which reports its
// stack.
func testHungTask(t *testing.T, g *guest) {
	const limit = "/proc/sys/kernel/hung_task_timeout_secs"
	was := g.must(t, "cat "+limit)
	defer g.must(t, "echo "+was+" >"+limit)
	g.must(t, "echo 5 >"+limit)
	g.set(t, "mlx5_1", map[string]int{"blocked": 20})
	g.must(t, "cat /sys/class/infiniband/mlx5_1/ports/1/rate >/dev/null &")
	within(t, 2*patienceOfGuest, func() error {
		s, err := scrape(t.Context(), g.url)
		if err == nil && s[`rdma_kernel_log_events_total{driver="ib_core",kind="hung_task"}`] == 0 {
			err = errors.New("no hung task")
		}
		return err
	})
	g.set(t, "mlx5_1", map[string]int{"blocked": 0})
	for _, collector := range []string{"infiniband", "hwcounters"} { // a query that has begun takes its 20 seconds
		g.expectGone(t, fmt.Sprintf(`rdma_scrape_collector_stuck{collector=%q,device="mlx5_1"}`, collector))
	}
}
