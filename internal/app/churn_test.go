package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/rounds"
)

// slot is a NIC of which each figure names it: serial numbers and counters are its own.
type slot struct {
	dir    string // of its PCI function, in which the driver makes infiniband/NAME
	number int    // what its counters have
	guid   string
}

// plug makes a device as a driver does: its directory is there with all that is in it, then the class has it.
func (p *slot) plug(t *testing.T, tree, template, name string) {
	t.Helper()
	staged := filepath.Join(tree, fmt.Sprintf("staged%d", p.number))
	must(t, os.CopyFS(staged, os.DirFS(template)))
	write := func(file string, content any) { put(t, filepath.Join(staged, file), fmt.Sprintln(content)) }
	write("node_guid", p.guid)
	for _, file := range []string{"counters/link_downed", "counters/symbol_error", "hw_counters/out_of_sequence", "hw_counters/duplicate_request"} {
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

func (p *slot) unplug(t *testing.T, tree, name string) {
	t.Helper()
	must(t, os.Remove(filepath.Join(tree, "sys/class/infiniband", name)))
	must(t, os.RemoveAll(filepath.Join(p.dir, "infiniband", name)))
}

var (
	guidOf  = regexp.MustCompile(`rdma_device_info{.*device="(mlx5_[04])".*node_guid="([^"]*)"`)
	countOf = regexp.MustCompile(`^rdma_port_(link_downed|symbol_errors|out_of_sequence|duplicate_requests)_total{device="(mlx5_[04])"`)
)

// mixed says which counters of a picture are not those of the device that has them. What two collectors say of a name is not of one
// moment.
func mixed(samples map[string]string, slots []*slot) (out []string) {
	owner := map[string]string{} // by collector and name: the number that all its figures have
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

// TestDevicesExchanged: two devices go and come back under each other's name, a hundred times, while rounds are under way. No figure is
// that of the other, nothing stays open, no goroutine is left.
func TestDevicesExchanged(t *testing.T) {
	memory := "/dev/shm" // inode numbers of tmpfs rise, as those of sysfs do
	dir, err := os.MkdirTemp(memory, "rdma_exporter-test-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	must(t, os.CopyFS(dir, os.DirFS(tree(t, "dgx-h100-ib"))))

	var slots []*slot
	template := filepath.Join(dir, "template")
	for i, name := range []string{"mlx5_0", "mlx5_4"} {
		real, err := filepath.EvalSymlinks(filepath.Join(dir, "sys/class/infiniband", name))
		must(t, err)
		slots = append(slots, &slot{dir: filepath.Dir(filepath.Dir(real)), number: 1000 * (i + 1), guid: fmt.Sprintf("0000:0000:0000:000%d", i)})
		if i == 0 {
			must(t, os.CopyFS(template, os.DirFS(real)))
			must(t, os.Remove(filepath.Join(template, "device")))
		}
		slots[i].unplug(t, dir, name)
	}
	names := []string{"mlx5_0", "mlx5_4"}
	plug := func() {
		for i, p := range slots {
			p.plug(t, dir, template, names[i])
		}
	}
	plug()

	l, err := host.OpenLive(host.Paths{RootFS: dir})
	must(t, err)
	defer func() { must(t, l.Close()) }()
	s := rounds.New(context.WithoutCancel(t.Context()), rounds.Options{
		Host: &l.Host, Collectors: collector.All(collector.Options{}), Timeout: 10 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	whole := collect(t, s)
	exchange := func(between func()) {
		for i, p := range slots {
			p.unplug(t, dir, names[i])
		}
		between()
		names[0], names[1] = names[1], names[0]
		plug()
	}
	for range 2 { // what is read once only, and of a device that is missing, keeps its file open from then on
		exchange(func() { collect(t, s) })
		collect(t, s)
	}
	collect(t, s)
	goroutines, files := runtime.NumGoroutine(), openBelow(t, dir)

	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		for range 100 {
			exchange(func() {})
		}
	})
	rounds := 0
	for running := true; running; rounds++ {
		select {
		case <-done:
			running = false
		default:
		}
		got := collect(t, s)
		if m := mixed(got, slots); m != nil {
			t.Fatalf("round %d: %q", rounds, m)
		}
		if got[`rdma_port_state_id{device="mlx5_3",port="1"}`] != "4" {
			t.Fatalf("round %d: another device is lost", rounds)
		}
	}
	wg.Wait()
	if rounds < 5 {
		t.Errorf("%d rounds only", rounds)
	}
	if l := lost(whole, collect(t, s)); len(l) != 0 {
		t.Errorf("afterwards lost %v", l)
	}
	collect(t, s)
	if n := openBelow(t, dir); n != files {
		t.Errorf("%d files are open, %d before", n, files)
	}
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > goroutines; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), goroutines)
		}
	}
}

// openBelow counts what this process has open below a directory, whether its name is still there or not.
func openBelow(t *testing.T, dir string) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, dir) {
			n++
		}
	}
	return n
}
