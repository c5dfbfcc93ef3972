package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/setup"
	"rdma_exporter/internal/snapshot/hostdata"
)

// BenchmarkReadSetup is the reading of each hour, of regular files: eight devices with 64 interrupts on 224 CPUs.
func BenchmarkReadSetup(b *testing.B) {
	dir := b.TempDir()
	put := func(name, text string) {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	counts := strings.Repeat("123456,", 223) + "123456\n"
	put("proc/sys/kernel/osrelease", "6.8.0\n")
	for d := range 8 {
		device := fmt.Sprintf("sys/class/infiniband/mlx5_%d/", d)
		put(device+"node_guid", "b83f:d203:0050:a1c0\n")
		put(device+"device/local_cpulist", "0-55,112-167\n")
		put(device+"device/link/l1_aspm", "0\n")
		put(device+fmt.Sprintf("device/net/eth%d/mode", d), "datagram\n")
		put(fmt.Sprintf("sys/class/net/eth%d/flags", d), "0x1003\n")
		for i := range 64 {
			put(fmt.Sprintf("%sdevice/msi_irqs/%d", device, 64*d+i), "msix\n")
			put(fmt.Sprintf("sys/kernel/irq/%d/per_cpu_count", 64*d+i), counts)
		}
	}
	opened, err := live.Open(rooted.Paths{
		RootFS: dir, Sys: filepath.Join(dir, "sys"), Proc: filepath.Join(dir, "proc"),
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := opened.Close(); err != nil {
			b.Error(err)
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		r := reading.New(b.Context(), &opened.Host, "").From(source.Setup)
		out := map[string]hostdata.SetupFile{}
		for _, pattern := range setup.Files {
			readSetupFiles(r, pattern, out)
		}
		if len(readInterrupts(r)) != 8 {
			b.Fatal("the interrupts were not read")
		}
	}
}
