//go:build e2e

package fabric

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/port"
)

// exporter is the program on a simulated fabric.
type exporter struct {
	address string
	pid     int
}

// export starts the program at the last host and waits for its first sweep.
func (s *subnet) export(t *testing.T, args ...string) *exporter {
	t.Helper()
	args = append([]string{
		"fabric", "--fabric.device=" + hostName(s.leaves*s.hosts-1), "--web.listen-address=" + port.Any,
		"--state.dir=" + s.dir + "/state",
	}, args...)
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(s.environment(), program+"=1", underFilter)
	s.run(t, cmd, "rdma_exporter")
	e := &exporter{address: port.Of(t, cmd.Process.Pid), pid: cmd.Process.Pid}
	eventually(t, "the exporter", func() string {
		r, err := http.Get("http://" + e.address + "/-/ready")
		if err != nil {
			return err.Error()
		}
		defer r.Body.Close()
		if r.StatusCode != http.StatusOK {
			return r.Status
		}
		return ""
	})
	return e
}

// samples are metrics by text, including {labels}.
type samples map[string]float64

func (e *exporter) scrape(t *testing.T) samples {
	t.Helper()
	r, err := http.Get("http://" + e.address + "/metrics")
	must(t, err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	must(t, err)
	return parse(t, string(b), "rdma_fabric_", "process_resident")
}

// parse returns the samples with one of the prefixes.
func parse(t *testing.T, text string, prefixes ...string) samples {
	t.Helper()
	m := samples{}
	for line := range strings.Lines(text) {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(line, p) }) {
			at := strings.LastIndexByte(strings.TrimSpace(line), ' ')
			v, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
			must(t, err)
			m[line[:at]] = v
		}
	}
	return m
}

// next waits for a sweep that starts and ends after the call, and returns its metrics.
func (e *exporter) next(t *testing.T) samples {
	t.Helper()
	now := float64(time.Now().UnixMilli()) / 1000
	var m samples
	eventually(t, "the next sweep", func() string {
		m = e.scrape(t)
		if at := m["rdma_fabric_sweep_timestamp_seconds"]; at <= now {
			return fmt.Sprintf("the last one began at %f, before %f", at, now)
		}
		return ""
	})
	return m
}

var labelPair = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)

// labels of a sample.
func labels(sample string) map[string]string {
	m := map[string]string{}
	for _, f := range labelPair.FindAllStringSubmatch(sample, -1) {
		m[f[1]] = f[2]
	}
	return m
}

// ends returns the ports of a metric's samples for which ok is true, with the names of both ends: "leaf000/3 node0002
// mlx5_0/1".
func (m samples) ends(metric string, ok func(float64) bool) (out []string) {
	names := map[string]string{}
	nameOf := func(l map[string]string) string {
		return fmt.Sprintf("%s/%s %s/%s", l["node"], l["port"], l["neighbour"], l["neighbour_port"])
	}
	for sample := range m {
		if strings.HasPrefix(sample, "rdma_fabric_link_info{") {
			l := labels(sample)
			names[l["node_guid"]+"/"+l["port"]] = nameOf(l)
		}
	}
	for sample, v := range m {
		if strings.HasPrefix(sample, metric+"{") && ok(v) {
			l := labels(sample)
			name := names[l["node_guid"]+"/"+l["port"]]
			switch {
			case l["neighbour"] != "": // of a link that is missing: its own names
				name = nameOf(l)
			case l["moved"] != "":
				name += ", " + l["moved"] + " to " + l["now"]
			}
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func positive(v float64) bool { return v > 0 }

// peak returns the maximum resident memory of the program, in MiB.
func (e *exporter) peak(t *testing.T) int {
	t.Helper()
	_, rest, _ := strings.Cut(read(t, fmt.Sprintf("/proc/%d/status", e.pid)), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	must(t, err)
	return kib >> 10
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	must(t, err)
	return string(b)
}
