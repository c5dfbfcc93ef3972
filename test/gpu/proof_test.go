//go:build gpu

package gpu

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// compared are the metrics and the corresponding elements of nvidia-smi -q -x. A changing figure may differ by share or
// by slack between two readings in the same second.
var compared = []struct {
	metric       string
	label        string // besides gpu and UUID
	share, slack float64
	paths        []string
}{
	{"rdma_gpu_pcie_generation", "", 0, 0, []string{"pci/pci_gpu_link_info/pcie_gen/current_link_gen"}},
	{"rdma_gpu_pcie_max_generation", "", 0, 0, []string{"pci/pci_gpu_link_info/pcie_gen/max_link_gen"}},
	{"rdma_gpu_pcie_width_lanes", "", 0, 0, []string{"pci/pci_gpu_link_info/link_widths/current_link_width"}},
	{"rdma_gpu_pcie_max_width_lanes", "", 0, 0, []string{"pci/pci_gpu_link_info/link_widths/max_link_width"}},
	{"rdma_gpu_pcie_replays_total", "", 0, 0, []string{"pci/replay_counter"}},
	{"rdma_gpu_temperature_celsius", "", 0, 3, []string{"temperature/gpu_temp"}},
	{"rdma_gpu_power_watts", "", 0.2, 15, []string{"gpu_power_readings/instant_power_draw", "gpu_power_readings/power_draw", "power_readings/power_draw"}},
	{"rdma_gpu_utilization_ratio", "", 0, 0.1, []string{"utilization/gpu_util"}},
	{"rdma_gpu_memory_total_bytes", "", 0, 1 << 20, []string{"fb_memory_usage/total"}},
	{"rdma_gpu_memory_used_bytes", "", 0, 16 << 20, []string{"fb_memory_usage/used"}},
	{"rdma_gpu_bar1_total_bytes", "", 0, 1 << 20, []string{"bar1_memory_usage/total"}},
	{"rdma_gpu_bar1_used_bytes", "", 0, 4 << 20, []string{"bar1_memory_usage/used"}},
	{"rdma_gpu_throttle", is("reason", "sw_power_cap"), 0, 0, reason("sw_power_cap")},
	{"rdma_gpu_throttle", is("reason", "hw_slowdown"), 0, 0, reason("hw_slowdown")},
	{"rdma_gpu_throttle", is("reason", "sync_boost"), 0, 0, reason("sync_boost")},
	{"rdma_gpu_throttle", is("reason", "sw_thermal"), 0, 0, reason("sw_thermal_slowdown")},
	{"rdma_gpu_throttle", is("reason", "hw_thermal"), 0, 0, reason("hw_thermal_slowdown")},
	{"rdma_gpu_throttle", is("reason", "hw_power_brake"), 0, 0, reason("hw_power_brake_slowdown")},
	{"rdma_gpu_remapped_rows", is("error", "correctable"), 0, 0, []string{"remapped_rows/remapped_row_corr"}},
	{"rdma_gpu_remapped_rows", is("error", "uncorrectable"), 0, 0, []string{"remapped_rows/remapped_row_unc"}},
	{"rdma_gpu_row_remapping", is("state", "pending"), 0, 0, []string{"remapped_rows/remapped_row_pending"}},
	{"rdma_gpu_row_remapping", is("state", "failed"), 0, 0, []string{"remapped_rows/remapped_row_failure"}},
	{"rdma_gpu_recovery_action_id", "", 0, 0, []string{"gpu_recovery_action"}},
}

func reason(name string) []string {
	return []string{
		"clocks_event_reasons/clocks_event_reason_" + name, "clocks_throttle_reasons/clocks_throttle_reason_" + name,
	}
}

// linkErrors are the kinds of NVLink errors as in nvidia-smi.
var linkErrors = map[string]string{"replay": "Replay Errors", "recovery": "Recovery Errors", "crc": "CRC Errors"}

// table is the comparison as text.
type table struct {
	t *testing.T
	b bytes.Buffer
}

func (c *table) row(figure, ours, theirs, verdict string) {
	fmt.Fprintf(&c.b, "| %s | %s | %s | %s |\n", figure, ours, theirs, verdict)
	if strings.HasPrefix(verdict, "differs") {
		c.t.Errorf("%s: %s here, %s there", figure, ours, theirs)
	}
}

// compare compares a value that may be missing on either side.
func (c *table) compare(figure string, ours float64, have bool, theirs float64, there bool, share, slack float64) {
	text := func(v float64, ok bool) string {
		if !ok {
			return "absent"
		}
		return fmt.Sprintf("%.10g", v)
	}
	verdict := "equal"
	switch d := math.Abs(ours - theirs); {
	case have != there:
		verdict = "differs: one side has none"
	case !have:
		verdict = "both absent"
	case d == 0:
	case d <= slack || d <= share*math.Abs(theirs):
		verdict = fmt.Sprintf("within tolerance (%.3g)", d)
	default:
		verdict = "differs"
	}
	c.row(figure, text(ours, have), text(theirs, there), verdict)
}

// TestFiguresEqualThoseOfNvidiaSMI on idle and on busy GPUs.
func TestFiguresEqualThoseOfNvidiaSMI(t *testing.T) {
	e := serve(t, "--collector.gpu.mode=full", "--collector.gpu.interval=1s")
	e.wait(t, "rdma_gpu_info", func(m metrics) bool { return len(m.family("rdma_gpu_info")) > 0 })
	time.Sleep(2 * time.Second)
	t.Run("idle", func(t *testing.T) { compareFigures(t, e, "idle") })
	stop := compute(t)
	t.Run("busy", func(t *testing.T) { compareFigures(t, e, "busy") })
	stop()
	if e.children(t) != "0" {
		t.Error("the exporter, or the library in it, has run another program")
	}
}

func compareFigures(t *testing.T, e *exporter, when string) {
	gpus, host, raw := smi(t)
	m := e.scrape(t)
	out(t, "nvidia-smi-"+when+".xml", raw)
	c := &table{t: t}
	fmt.Fprintf(&c.b, "%s: driver %s, CUDA %s, %d GPUs\n\n| figure | exporter | nvidia-smi | |\n|---|---|---|---|\n",
		when, host["driver_version"], host["cuda_version"], len(gpus))
	if _, ok := m[seriesName("rdma_gpu_driver_info", is("version", host["driver_version"]),
		is("cuda_version", host["cuda_version"]))]; !ok {
		t.Errorf("driver %s, CUDA %s is not in %v",
			host["driver_version"], host["cuda_version"], m.family("rdma_gpu_driver_info"))
	}
	if have := len(m.family("rdma_gpu_info")); have != len(gpus) {
		t.Errorf("%d GPUs here, %d there", have, len(gpus))
	}
	for i, g := range gpus {
		compareGPU(t, c, m, i, g)
	}
	nvml := func(name string) float64 { return m[seriesName(name, is("source", "nvml"), is("lock", "device"))] }
	fmt.Fprintf(&c.b, "\nmemory of the exporter %s, page faults of children %s, %v s in NVML for %v readings\n",
		e.status(t, "VmRSS"), e.children(t),
		nvml("rdma_scrape_source_seconds_total"), nvml("rdma_scrape_source_requests_total"))
	out(t, "compare-"+when+".md", c.b.Bytes())
	fmt.Println(c.b.String())
}

func compareGPU(t *testing.T, c *table, m metrics, index int, g smiGPU) {
	t.Helper()
	id := func(name string, more ...string) string {
		return seriesName(name, append(more, is("gpu", fmt.Sprint(index)), is("UUID", g["uuid"]))...)
	}
	infos := 0
	for _, s := range m.family("rdma_gpu_info") {
		if strings.Contains(s, is("UUID", g["uuid"])) && strings.Contains(s, is("gpu", fmt.Sprint(index))) {
			infos++
			c.identity(s, index, "model", g["product_name"])
			c.identity(s, index, "pci_bus_id", strings.ToLower(strings.TrimPrefix(g["pci/pci_bus_id"], "0000")))
			if g["serial"] != "N/A" {
				c.identity(s, index, "serial_number", g["serial"])
			}
		}
	}
	if infos != 1 {
		t.Errorf("GPU %d: %d series of rdma_gpu_info", index, infos)
	}
	for _, x := range compared {
		theirs, path, there := g.first(x.paths...)
		var labels []string
		if x.label != "" {
			labels = []string{x.label}
		}
		ours, have := m[id(x.metric, labels...)]
		c.compare(fmt.Sprintf("%d %s %s (%s)", index, x.metric, x.label, path), ours, have, theirs, there, x.share, x.slack)
	}
	links, up := nvlinks(t, g["uuid"])
	ours, have := m[id("rdma_gpu_nvlinks")]
	c.compare(fmt.Sprintf("%d rdma_gpu_nvlinks (nvidia-smi nvlink -s)", index), ours, have && ours > 0,
		float64(links), links > 0, 0, 0)
	ours, have = m[id("rdma_gpu_nvlinks_up")]
	c.compare(fmt.Sprintf("%d rdma_gpu_nvlinks_up (nvidia-smi nvlink -s)", index), ours, have,
		float64(up), links > 0, 0, 0)
	theirs := nvlinkErrors(t, g["uuid"])
	for kind, words := range linkErrors {
		ours, have := m[id("rdma_gpu_nvlink_errors_total", is("error", kind))]
		v, there := theirs[words]
		c.compare(fmt.Sprintf("%d rdma_gpu_nvlink_errors_total %s (nvidia-smi nvlink -e)", index, kind), ours,
			have, v, there, 0, 0)
	}
	state := "absent"
	for _, s := range []string{"completed", "degraded", "pending"} {
		if m[id("rdma_gpu_fabric_state", is("state", s))] == 1 {
			state = s
		}
	}
	verdict := "equal"
	if known := map[string]string{
		"Completed / Success": "completed", "Not Started / N/A": "pending", "In Progress / N/A": "pending",
		"N/A / N/A": "absent",
	}; known[g["fabric/state"]+" / "+g["fabric/status"]] != state {
		verdict = "differs"
	}
	c.row(fmt.Sprintf("%d rdma_gpu_fabric_state", index), state, g["fabric/state"]+" / "+g["fabric/status"], verdict)
}

// identity compares a label without printing what identifies the machine.
func (c *table) identity(id string, index int, label, want string) {
	verdict := "equal"
	if !strings.Contains(id, fmt.Sprintf("%s=%q", label, want)) {
		verdict = "differs"
		c.t.Errorf("%s: %s is to be %q", id, label, want)
	}
	c.row(fmt.Sprintf("%d rdma_gpu_info %s", index, label), "", "", verdict)
}

// TestReleaseLetsGo: no descriptor of the driver is open while the GPUs are released, and metrics return afterwards.
func TestReleaseLetsGo(t *testing.T) {
	e := serve(t, "--collector.gpu.interval=1s")
	info := func(m metrics) bool { return len(m.family("rdma_gpu_info")) > 0 }
	e.wait(t, "rdma_gpu_info", info)
	before := e.held(t)
	if len(before) == 0 {
		t.Fatal("no device of the driver is open: the test shows nothing")
	}
	for range 3 {
		start := time.Now()
		if code, text := e.command(t, "gpu", "release", "--for=10m"); code != 0 {
			t.Fatalf("exit code %d: %s", code, text)
		}
		t.Logf("released after %v; %d devices were open", time.Since(start), len(before))
		for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if held := e.held(t); len(held) > 0 {
				t.Fatalf("released, and still open: %v", held)
			}
		}
		m := e.scrape(t)
		if info(m) || len(m.family("rdma_gpu_released_seconds")) != 1 {
			t.Errorf("released: %v %v", m.family("rdma_gpu_info"), m.family("rdma_gpu_released_seconds"))
		}
		if code, text := e.command(t, "gpu", "resume"); code != 0 {
			t.Fatalf("exit code %d: %s", code, text)
		}
		e.wait(t, "rdma_gpu_info after the release", info)
		if len(m.family("rdma_gpu_xid_events_total")) > 0 {
			e.wait(t, "XID counts after the release",
				func(m metrics) bool { return len(m.family("rdma_gpu_xid_events_total")) > 0 })
		}
	}
	for _, bad := range []string{"0s", "soon", "-1s", "48h"} {
		if code, text := e.command(t, "gpu", "release", "--for="+bad); code != 2 {
			t.Errorf("--for=%s: exit code %d: %s", bad, code, text)
		}
	}
	if code, text := e.ask(t, "POST", "/-/gpu/release?for=10m"); code != http.StatusForbidden {
		t.Errorf("over HTTP: status %d: %s", code, text)
	}
}

// TestXIDErrorsAreListenedFor: XID errors cannot be injected safely; the test checks that the events are registered.
func TestXIDErrorsAreListenedFor(t *testing.T) {
	e := serve(t, "--collector.gpu.interval=1s")
	e.wait(t, "rdma_gpu_xid_events_total of all GPUs", func(m metrics) bool {
		return len(m.family("rdma_gpu_info")) > 0 &&
			len(m.family("rdma_gpu_xid_events_total")) == len(m.family("rdma_gpu_info"))
	})
}

// TestCaptureIsPlayed: an anonymised capture has the same GPUs.
func TestCaptureIsPlayed(t *testing.T) {
	gpus, _, _ := smi(t)
	archive := filepath.Join(t.TempDir(), "gpu.txtar")
	run := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), program(t), args...)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	run("capture", "-o", archive, "--anonymise", "--for=30s", "--every=15s", "--state.dir="+t.TempDir())
	b, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	out(t, "h200-vm.txtar", b)
	for i, g := range gpus {
		for _, private := range []string{g["uuid"], strings.TrimPrefix(g["uuid"], "GPU-"), g["serial"]} {
			if len(private) > 4 && bytes.Contains(b, []byte(private)) {
				t.Errorf("the capture has the UUID or the serial number of GPU %d", i)
			}
		}
	}
	e := serve(t, "--replay="+archive, "--collector.gpu.mode=full")
	m := e.scrape(t)
	if have := len(m.family("rdma_gpu_info")); have != len(gpus) {
		t.Errorf("the replay has %d GPUs, the machine %d", have, len(gpus))
	}
	for i, g := range gpus {
		want, _, _ := g.first("fb_memory_usage/total")
		have := 0.0
		for _, s := range m.family("rdma_gpu_memory_total_bytes") {
			if strings.Contains(s, fmt.Sprintf("gpu=%q", fmt.Sprint(i))) {
				have = m[s]
			}
		}
		if math.Abs(have-want) > 1<<20 {
			t.Errorf("memory of GPU %d: %v in the replay, %v on the machine", i, have, want)
		}
	}
}
