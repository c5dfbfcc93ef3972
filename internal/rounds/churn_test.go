package rounds_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/test/machines"
)

// pciSlot is a NIC whose values identify it: serial numbers and counters differ from those of other NICs.
type pciSlot struct {
	dir    string // of its PCI function, in which the driver creates infiniband/NAME
	number int    // value of its counters
	guid   string
}

// plug adds a device as a driver does: first the complete directory, then the link in the class.
func (p *pciSlot) plug(t *testing.T, tree, template, name string) {
	t.Helper()
	staged := filepath.Join(tree, fmt.Sprintf("staged%d", p.number))
	must(t, os.CopyFS(staged, os.DirFS(template)))
	write := func(file string, content any) { put(t, filepath.Join(staged, file), fmt.Sprintln(content)) }
	write("node_guid", p.guid)
	for _, file := range []string{
		"counters/link_downed", "counters/symbol_error", "hw_counters/out_of_sequence", "hw_counters/duplicate_request",
	} {
		write("ports/1/"+file, p.number)
	}
	must(t, os.Symlink(filepath.Join("..", "..", "..", filepath.Base(p.dir)), filepath.Join(staged, "device")))
	must(t, os.MkdirAll(filepath.Join(p.dir, "infiniband"), 0o755))
	must(t, os.Rename(staged, filepath.Join(p.dir, "infiniband", name)))
	class := filepath.Join(tree, "sys/class/infiniband")
	target, err := filepath.Rel(class, filepath.Join(p.dir, "infiniband", name))
	must(t, err)
	must(t, os.Symlink(target, filepath.Join(class, name)))
}

func (p *pciSlot) unplug(t *testing.T, tree, name string) {
	t.Helper()
	must(t, os.Remove(filepath.Join(tree, "sys/class/infiniband", name)))
	must(t, os.RemoveAll(filepath.Join(p.dir, "infiniband", name)))
}

var (
	guidOf  = regexp.MustCompile(`rdma_device_info{.*device="(mlx5_[04])".*node_guid="([^"]*)"`)
	countOf = regexp.MustCompile(`^rdma_port_(link_downed|symbol_errors|out_of_sequence|duplicate_requests)_total{device="(mlx5_[04])"`)
)

// mixed returns the counters of a picture that belong to another device than the one they are exposed for. Each
// collector reads a name at another moment, so they are compared by collector.
func mixed(samples map[string]string, slots []*pciSlot) (out []string) {
	owner := map[string]string{} // by collector and name: the number in all its values
	for key := range samples {
		if m := guidOf.FindStringSubmatch(key); m != nil {
			for _, p := range slots {
				if p.guid == m[2] {
					owner["infiniband "+m[1]] = strconv.Itoa(p.number)
				}
			}
		}
	}
	for key, v := range samples {
		m := countOf.FindStringSubmatch(key)
		if m == nil {
			continue
		}
		from := "infiniband " + m[2]
		if m[1] == "out_of_sequence" || m[1] == "duplicate_requests" {
			from = "hwcounters " + m[2]
		}
		if owner[from] == "" {
			owner[from] = v
		}
		if owner[from] != v {
			out = append(out, key+" "+v+", of "+owner[from])
		}
	}
	return out
}

// bay is a machine with two NICs that can be exchanged.
type bay struct {
	dir, template string
	slots         []*pciSlot
	names         []string // of the devices in the slots
}

func newBay(t *testing.T) *bay {
	t.Helper()
	dir := machines.TreeIn(t, "/dev/shm", "dgx-h100-ib") // inode numbers of tmpfs rise, as those of sysfs do
	b := &bay{dir: dir, template: filepath.Join(dir, "template"), names: []string{"mlx5_0", "mlx5_4"}}
	for i, name := range b.names {
		real, err := filepath.EvalSymlinks(filepath.Join(dir, "sys/class/infiniband", name))
		must(t, err)
		b.slots = append(
			b.slots,
			&pciSlot{
				dir:    filepath.Dir(filepath.Dir(real)),
				number: 1000 * (i + 1),
				guid:   fmt.Sprintf("0000:0000:0000:000%d", i),
			},
		)
		if i == 0 {
			must(t, os.CopyFS(b.template, os.DirFS(real)))
			must(t, os.Remove(filepath.Join(b.template, "device")))
		}
		b.slots[i].unplug(t, dir, name)
	}
	b.plug(t)
	return b
}

func (b *bay) plug(t *testing.T) {
	for i, p := range b.slots {
		p.plug(t, b.dir, b.template, b.names[i])
	}
}

// exchange removes both devices and adds them under each other's name.
func (b *bay) exchange(t *testing.T, between func()) {
	for i, p := range b.slots {
		p.unplug(t, b.dir, b.names[i])
	}
	between()
	b.names[0], b.names[1] = b.names[1], b.names[0]
	b.plug(t)
}

// scheduler returns a scheduler that reads the machine as the program does; files may wrap its file access.
func (b *bay) scheduler(t *testing.T, files func(host.Files) host.Files) (*rounds.Scheduler, *live.Live) {
	l, err := live.Open(rooted.Paths{RootFS: b.dir})
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	l.Host.Files = files(l.Host.Files)
	return rounds.New(context.WithoutCancel(t.Context()), rounds.Options{
		Host: &l.Host, Collectors: collector.All(collector.Options{}), Timeout: 10 * time.Second,
		Logger: slog.New(slog.DiscardHandler),
	}), l
}

// interrupted calls before once, just before a directory is read.
type interrupted struct {
	host.Files
	dir    string
	before atomic.Pointer[func()] // nil after it was called
}

func (f *interrupted) ReadEach(dir string, names []string, buf []byte, each func(string, []byte, error)) []byte {
	if dir == f.dir {
		if before := f.before.Swap(nil); before != nil {
			(*before)()
		}
	}
	return f.Files.ReadEach(dir, names, buf, each)
}

// TestExchangedWithinARead: another device takes the name of a device just before its counters are read. Both devices
// are left out of that round, and each has its own values in the next one.
func TestExchangedWithinARead(t *testing.T) {
	for _, dir := range []string{"counters", "hw_counters"} {
		t.Run(dir, func(t *testing.T) {
			b := newBay(t)
			files := &interrupted{dir: "sys/class/infiniband/mlx5_0/ports/1/" + dir}
			s, l := b.scheduler(t, func(f host.Files) host.Files { files.Files = f; return files })
			whole := machines.Collect(t, s)
			for i := range 4 {
				exchange := func() {
					b.exchange(t, func() {})
					l.Forget() // sysfs answers ENODEV for a file that was open, and the name is opened again; tmpfs keeps it
				}
				files.before.Store(&exchange)
				got := machines.Collect(t, s)
				if files.before.Load() != nil {
					t.Fatal("nothing was read")
				}
				if m := mixed(got, b.slots); m != nil {
					t.Errorf("%q", m)
				}
				after := machines.Collect(t, s)
				if m := mixed(after, b.slots); m != nil {
					t.Errorf("afterwards: %q", m)
				}
				if l := machines.Lost(whole, after); i%2 == 1 && len(l) != 0 { // both have their first names again
					t.Errorf("afterwards lost %q", l)
				}
				for n, p := range b.slots { // data that is kept for an hour is replaced too
					for _, metric := range []string{"rdma_device_info", "rdma_device_pcie_path_info", "rdma_device_pcie_link_info"} {
						if !has(after, metric, fmt.Sprintf("device=%q", b.names[n]), fmt.Sprintf("pci_address=%q",
							filepath.Base(p.dir))) {
							t.Errorf("afterwards: %s of %s is not at %s", metric, b.names[n], filepath.Base(p.dir))
						}
					}
				}
			}
		})
	}
}

// has reports whether there is a series with these labels.
func has(samples map[string]string, metric string, pairs ...string) bool {
	for key := range samples {
		if strings.HasPrefix(key, metric+"{") &&
			!slices.ContainsFunc(pairs, func(p string) bool { return !strings.Contains(key, p) }) {
			return true
		}
	}
	return false
}

// TestDevicesExchanged: two devices are removed and come back under each other's name, a hundred times, while rounds
// are in progress. No value is that of the other device, no descriptor stays open, no goroutine is left.
func TestDevicesExchanged(t *testing.T) {
	b := newBay(t)
	s, _ := b.scheduler(t, func(f host.Files) host.Files { return f })
	whole := machines.Collect(t, s)
	// settle removes both devices for a round. A file that is read only once stays open if its directory is in use
	// already, which depends on the round in which the device appeared.
	settle := func() {
		for range 2 {
			b.exchange(t, func() { machines.Collect(t, s) })
			machines.Collect(t, s)
		}
		machines.Collect(t, s)
	}
	settle()
	goroutines, files := runtime.NumGoroutine(), openBelow(t, b.dir)

	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		for range 100 {
			b.exchange(t, func() {})
		}
	})
	n := 0
	for running := true; running; n++ {
		select {
		case <-done:
			running = false
		default:
		}
		got := machines.Collect(t, s)
		if m := mixed(got, b.slots); m != nil {
			t.Fatalf("round %d: %q", n, m)
		}
		if got[`rdma_port_state_id{device="mlx5_3",port="1"}`] != "4" {
			t.Fatalf("round %d: another device is lost", n)
		}
	}
	wg.Wait()
	if n < 5 {
		t.Errorf("%d rounds only", n)
	}
	if l := machines.Lost(whole, machines.Collect(t, s)); len(l) != 0 {
		t.Errorf("afterwards lost %v", l)
	}
	settle()
	if now := openBelow(t, b.dir); len(now) != len(files) {
		t.Errorf("%d files are open, %d before: %q is open, %q no more",
			len(now), len(files), less(now, files), less(files, now))
	}
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > goroutines; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), goroutines)
		}
	}
}

// openBelow returns the files that this process has open below a directory, deleted ones included.
func openBelow(t *testing.T, dir string) (open []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, dir) {
			open = append(open, to)
		}
	}
	return open
}

// less returns the elements that a has more often than b.
func less(a, b []string) (out []string) {
	count := map[string]int{}
	for _, name := range b {
		count[name]++
	}
	for _, name := range a {
		if count[name]--; count[name] < 0 {
			out = append(out, name)
		}
	}
	return out
}

// TestNetdevRenamed: in the round after a netdev was renamed all series have the new name; a netdev that takes the name
// of another one has none of its values.
func TestNetdevRenamed(t *testing.T) {
	dir := machines.TreeIn(t, "/dev/shm", "hgx-h200-roce")
	l, err := live.Open(rooted.Paths{RootFS: dir})
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	s := rounds.New(context.WithoutCancel(t.Context()), rounds.Options{
		Host: &l.Host, Collectors: collector.All(collector.Options{}), Timeout: 10 * time.Second,
		Logger: slog.New(slog.DiscardHandler),
	})
	rename := func(from, to string) {
		class := filepath.Join(dir, "sys/class/net")
		real, err := filepath.EvalSymlinks(filepath.Join(class, from))
		must(t, err)
		renamed := filepath.Join(filepath.Dir(real), to)
		must(t, os.Rename(real, renamed))
		must(t, os.Remove(filepath.Join(class, from)))
		target, err := filepath.Rel(class, renamed)
		must(t, err)
		must(t, os.Symlink(target, filepath.Join(class, to)))
	}
	named := func(samples map[string]string, device, netdev string) (n int) {
		for key := range samples {
			if strings.Contains(key, fmt.Sprintf("device=%q", device)) &&
				strings.Contains(key, fmt.Sprintf("netdev=%q", netdev)) {
				n++
			}
		}
		return n
	}
	netdevOf := func(device string) string {
		names, err := os.ReadDir(filepath.Join(dir, "sys/class/infiniband", device, "device/net"))
		must(t, err)
		return names[0].Name()
	}
	one, two := netdevOf("mlx5_0"), netdevOf("mlx5_3")
	machines.Collect(t, s)
	whole := machines.Collect(t, s)
	n := named(whole, "mlx5_0", one)
	if n < 5 || named(whole, "mlx5_3", two) != n {
		t.Fatalf("%d series of %s, %d of %s", n, one, named(whole, "mlx5_3", two), two)
	}
	rename(one, "rail0")
	if got := machines.Collect(t, s); named(got, "mlx5_0", one) != 0 || named(got, "mlx5_0", "rail0") != n ||
		named(got, "mlx5_3", two) != n || len(got) != len(whole) {
		t.Errorf("renamed: %d series of the old name, %d of the new one, %d in all of %d",
			named(got, "mlx5_0", one), named(got, "mlx5_0", "rail0"), len(got), len(whole))
	}
	rename(two, one)
	rename("rail0", two)
	if got := machines.Collect(t, s); named(got, "mlx5_0", two) != n || named(got, "mlx5_3", one) != n ||
		named(got, "mlx5_0", "rail0") != 0 || named(got, "mlx5_0", one) != 0 || named(got, "mlx5_3", two) != 0 {
		t.Error("exchanged names are mixed")
	}
	if got := machines.Collect(t, s); len(got) != len(whole) {
		t.Errorf("%d series of %d", len(got), len(whole))
	}
}
