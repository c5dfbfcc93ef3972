//go:build scale

package scale

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/machine"
	"rdma_exporter/test/process"
	"rdma_exporter/test/program"
)

const (
	physicalFunctions = 8
	// keptOpen is the kernel memory of an open file of sysfs that counts for the cgroup: a page (seq_file) and the
	// structures of the file.
	keptOpen = 4096 + 512
	noLimits = "--limit.devices=0 --limit.series=0"
)

// TestFunctions measures the memory of the program by the number of functions of a host, and compares it with the
// limits of the unit.
func TestFunctions(t *testing.T) {
	unit, err := os.ReadFile(filepath.Join(repository, "packaging/systemd/rdma_exporter.service"))
	must(t, err)
	fmt.Println("| functions | flags | devices read | series | scrape, kB | scrape, s | round, s | private memory, MiB | highest | open files | with them, MiB |")
	for _, c := range []struct {
		machine.Functions
		flags string
		held  bool // within the limits of the unit
	}{
		{machine.Functions{}, "", true},
		{machine.Functions{Virtual: 64}, "", true},
		{machine.Functions{Virtual: 64}, "--device.functions=all", true},
		{machine.Functions{Virtual: 96, Sub: 31}, "", true},
		{machine.Functions{Virtual: 96, Sub: 31}, "--device.functions=all", true},
		{machine.Functions{Virtual: 200, Sub: 50}, "", true},
		{machine.Functions{Virtual: 200, Sub: 50}, noLimits, false},
		{machine.Functions{Virtual: 200, Sub: 50}, noLimits + " --device.functions=all", false},
		{machine.Functions{Virtual: 496, Sub: 128}, "", true},
		{machine.Functions{Virtual: 496, Sub: 128}, noLimits, false},
	} {
		n := physicalFunctions * (1 + c.Virtual + c.Sub)
		t.Run(fmt.Sprint(n, " ", c.flags), func(t *testing.T) {
			dir := t.TempDir()
			must(t, machine.GrowFunctions(repository, physicalFunctions, c.Functions, dir))
			t.Setenv("GOMEMLIMIT", "off")
			if c.held {
				t.Setenv("GOMEMLIMIT", setting(t, unit, `GOMEMLIMIT=(\d+)MiB`)+"MiB")
			}
			f := measure(t, dir, strings.Fields(c.flags)...)
			used := float64(f.highest+int64(f.files)*keptOpen) / (1 << 20)
			fmt.Printf("| %d | %s | %d | %d | %d | %.2f | %.2f | %.0f | %.0f | %d | %.0f |\n", n, c.flags, f.devices, f.series,
				f.bytes/1000, f.scrape, f.round, float64(f.private)/(1<<20), float64(f.highest)/(1<<20), f.files, used)
			if most, err := strconv.ParseFloat(setting(t, unit, `MemoryMax=(\d+)M`), 64); err != nil || c.held && used > most {
				t.Errorf("%.0f MiB, the unit has %.0f %v", used, most, err)
			}
		})
	}
}

func setting(t *testing.T, unit []byte, pattern string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)` + pattern).FindSubmatch(unit)
	if m == nil {
		t.Fatalf("the unit has no %s", pattern)
	}
	return string(m[1])
}

// figures are those of a program after its rounds.
type figures struct {
	devices              int // that are read
	series, bytes, files int
	scrape, round        float64 // seconds, medians
	private, highest     int64
}

// measure scrapes a program ten times and after each evaluation of the rules, while traffic flows.
func measure(t *testing.T, dir string, flags ...string) (f figures) {
	t.Helper()
	traffic, err := machine.NewTraffic(dir)
	must(t, err)
	flags = append([]string{
		"serve", "--log.level=error", "--path.rootfs=" + dir, "--state.dir=" + t.TempDir(),
		"--collect.min-interval=0s", "--collect.timeout=2m", "--alerting.interval=2s",
	}, flags...)
	address, pid := startProcess(t, program.Exporter(t), flags...)
	ctx, stop := context.WithCancel(t.Context())
	highest := make(chan int64)
	go func() { highest <- highestOf(ctx, pid) }()
	var scrapes, rounds []float64
	for n := 0.0; len(scrapes) < 10 || n < 30; {
		must(t, traffic.Flow())
		began := time.Now()
		body, err := get(t.Context(), "http://"+address+"/metrics")
		must(t, err)
		scrapes = append(scrapes, time.Since(began).Seconds())
		n = sampleOf(body, "rdma_alerting_rounds_total")
		rounds = append(rounds, sampleOf(body, "rdma_alerting_last_round_duration_seconds"))
		f.bytes, f.series, f.devices = len(body), seriesIn(body), strings.Count(string(body), "\nrdma_device_info{")
		time.Sleep(2 * time.Second)
	}
	m, err := process.Resident(pid)
	must(t, err)
	f.files, err = process.Files(pid)
	must(t, err)
	stop()
	f.private, f.highest, f.scrape, f.round = m.Anon, <-highest, middle(scrapes), middle(rounds)
	return f
}

// highestOf returns the most private memory of a process until ctx ends.
func highestOf(ctx context.Context, pid int) (most int64) {
	for ctx.Err() == nil {
		if m, err := process.Resident(pid); err == nil {
			most = max(most, m.Anon)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return most
}

func middle(d []float64) float64 { return slices.Sorted(slices.Values(d))[len(d)/2] }

// sampleOf returns the value of a sample without labels; 0 without one.
func sampleOf(body []byte, name string) float64 {
	_, rest, _ := strings.Cut(string(body), "\n"+name+" ")
	line, _, _ := strings.Cut(rest, "\n")
	v, _ := strconv.ParseFloat(line, 64)
	return v
}

func seriesIn(body []byte) (n int) {
	for line := range strings.Lines(string(body)) {
		if !strings.HasPrefix(line, "#") {
			n++
		}
	}
	return n
}
