package rounds_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/replay"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/test/machines"
)

const port0 = "sys/class/infiniband/mlx5_0/ports/1/"

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
	unblock(t, fifo)
	for machines.Collect(t, s)[stuck] != "" { // ends with the test's deadline if the device does not come back
	}
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

// TestVirtualFunctionsComeAndGo: a removed virtual function is not a lost device.
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

// counted counts the reads of some files.
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

// TestFailingDeviceIsLeftAlone: a device whose reads all fail is no longer read until it registers again.
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
	p, err := replay.Play(a, start)
	must(t, err)
	defer func() { must(t, p.Close()) }()
	h := p.Host()
	// Files behind the link to its PCI function do not count.
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

// unblock releases a blocked reader of a FIFO, and replaces the FIFO with a counter.
func unblock(t *testing.T, fifo string) {
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
