package cli

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	testmachine "rdma_exporter/test/machine"
)

const (
	manyDevices = 64
	fullTable   = 256 // GIDs of a port
)

// twoPorts are 64 devices of two ports with full GID tables. Counters and GUID of a device have the number of its slot.
type twoPorts struct {
	dir   string
	slots []string // directories of the PCI functions
	names []string // of the devices in them; empty: none
}

func newTwoPorts(t *testing.T) *twoPorts {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "rdma_exporter-test-") // inode numbers of tmpfs rise, as those of sysfs do
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	must(t, testmachine.RoCE("../..").Grow(manyDevices, dir))
	x := &twoPorts{dir: dir}
	for i := range 2 {
		put(t, filepath.Join(dir, fmt.Sprint("type", i)), []string{"IB/RoCE v1\n", "RoCE v2\n"}[i])
	}
	for k := range fullTable {
		put(t, filepath.Join(dir, fmt.Sprint("gid", k)), fmt.Sprintf("fe80:0000:0000:0000:0000:0000:0000:%04x\n", k))
	}
	for i := range manyDevices {
		name := fmt.Sprint("mlx5_", i)
		real, err := filepath.EvalSymlinks(filepath.Join(dir, "sys/class/infiniband", name))
		must(t, err)
		x.slots, x.names = append(x.slots, filepath.Dir(filepath.Dir(real))), append(x.names, name)
		put(t, filepath.Join(real, "node_guid"), fmt.Sprintf("0000:0000:0000:%04x\n", i))
		port := filepath.Join(real, "ports/1")
		for _, table := range []string{"gids", "gid_attrs/types"} {
			must(t, os.RemoveAll(filepath.Join(port, table)))
			must(t, os.MkdirAll(filepath.Join(port, table), 0o755))
		}
		for k := range fullTable {
			must(t, os.Link(filepath.Join(dir, fmt.Sprint("gid", k)), filepath.Join(port, "gids", fmt.Sprint(k))))
			must(t, os.Link(filepath.Join(dir, fmt.Sprint("type", k%2)), filepath.Join(port, "gid_attrs/types", fmt.Sprint(k))))
		}
		must(t, copyLinked(port, filepath.Join(real, "ports/2")))
		for p := 1; p <= 2; p++ {
			downed := filepath.Join(real, fmt.Sprintf("ports/%d/counters/link_downed", p))
			must(t, os.Remove(downed))
			put(t, downed, fmt.Sprintln(10*i+p))
		}
	}
	return x
}

// copyLinked copies a tree whose files are hard links.
func copyLinked(from, to string) error {
	return filepath.WalkDir(from, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		copied := to + strings.TrimPrefix(path, from)
		if e.IsDir() {
			return os.MkdirAll(copied, 0o755)
		}
		return os.Link(path, copied)
	})
}

// unplug removes a device, as its driver does: from the class first.
func (x *twoPorts) unplug(t *testing.T, i int) {
	must(t, os.Remove(filepath.Join(x.dir, "sys/class/infiniband", x.names[i])))
	must(t, os.Rename(filepath.Join(x.slots[i], "infiniband", x.names[i]), filepath.Join(x.dir, fmt.Sprint("gone", i))))
	x.names[i] = ""
}

// plug adds it by a name.
func (x *twoPorts) plug(t *testing.T, i int, name string) {
	place := filepath.Join(x.slots[i], "infiniband", name)
	must(t, os.Rename(filepath.Join(x.dir, fmt.Sprint("gone", i)), place))
	class := filepath.Join(x.dir, "sys/class/infiniband")
	target, err := filepath.Rel(class, place)
	must(t, err)
	must(t, os.Symlink(target, filepath.Join(class, name)))
	x.names[i] = name
}

// reload unloads the driver and loads it: the devices are back with other indices.
func (x *twoPorts) reload(t *testing.T, shift int) {
	for i := range x.slots {
		x.unplug(t, i)
	}
	for i := range x.slots {
		x.plug(t, i, fmt.Sprint("mlx5_", (i+shift)%manyDevices))
	}
}

// renameNetdev renames the netdev of a slot.
func (x *twoPorts) renameNetdev(t *testing.T, i int, to string) {
	names, err := os.ReadDir(filepath.Join(x.slots[i], "net"))
	must(t, err)
	from := names[0].Name()
	must(t, os.Rename(filepath.Join(x.slots[i], "net", from), filepath.Join(x.slots[i], "net", to)))
	class := filepath.Join(x.dir, "sys/class/net")
	must(t, os.Remove(filepath.Join(class, from)))
	target, err := filepath.Rel(class, filepath.Join(x.slots[i], "net", to))
	must(t, err)
	must(t, os.Symlink(target, filepath.Join(class, to)))
}

var (
	guidLine   = regexp.MustCompile(`(?m)^rdma_device_info{.*device="(mlx5_\d+)".*node_guid="0000:0000:0000:([0-9a-f]{4})"`)
	downedLine = regexp.MustCompile(`(?m)^rdma_port_link_downed_total{device="(mlx5_\d+)",port="(\d)"} (\d+)$`)
	gidsLine   = regexp.MustCompile(`(?m)^rdma_port_gid_entries{device="(mlx5_\d+)",port="\d",type="\w+"} (\d+)$`)
)

// findMixed returns what a scrape has of another device, and of how many devices and GID tables it has something.
func findMixed(body string) (mixed []string, devices, tables int) {
	slots := map[string]int{}
	for _, m := range guidLine.FindAllStringSubmatch(body, -1) {
		var n int
		if _, err := fmt.Sscanf(m[2], "%x", &n); err == nil {
			slots[m[1]] = n
		}
	}
	for _, m := range downedLine.FindAllStringSubmatch(body, -1) {
		if n, known := slots[m[1]]; known && m[3] != strings.TrimPrefix(fmt.Sprint(n)+m[2], "0") {
			mixed = append(mixed, fmt.Sprintf("%s: slot %d", m[0], n))
		}
	}
	for _, m := range gidsLine.FindAllStringSubmatch(body, -1) {
		if m[2] == fmt.Sprint(fullTable/2) {
			tables++
		}
	}
	return mixed, len(slots), tables
}

// TestManyDevices: 64 devices of two ports with full GID tables vanish and return, their netdevs are renamed and their
// driver is reloaded, while rules are evaluated and the program is scraped. Each scrape is answered, no figure is that
// of another device, and afterwards all is there.
func TestManyDevices(t *testing.T) {
	x := newTwoPorts(t)
	s := startProgram(
		t,
		"--path.rootfs="+x.dir,
		"--alerting.interval=1s",
		"--collect.min-interval=0s",
		"--collect.no-budget",
	)
	whole := func(when string) {
		t.Helper()
		for end := time.Now().Add(3 * time.Minute); ; runtime.Gosched() {
			_, body, _ := s.get(t, "/metrics")
			mixed, devices, tables := findMixed(body)
			if len(mixed) == 0 && devices == manyDevices && tables == 4*manyDevices &&
				strings.Count(body, "\nrdma_port_link_downed_total{") == 2*manyDevices {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %d devices, %d GID types of full tables, %d counters, mixed %q",
					when, devices, tables, strings.Count(body, "\nrdma_port_link_downed_total{"), mixed)
			}
		}
	}
	whole("at the start")
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		for n := range 3 {
			for i := n; i < manyDevices; i += 7 {
				name := x.names[i]
				x.unplug(t, i)
				x.plug(t, i, name)
				x.renameNetdev(t, i, fmt.Sprintf("rail%dn%d", i, n))
			}
			s.rounds(t, float64(n))
			x.reload(t, n+1)
		}
	})
	scrapes, slowest := 0, time.Duration(0)
	for running := true; running; scrapes++ {
		select {
		case <-done:
			running = false
		default:
		}
		began := time.Now()
		status, body, _ := s.get(t, "/metrics")
		slowest = max(slowest, time.Since(began))
		if mixed, _, _ := findMixed(body); status != http.StatusOK || len(mixed) > 0 {
			t.Fatalf("scrape %d: status %d, mixed %q", scrapes, status, mixed)
		}
	}
	wg.Wait()
	whole("afterwards")
	if slowest > 20*time.Second { // collections end after 10s
		t.Errorf("a scrape took %s", slowest)
	}
	t.Logf("%d scrapes, the slowest in %s", scrapes, slowest.Round(time.Millisecond))
}
