//go:build soak

package soak

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/port"
	"rdma_exporter/test/process"
	"rdma_exporter/test/program"
)

// child is a running exporter.
type child struct {
	name    string
	cmd     *exec.Cmd
	url     string
	figures []figure
	samples []sample
	series  int // in the first response
}

// childFigures may grow by what the store gets in a quarter of an hour, if rules are evaluated: the first block is
// written after 45 minutes.
func childFigures(store float64) []figure {
	return []figure{
		{"heap after GC, MiB", 1 << 20, 1<<18 + store},
		{"resident memory, MiB", 1 << 20, 2<<20 + store},
		{"private memory, MiB", 1 << 20, 2<<20 + store},
		{"descriptors", 1, 8}, // a file that is read once a minute is open again after its first reading; a leak is at least one per cycle
		{"goroutines", 1, 4},  // of idle connections
	}
}

func startChild(t *testing.T, name, root string, store float64, flags ...string) *child {
	t.Helper()
	c := &child{name: name, figures: childFigures(store)}
	c.cmd = exec.Command(program.Built(t, *exporter, "make build builds it"), append([]string{
		"serve", "--path.rootfs=" + root, "--state.dir=" + t.TempDir(), "--web.listen-address=" + port.Any,
		"--log.level=error", "--collect.min-interval=0s", "--web.pprof",
	}, flags...)...)
	c.cmd.Stderr = os.Stderr
	must(t, c.cmd.Start())
	t.Cleanup(func() {
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
		if err := c.cmd.Wait(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	c.url = "http://" + port.Of(t, c.cmd.Process.Pid)
	for range 300 {
		if _, err := c.get("/-/ready"); err == nil {
			return c
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s is not ready", name)
	return nil
}

func (c *child) get(path string) ([]byte, error) {
	r, err := http.Get(c.url + path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, r.Status)
	}
	return b, err
}

// sample records the figures; one of them is in the response to a scrape.
func (c *child) sample(t *testing.T, at time.Duration, body []byte) {
	t.Helper()
	pid := c.cmd.Process.Pid
	memory, err := process.Resident(pid)
	must(t, err)
	files, err := process.Files(pid)
	must(t, err)
	heap, err := c.get("/debug/pprof/heap?gc=1&debug=1")
	must(t, err)
	c.samples = append(c.samples, sample{
		at,
		[]float64{after(t, heap, "\n# HeapAlloc = "), float64(memory.All), float64(memory.Anon), float64(files), after(t, body, "\ngo_goroutines ")},
	})
}

// after returns the number after a text.
func after(t *testing.T, body []byte, text string) float64 {
	t.Helper()
	_, rest, _ := bytes.Cut(body, []byte(text))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	v, err := strconv.ParseFloat(string(line), 64)
	must(t, err)
	return v
}

// TestProcess: the real program is scraped every second in real time, with and without rules, while devices are removed
// and added. Every scrape succeeds, and at the end the series are those at the start.
func TestProcess(t *testing.T) {
	n := newNode(t, *recording)
	children := []*child{
		startChild(t, "with rules", n.dir, 3<<20),
		startChild(t, "exporter alone", n.dir, 0, "--no-alerting"),
	}
	for _, c := range children {
		body, err := c.get("/metrics")
		must(t, err)
		c.series = seriesOf(body)
	}
	start := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	scrapes := 0
	for time.Since(start) < *duration {
		<-tick.C
		n.live(t)
		for _, c := range children {
			body, err := c.get("/metrics")
			if err != nil {
				t.Errorf("%s, scrape %d: %v", c.name, scrapes, err)
				continue
			}
			if n.step%cycle == 0 {
				c.sample(t, time.Since(start), body)
			}
		}
		scrapes++
	}
	for n.step%cycle != 0 {
		n.live(t)
	}
	time.Sleep(2 * time.Minute) // until facts are read again
	for _, c := range children {
		body, err := c.get("/metrics")
		must(t, err)
		if got := seriesOf(body); got != c.series {
			t.Errorf("%s: %d series at the end, %d at first", c.name, got, c.series)
		}
		table, grown := check(c.figures, c.samples)
		t.Logf("%s: %d scrapes in %s of %s, %d times a device, a netdev and a link went and came:\n%s",
			c.name, scrapes, *duration, filepath.Base(*recording), n.step/cycle, table)
		for _, g := range grown {
			t.Errorf("%s: %s", c.name, g)
		}
	}
}
