package setup

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot/hostdata"
)

const (
	// maxInterrupts limits the interrupts of a reading: mlx5 has one for each CPU and function.
	maxInterrupts = 2048
	// countsSize is enough for the counts of 744 CPUs of eleven bytes.
	countsSize = 8192
)

// readInterrupts sums the interrupts of the PCI functions of RDMA devices, virtual functions apart: those that CPUs of
// their own node have served, and all, since the driver has requested them (per_cpu_count, kernel/irq/irqdesc.c, since
// Linux 4.9). One file for each interrupt; no descriptor is kept.
func readInterrupts(r reading.Reads) (out []hostdata.DeviceInterrupts) {
	devices, err := r.Host.Devices()
	if err != nil {
		return nil
	}
	left := maxInterrupts
	for _, device := range devices {
		dir := sysfs.ClassDir + "/" + device + "/device"
		if _, err := r.Host.Files.Link(dir + "/physfn"); err == nil {
			continue
		}
		r.Ask(1)
		numbers, err := r.Host.Files.List(dir + "/msi_irqs")
		if err != nil || len(numbers) > left { // an auxiliary device, or another driver
			continue
		}
		left -= len(numbers)
		d := hostdata.DeviceInterrupts{Device: device, CPUs: r.Optional(dir + "/local_cpulist")}
		local, err := parseCPUs(d.CPUs)
		if err != nil {
			continue
		}
		for _, n := range numbers {
			r.Ask(1)
			b, whole, err := r.Host.Files.Head("sys/kernel/irq/"+n+"/per_cpu_count", countsSize)
			switch {
			case err == nil && whole:
				addCounts(&d, string(b), local)
			case err != nil && !access.IsAbsent(err):
				d.Unread = string(access.ReasonOf(err))
			}
		}
		out = append(out, d)
	}
	return out
}

// addCounts adds the counts of an interrupt, one for each possible CPU in order.
func addCounts(d *hostdata.DeviceInterrupts, counts string, local map[int]bool) {
	cpu := 0
	for text := range strings.SplitSeq(strings.TrimSpace(counts), ",") {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return
		}
		d.Total += n
		if local[cpu] {
			d.Local += n
		}
		cpu++
	}
	d.Elsewhere = d.Elsewhere || cpu > len(local)
}

// parseCPUs parses a list of the kernel: 0-55,112-167.
func parseCPUs(text string) (map[int]bool, error) {
	out := map[int]bool{}
	for part := range strings.SplitSeq(text, ",") {
		first, last, ranged := strings.Cut(part, "-")
		if !ranged {
			last = first
		}
		from, errFrom := strconv.ParseUint(first, 10, 16)
		to, errTo := strconv.ParseUint(last, 10, 16)
		if err := cmp.Or(errFrom, errTo); err != nil {
			return nil, fmt.Errorf("parse list of CPUs %q: %w", text, err)
		}
		for cpu := from; cpu <= to; cpu++ {
			out[int(cpu)] = true
		}
	}
	return out, nil
}
