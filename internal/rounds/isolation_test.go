package rounds_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/verdict"
	"rdma_exporter/test/machines"
)

const port0 = "sys/class/infiniband/mlx5_0/ports/1/"

// TestOneFileCostsOneSample spoils one file at a time.
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
			counted := fmt.Sprintf(`rdma_scrape_errors_total{collector="infiniband",device="mlx5_0",reason=%q}`, c.reason)
			if got[counted] != "1" {
				t.Errorf("%s is %q, want 1", counted, got[counted])
			}
		})
	}
}

// TestInjectedErrno replays read errors that plain files cannot give: of a counter of a port, and of one of the
// transport. On a clock that stands still while something runs, no read is late.
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
			h.RDMA = live.NoNetlink() // files have it all
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

// TestStuckReadCostsItsDevice: a FIFO in the place of a counter blocks forever, from the first collection on.
func TestStuckReadCostsItsDevice(t *testing.T) {
	dir := machines.Tree(t, "dgx-h100-ib")
	fifo := filepath.Join(dir, port0+"counters/symbol_error")
	must(t, os.Remove(fifo))
	must(t, syscall.Mkfifo(fifo, 0o644))
	const patience = 5 * time.Second
	s := machines.Live(t, dir, patience)
	files := &counted{
		Files: s.Host.Files, of: func(path string) bool { return strings.HasSuffix(path, port0+"counters/symbol_error") },
	}
	s.Host.Files = files

	stuck := `rdma_scrape_collector_stuck{collector="infiniband",device="mlx5_0"}`
	state := `rdma_port_state_id{device="mlx5_%d",port="1"}`
	for round := range 3 {
		start := time.Now()
		got := machines.Collect(t, s)
		if took := time.Since(start); round > 0 && took > patience*4/5 {
			t.Errorf("round %d waits %s for a device that is known to be stuck", round, took)
		}
		if got[stuck] != "1" {
			t.Errorf("round %d: %s is %q, want 1", round, stuck, got[stuck])
		}
		if got[`rdma_scrape_collector_success{collector="infiniband"}`] != "1" {
			t.Errorf("round %d: the collector fails", round)
		}
		if v, ok := got[fmt.Sprintf(state, 0)]; ok {
			t.Errorf("round %d: mlx5_0 has state %s", round, v)
		}
		for _, n := range []int{3, 4, 5, 6, 9, 10, 11} {
			if got[fmt.Sprintf(state, n)] != "4" {
				t.Errorf("round %d: mlx5_%d has state %q, want 4", round, n, got[fmt.Sprintf(state, n)])
			}
		}
		if got[`rdma_port_out_of_sequence_total{device="mlx5_0",port="1"}`] == "" {
			t.Errorf("round %d: hw_counters of mlx5_0 are lost to a read of another collector", round)
		}
	}
	if n := files.take(); n != 1 {
		t.Errorf("%d reads were started, want 1", n)
	}
	release(t, fifo)
	for machines.Collect(t, s)[stuck] != "" { // ends with the test's deadline if the device does not come back
	}
}

// TestReadStuckAlert: two minutes of a stuck device wake someone, because it had an ACTIVE port.
func TestReadStuckAlert(t *testing.T) {
	dir := machines.Tree(t, "dgx-h100-ib")
	s := machines.Live(t, dir, 2*time.Second)
	j, err := verdict.New(&machine.Machine{Host: s.Host}, s, machines.Builtin(t), slog.New(slog.DiscardHandler))
	must(t, err)
	defer func() { must(t, j.Close()) }()
	start := time.Now()
	var ahead atomic.Int64 // of the clock, for rounds to be 15 s apart
	s.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	must(t, j.Round(t.Context(), start))
	fifo := filepath.Join(dir, port0+"state")
	must(t, os.Remove(fifo))
	must(t, syscall.Mkfifo(fifo, 0o644))
	defer release(t, fifo)
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

// TestDeviceComesAndGoes removes, renames and brings back a device between collections.
func TestDeviceComesAndGoes(t *testing.T) {
	dir := machines.Tree(t, "dgx-h100-ib")
	s := machines.Live(t, dir, 10*time.Second)
	class := filepath.Join(dir, "sys/class/infiniband")
	state, present := `rdma_port_state_id{device="mlx5_0",port="1"}`,
		`rdma_device_present{device="mlx5_0",pci_address="0000:18:00.0"}`

	first := machines.Collect(t, s)
	if first[state] != "4" || first[present] != "1" {
		t.Fatalf("state %q, present %q", first[state], first[present])
	}
	target, err := os.Readlink(filepath.Join(class, "mlx5_0"))
	must(t, err)
	must(t, os.Remove(filepath.Join(class, "mlx5_0")))
	bus := filepath.Join(dir, "sys/bus/pci/devices/0000:18:00.0")
	slot, err := os.Readlink(bus)
	must(t, err)
	must(t, os.Remove(bus))
	gone := machines.Collect(t, s)
	if _, ok := gone[state]; ok || gone[present] != "0" {
		t.Errorf("removed: state %q, present %q", gone[state], gone[present])
	}
	for key, v := range gone {
		if strings.HasPrefix(key, "rdma_scrape_errors_total") {
			t.Errorf("a device that goes is no error: %s %s", key, v)
		}
	}
	must(t, os.Symlink(slot, bus))
	must(t, os.Symlink(target, filepath.Join(class, "rocep24s0")))
	renamed := machines.Collect(t, s)
	if renamed[`rdma_port_state_id{device="rocep24s0",port="1"}`] != "4" {
		t.Error("the renamed device is not there")
	}
	if v, ok := renamed[present]; ok {
		t.Errorf("a renamed device counts as vanished: present %s", v)
	}
	must(t, os.Remove(filepath.Join(class, "rocep24s0")))
	must(t, os.Symlink(target, filepath.Join(class, "mlx5_0")))
	must(t, os.WriteFile(filepath.Join(class, "mlx5_0/ports/1/state"), []byte("1: DOWN\n"), 0o644))
	back := machines.Collect(t, s)
	wasActive := back[`rdma_port_was_active{device="mlx5_0",port="1"}`]
	if back[state] != "1" || back[present] != "1" || wasActive != "1" {
		t.Errorf("back: state %q, present %q, was active %q", back[state], back[present], wasActive)
	}
}

// TestVirtualFunctionsComeAndGo: one that goes is no loss.
func TestVirtualFunctionsComeAndGo(t *testing.T) {
	dir := machines.Tree(t, "sriov-vf")
	s := machines.Live(t, dir, 10*time.Second)
	first := machines.Collect(t, s)
	class := filepath.Join(dir, "sys/class/infiniband")
	gone := 0
	for key := range first {
		if m := virtualFunction.FindStringSubmatch(key); m != nil {
			must(t, os.Remove(filepath.Join(class, m[1])))
			gone++
		}
	}
	if gone == 0 {
		t.Fatal("the fixture has no virtual function")
	}
	for key, v := range machines.Collect(t, s) {
		if strings.HasPrefix(key, "rdma_device_present") && v != "1" {
			t.Errorf("%s %s", key, v)
		}
	}
}

var virtualFunction = regexp.MustCompile(`^rdma_device_info{.*device="([^"]*)".*function_type="virtual"`)

// TestDeviceGoesDuringItsRead removes trees while collections run; -race watches.
func TestDeviceGoesDuringItsRead(t *testing.T) {
	dir := machines.Tree(t, "dgx-h100-ib")
	s := machines.Live(t, dir, 10*time.Second)
	ports, err := filepath.EvalSymlinks(filepath.Join(dir, "sys/class/infiniband/mlx5_0/ports"))
	must(t, err)
	aside := filepath.Join(dir, "aside")
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if os.Rename(ports, aside) == nil {
				_ = os.Rename(aside, ports)
			}
		}
	})
	for range 100 {
		got := machines.Collect(t, s)
		if got[`rdma_port_state_id{device="mlx5_3",port="1"}`] != "4" {
			t.Fatal("another device lost its state")
		}
	}
	close(done)
	wg.Wait()
	if got := machines.Collect(t, s)[`rdma_port_state_id{device="mlx5_0",port="1"}`]; got != "4" {
		t.Errorf("state is %q afterwards, want 4", got)
	}
}

// TestHostileStrings: bytes from hardware never break the exposition.
func TestHostileStrings(t *testing.T) {
	dir := machines.Tree(t, "dgx-h100-ib")
	dev := filepath.Join(dir, "sys/class/infiniband/mlx5_0")
	must(t, os.WriteFile(filepath.Join(dev, "board_id"),
		[]byte("MT\xff\xfe\"\n}\\ rdma_fake 1\x00"+strings.Repeat("é", 200)), 0o644))
	must(t, os.WriteFile(filepath.Join(dev, "ports/1/hw_counters", "x\"}\xff\n 1"), []byte("7\n"), 0o644))
	got := machines.Collect(t, machines.Live(t, dir, 10*time.Second))
	for key := range got {
		if !strings.HasPrefix(key, "rdma_") || strings.HasPrefix(key, "rdma_fake") {
			t.Errorf("a line of its own: %q", key)
		}
	}
	if got[`rdma_port_state_id{device="mlx5_0",port="1"}`] != "4" {
		t.Error("the device is lost")
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

// counted counts what is asked of files.
type counted struct {
	host.Files
	of    func(path string) bool
	mu    sync.Mutex
	reads int
}

func (c *counted) add(path string) {
	if c.of(path) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reads++
	}
}

func (c *counted) take() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.reads
	c.reads = 0
	return n
}

func (c *counted) Read(path string, buf []byte) ([]byte, error) {
	c.add(path)
	return c.Files.Read(path, buf)
}

func (c *counted) ReadIn(dir, name string, buf []byte) ([]byte, error) {
	c.add(dir + "/" + name)
	return c.Files.ReadIn(dir, name, buf)
}

func (c *counted) ReadEach(dir string, names []string, buf []byte, each func(string, []byte, error)) []byte {
	for _, name := range names {
		c.add(dir + "/" + name)
	}
	return c.Files.ReadEach(dir, names, buf, each)
}

// TestFailingDeviceIsLeftAlone: a device of which every read fails is not read any more, and again when it has
// registered again.
func TestFailingDeviceIsLeftAlone(t *testing.T) {
	a := machines.Load(t, "dgx-h100-ib")
	const device = "/infiniband/mlx5_0/"
	broken := capture.Round{At: time.Minute}
	gone := capture.Round{
		At:      10 * time.Minute,
		Entries: []capture.Entry{{Path: "sys/class/infiniband/mlx5_0", Kind: capture.Error, Errno: syscall.ENOENT}},
	}
	back := capture.Round{At: 11 * time.Minute}
	var home string
	for _, e := range a.Rounds[0].Entries {
		if strings.Contains(e.Path, device) && (e.Kind == capture.File || e.Kind == capture.Error) {
			broken.Entries = append(broken.Entries, capture.Entry{Path: e.Path, Kind: capture.Error, Errno: syscall.EIO})
		}
		if i := strings.Index(e.Path, device); i >= 0 {
			home = e.Path[:i+len(device)-1]
			back.Entries = append(back.Entries, e)
		}
		if e.Path == "sys/class/infiniband/mlx5_0" {
			back.Entries = append(back.Entries, e)
		}
	}
	gone.Entries = append(gone.Entries, capture.Entry{Path: home, Kind: capture.Error, Errno: syscall.ENOENT})
	a.Rounds = []capture.Round{a.Rounds[0], broken, gone, back}
	start := a.Meta.Time
	p, err := capture.Play(a, start)
	must(t, err)
	defer func() { must(t, p.Close()) }()
	h := p.Host()
	// What lies behind its link to the PCI function is not its own.
	files := &counted{Files: h.Files, of: func(path string) bool {
		return strings.Contains(path, "/mlx5_0/") && !strings.Contains(path, "/device/")
	}}
	h.Files = files
	s := rounds.New(context.WithoutCancel(t.Context()),
		rounds.Options{Host: h, Collectors: collector.All(collector.Options{}), Timeout: 10 * time.Second, Now: p.Now})

	at := func(d time.Duration) map[string]string {
		t.Helper()
		must(t, p.Seek(start.Add(d)))
		files.take()
		return machines.Collect(t, s)
	}
	state := `rdma_port_state_id{device="mlx5_0",port="1"}`
	held := `rdma_scrape_quarantined_items{collector="infiniband",device="mlx5_0"}`
	if got := at(0); got[state] != "4" || got[held] != "" {
		t.Fatalf("healthy: state %q, held %q", got[state], got[held])
	}
	for d := time.Minute; d < 5*time.Minute; d += 15 * time.Second {
		at(d)
	}
	got := at(5 * time.Minute)
	if n := files.take(); n != 0 {
		t.Errorf("a device that refuses all is read %d times a round", n)
	}
	if got[held] == "" {
		t.Errorf("%s is %q", held, got[held])
	}
	if got[`rdma_port_state_id{device="mlx5_3",port="1"}`] != "4" {
		t.Error("another device is lost")
	}
	at(10 * time.Minute)
	if got := at(11 * time.Minute); got[state] != "4" || got[held] != "" {
		t.Errorf("registered again: state %q, held %q", got[state], got[held])
	}
}

// release lets a blocked reader of a FIFO go, and puts a counter in its place.
func release(t *testing.T, fifo string) {
	t.Helper()
	w, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	must(t, err)
	must(t, os.Remove(fifo))
	put(t, fifo, "0\n")
	must(t, w.Close())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.WriteFile(name, []byte(text), 0o644))
}
