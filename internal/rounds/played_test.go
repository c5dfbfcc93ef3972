//go:build !race

package rounds_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/verdict"
	"rdma_exporter/test/machines"
)

// TestOneFileCostsOneSample: a damaged file costs one sample. It damages one file at a time.
func TestOneFileCostsOneSample(t *testing.T) {
	rate := []string{
		`rdma_port_rate_bytes_per_second{device="mlx5_0",port="1"}`, `rdma_port_width_lanes{device="mlx5_0",port="1"}`,
	}
	downed := []string{`rdma_port_link_downed_total{device="mlx5_0",port="1"}`}
	dir := machines.Tree(t, "dgx-h100-ib")
	whole := machines.Collect(t, machines.Live(t, dir, 10*time.Second))
	for _, c := range []struct {
		name, file string
		spoil      func(path string) error
		lost       []string
		reason     string
	}{
		{"missing rate", "rate", func(string) error { return nil }, rate, "absent"},
		{"empty rate", "rate", write0(""), rate, "malformed"},
		{"garbled rate", "rate", write0("\xff\xfe\x00 Gb/sec"), rate, "malformed"},
		{"empty counter", "counters/link_downed", write0(""), downed, "malformed"},
		{"counter of text", "counters/link_downed", write0("N/A\n"), downed, "malformed"},
		{"no performance agent", "counters/link_downed", write0("N/A (no PMA)\n"), downed, "unsupported"},
		{"counter too large", "counters/link_downed", write0("18446744073709551616\n"), downed, "malformed"},
		{"counter is a directory", "counters/link_downed", func(p string) error { return os.Mkdir(p, 0o755) }, downed, "io"},
		{"counter leads outside", "counters/link_downed", func(p string) error { return os.Symlink("/etc/passwd", p) }, downed, "io"},
		{"huge counter", "counters/link_downed", write0(strings.Repeat("1", 3<<20)), downed, "io"},
		{"a page of zeros", "counters/link_downed", write0(strings.Repeat("0", 4096)), downed, "malformed"},
		{"more than a page", "counters/link_downed", write0(strings.Repeat("1", 4097)), downed, "malformed"},
		{"NULs", "counters/link_downed", write0(strings.Repeat("\x00", 4096)), downed, "malformed"},
		{"binary counter", "counters/link_downed", write0("\x7fELF\x02\x01\x01\x00\xff\xfe"), downed, "malformed"},
		{"counter below zero", "counters/link_downed", write0("-1\n"), downed, "malformed"},
		{"counter and more", "counters/link_downed", write0("12\n34\n"), downed, "malformed"},
		{"rate cut short", "rate", write0("400 G"), rate, "malformed"},
		{"a page of rate", "rate", write0("400 Gb/sec (4X NDR)" + strings.Repeat(" ", 4096) + "x"), rate, "malformed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(dir, port0+c.file)
			aside := filepath.Join(dir, "aside")
			must(t, os.Rename(file, aside))
			t.Cleanup(func() { must(t, errors.Join(os.RemoveAll(file), os.Rename(aside, file))) })
			must(t, c.spoil(file))
			got := machines.Collect(t, machines.Live(t, dir, 10*time.Second))
			if d := machines.Lost(whole, got); !sameStrings(d, c.lost) {
				t.Errorf("lost %v, want %v", d, c.lost)
			}
			series := fmt.Sprintf(`rdma_scrape_errors_total{collector="infiniband",device="mlx5_0",reason=%q}`, c.reason)
			if got[series] != "1" {
				t.Errorf("%s is %q, want 1", series, got[series])
			}
		})
	}
}

// TestInjectedErrno replays read errors that plain files cannot produce, on a counter of a port and on one of the
// transport. The clock stands still while code runs, so that no read is late.
func TestInjectedErrno(t *testing.T) {
	collected := func(t *testing.T, path string, errno syscall.Errno) (samples map[string]string) {
		synctest.Test(t, func(t *testing.T) {
			h := replayed(t, "dgx-h100-ib", func(a *capture.Archive) {
				for j, e := range a.Rounds[0].Entries {
					if path != "" && strings.HasSuffix(e.Path, path) {
						a.Rounds[0].Entries[j] = capture.Entry{Path: e.Path, Kind: capture.Error, Errno: errno}
					}
				}
			})
			h.RDMA = live.NoNetlink() // files have all data
			samples = machines.Collect(t, scheduleOf(t, h, nil))
		})
		return samples
	}
	whole := collected(t, "", 0)
	for _, file := range []struct{ collector, path, series string }{
		{"infiniband", "/mlx5_0/ports/1/counters/symbol_error", `rdma_port_symbol_errors_total{device="mlx5_0",port="1"}`},
		{"hwcounters", "/mlx5_0/ports/1/hw_counters/out_of_sequence", `rdma_port_out_of_sequence_total{device="mlx5_0",port="1"}`},
	} {
		for errno, reason := range map[syscall.Errno]string{
			syscall.EINVAL: "invalid", syscall.EIO: "io", syscall.EACCES: "permission", syscall.EPERM: "permission",
			syscall.ENODEV: "gone", syscall.ENXIO: "gone", syscall.EOPNOTSUPP: "unsupported", syscall.ENOSYS: "unsupported",
			syscall.EAGAIN: "io", syscall.EBUSY: "io", syscall.ETIMEDOUT: "io", syscall.ENOMEM: "io", syscall.EMFILE: "io",
			syscall.ENFILE: "io",
			syscall.ESTALE: "io", syscall.EREMOTEIO: "io", syscall.ENOLINK: "io", syscall.ECANCELED: "io", syscall.ERANGE: "io",
			syscall.EOVERFLOW: "io",
		} {
			t.Run(file.collector+" "+errno.Error(), func(t *testing.T) {
				t.Parallel()
				got := collected(t, file.path, errno)
				if d := machines.Lost(whole, got); !sameStrings(d, []string{file.series}) {
					t.Errorf("lost %v, want %s", d, file.series)
				}
				if key := fmt.Sprintf(`rdma_scrape_errors_total{collector=%q,device="mlx5_0",reason=%q}`,
					file.collector, reason); got[key] != "1" {
					t.Errorf("%s is %q, want 1", key, got[key])
				}
			})
		}
	}
}

// TestReadStuckAlert: a device with an ACTIVE port that is stuck for two minutes raises a critical alert.
func TestReadStuckAlert(t *testing.T) {
	dir := machines.Tree(t, "dgx-h100-ib")
	s := machines.Live(t, dir, 2*time.Second)
	j, err := verdict.New(&machine.Machine{Host: s.Host}, s, machines.Builtin(t), slog.New(slog.DiscardHandler))
	must(t, err)
	defer func() { must(t, j.Close()) }()
	start := time.Now()
	var ahead atomic.Int64 // added to the clock, so that rounds are 15 s apart
	s.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	must(t, j.Round(t.Context(), start))
	fifo := filepath.Join(dir, port0+"state")
	must(t, os.Remove(fifo))
	must(t, syscall.Mkfifo(fifo, 0o644))
	defer unblock(t, fifo)
	for at := start.Add(15 * time.Second); at.Before(start.Add(3 * time.Minute)); at = at.Add(15 * time.Second) {
		ahead.Store(int64(time.Until(at)))
		must(t, j.Round(t.Context(), at))
	}
	for _, a := range j.Engine.Alerts() {
		if a.Name == "RDMADeviceFailed" && a.State == alerting.StateFiring && a.Labels["device"] == "mlx5_0" &&
			a.Labels["severity"] == "critical" {
			return
		}
	}
	t.Errorf("no critical RDMADeviceFailed of mlx5_0: %v", j.Engine.Alerts())
}

// TestPortDownOfAStuckDevice: the alert keeps firing while the device of the port does not answer, until the alert on
// the device, which explains it, fires.
func TestPortDownOfAStuckDevice(t *testing.T) {
	m, _ := machines.Open(t, machines.Fixture("port-down"))
	m.RDMA = live.NoNetlink()
	files := &hanging{Files: m.Files, prefix: "sys/class/infiniband/mlx5_5/ports/1"}
	m.Files = files
	s := rounds.New(context.WithoutCancel(t.Context()),
		rounds.Options{Host: m.Host, Collectors: collector.All(collector.Options{}), Timeout: 2 * time.Second, Now: m.Now})
	j, err := verdict.New(m, s, machines.Builtin(t), slog.New(slog.DiscardHandler))
	must(t, err)
	defer func() { must(t, j.Close()) }()
	fires := func() bool {
		for _, a := range j.Engine.Alerts() {
			if (a.Name == "RDMAPortDown" || a.Name == "RDMADeviceFailed") && a.Labels["device"] == "mlx5_5" &&
				a.State == alerting.StateFiring {
				return true
			}
		}
		return false
	}
	for _, at := range m.Player.Times() {
		must(t, j.Round(t.Context(), at))
	}
	if !fires() {
		t.Fatal("it does not fire before")
	}
	defer files.hang()()
	for at := m.Player.Last(); at.Before(m.Player.Last().Add(9 * time.Minute)); {
		at = at.Add(15 * time.Second)
		must(t, j.Round(t.Context(), at))
		if !fires() {
			t.Fatalf("nothing fires %s after the device has gone silent", at.Sub(m.Player.Last()))
		}
	}
}

func write0(content string) func(string) error {
	return func(p string) error { return os.WriteFile(p, []byte(content), 0o644) }
}

func sameStrings(a, b []string) bool {
	set := map[string]int{}
	for _, s := range a {
		set[s]++
	}
	for _, s := range b {
		set[s]--
	}
	for _, n := range set {
		if n != 0 {
			return false
		}
	}
	return true
}
