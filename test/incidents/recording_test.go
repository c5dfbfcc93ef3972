package incidents

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"rdma_exporter/test/machines"
)

// recording is what the exporter serves of a recorded machine: the series of a host of a fleet beyond those of the
// tables.
type recording struct {
	ports   []recordedPort // compute, by PCI address
	samples []recordedSample
}

type recordedPort struct {
	device, netdev, pciAddress, pcieSwitch, nodeGUID string
	place                                            labels.Labels // of rdma_place_info
}

type recordedSample struct {
	labels labels.Labels
	value  float64
}

// recordings are those that TestMain or a test has read.
var recordings sync.Map

// record returns a recording that was read.
func record(machine string) *recording {
	r, _ := recordings.Load(machine)
	return r.(*recording)
}

// facts are metrics of the tables that a recording has in place of them: what does not change while a host runs.
var facts = []string{
	"rdma_device_info", "rdma_device_node_type_id", "rdma_port_info", "rdma_port_expected_rate_info",
	"rdma_port_expected_width_lanes", "rdma_scrape_collector_success",
}

// readRecordings reads recordings of machines: metrics that a rule reads.
func readRecordings(t *testing.T, specs ...spec) {
	t.Helper()
	read := readByRules(t)
	for _, s := range specs {
		for _, m := range s.machines {
			if _, ok := recordings.Load(m); !ok {
				recordings.Store(m, newRecording(t, machines.MetricsOf(t, machines.Fixture(m)), read))
			}
		}
	}
}

// readByRules returns the names of the metrics that the rules read.
func readByRules(t *testing.T) map[string]bool {
	t.Helper()
	read := map[string]bool{}
	allRules(t).Each(t, func(_ *rulefmt.Rule, expr parser.Expr) bool {
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			if s, ok := n.(*parser.VectorSelector); ok {
				read[s.Name] = true
			}
			return nil
		})
		return true
	})
	return read
}

func newRecording(t *testing.T, text string, read map[string]bool) *recording {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r := &recording{}
	for name, family := range families {
		for _, m := range family.Metric {
			b := labels.NewScratchBuilder(len(m.Label) + 1)
			b.Add(model.MetricNameLabel, name)
			for _, l := range m.Label {
				b.Add(l.GetName(), l.GetValue())
			}
			b.Sort()
			r.samples = append(r.samples, recordedSample{
				b.Labels(), m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue(),
			})
		}
	}
	slices.SortFunc(r.samples, func(a, b recordedSample) int { return labels.Compare(a.labels, b.labels) })
	of := func(name, device string, more ...string) labels.Labels {
		i := slices.IndexFunc(r.samples, func(s recordedSample) bool {
			return s.labels.Get(model.MetricNameLabel) == name && s.labels.Get("device") == device &&
				(len(more) == 0 || s.labels.Get(more[0]) == more[1])
		})
		if i < 0 {
			t.Fatalf("no %s of %s", name, device)
		}
		return r.samples[i].labels
	}
	for _, s := range r.samples {
		if s.labels.Get(model.MetricNameLabel) != "rdma_port_info" || s.labels.Get("role") != "compute" {
			continue
		}
		d := s.labels.Get("device")
		info := of("rdma_device_info", d)
		at := of("rdma_place_info", d, "port", s.labels.Get("port"))
		r.ports = append(r.ports, recordedPort{
			d, s.labels.Get("netdev"), info.Get("pci_address"), at.Get("pcie_switch"), info.Get("node_guid"), at,
		})
	}
	slices.SortFunc(r.ports, func(a, b recordedPort) int { return strings.Compare(a.pciAddress, b.pciAddress) })
	r.samples = slices.DeleteFunc(r.samples, func(s recordedSample) bool {
		return !read[s.labels.Get(model.MetricNameLabel)]
	})
	return r
}

// bindRecording makes the samples that the tables above do not have.
func (h *fleetHost) bindRecording(i identity) {
	h.samples = append(h.samples, bind(i, recordedHostSeries, h)...)
	for _, p := range h.ports {
		h.samples = append(h.samples, bind(i, recordedPortSeries, p)...)
		if h.cluster.layer == ethernet {
			h.samples = append(h.samples, bind(i, recordedRoCESeries, p)...)
		}
	}
	for _, g := range h.gpus {
		g.host = h
		h.samples = append(h.samples, bind(i, recordedGPUSeries, g)...)
	}
	tables := map[string]bool{}
	h.samples = slices.DeleteFunc(h.samples, func(s *sample) bool {
		name := s.labels.Get(model.MetricNameLabel)
		// Of Ethernet, errors of the link are counted for the netdev.
		is := slices.Contains(facts, name) || name == "rdma_port_symbol_errors_total" && h.cluster.layer == ethernet
		tables[name] = tables[name] || !is
		return is
	})
	for _, r := range h.recording.samples {
		name := r.labels.Get(model.MetricNameLabel)
		device, gpu := r.labels.Get("device"), r.labels.Get("gpu")
		n := slices.IndexFunc(h.recording.ports, func(p recordedPort) bool { return p.device == device })
		value := func(time.Duration) float64 { return r.value }
		b := labels.NewBuilder(r.labels)
		switch {
		case tables[name] && (n >= 0 || device == ""), n >= len(h.ports):
			continue
		case n >= 0:
			p := h.ports[n]
			value = always(r.value).of(p)
			guid := h.recording.ports[n].nodeGUID
			for _, l := range []string{"node_guid", "wire"} {
				b.Set(l, strings.Replace(r.labels.Get(l), guid, p.guid, 1))
			}
			if old := r.labels.Get("serial_number"); old != "" {
				b.Set("serial_number", fmt.Sprintf("%s-%d", old, h.index))
			}
		case gpu != "":
			n, err := strconv.Atoi(gpu)
			if err != nil || n >= len(h.gpus) {
				continue
			}
			g := h.gpus[n]
			value = answer(r.value).of(g)
			if r.labels.Get("UUID") != "" {
				b.Set("UUID", g.uuid)
			}
		}
		h.samples = append(h.samples, i.of(b, value))
		if name == "rdma_transceiver_receive_power_dbm" && n >= 0 { // what it was in the first hours
			b = labels.NewBuilder(b.Labels()).Set(model.MetricNameLabel, "rdma_transceiver_receive_power_baseline_dbm")
			h.samples = append(h.samples, i.of(b, value))
		}
	}
}

// works reports whether a job runs on the host.
func (h *fleetHost) works() bool {
	for _, j := range h.cluster.jobs {
		if j.number == h.job {
			return j.running && slices.Contains(j.hosts, h)
		}
	}
	return false
}

// jobLabels are those of the job of a host. It keeps its number when it starts again.
func (h *fleetHost) jobLabels() []string {
	return []string{"scheduler", "slurm", "job_id", strconv.Itoa(4000 + h.job), "namespace", "", "pod", ""}
}

var recordedHostSeries = []series[*fleetHost]{
	{"rdma_host_maintenance_end_timestamp_seconds", with[*fleetHost](), func(h *fleetHost, _ time.Duration) float64 {
		return only(h.maintenance, float64(began.Add(h.announced).Unix()))
	}},
}

var recordedPortSeries = []series[*port]{
	{"rdma_port_job_info", func(p *port) []string { return append(ofPort()(p), p.host.jobLabels()...) }, func(p *port, _ time.Duration) float64 {
		return only(p.registered() && p.host.works(), 1)
	}},
	{"rdma_port_jobs", ofPort(), func(p *port, _ time.Duration) float64 {
		return only(p.registered() && p.host.works(), 1)
	}},
	{"rdma_port_fec_corrected_bit_errors_total", ofNetdev(), hardware(correctedBits)},
	{"rdma_port_fec_ber_baseline", ofNetdev("end", "own"), always(goodBER)},
	{"rdma_port_receive_packets_total", ofPort(), hardware(receivePackets)},
}

var recordedRoCESeries = []series[*port]{
	{"rdma_port_cnp_handled_total", ofPort(), hardware(congestionNotifications)},
	{"rdma_port_cnp_sent_total", ofPort(), hardware(congestionNotifications)},
	{"rdma_port_ecn_marked_packets_total", ofPort(), hardware(congestionNotifications)},
	{"rdma_port_adaptive_retransmissions_total", ofPort(), hardware(adaptiveRetransmissions)},
	{"rdma_port_pcs_symbol_errors_total", ofNetdev(), hardware(symbolErrors)},
	{"rdma_port_priority_packets_total", ofNetdev("direction", "receive", "priority", "3"), hardware(receivePackets)},
}

var recordedGPUSeries = []series[*fleetGPU]{
	{"rdma_gpu_job_info", func(g *fleetGPU) []string { return append(ofGPU()(g), g.host.jobLabels()...) }, func(g *fleetGPU, _ time.Duration) float64 {
		return only(!g.lost && g.host.works(), 1)
	}},
	{"rdma_gdr_gpu_obstacle_info", ofGPU("step", "1", "kind", "mechanism", "reason", "peermem_not_loaded", "after", "direct"), func(*fleetGPU, time.Duration) float64 {
		return absent
	}},
	{"rdma_gpu_utilization_ratio", ofGPU(), func(g *fleetGPU, now time.Duration) float64 {
		return only(!g.lost, g.host.demand(now))
	}},
	{"rdma_gpu_power_watts", ofGPU(), func(g *fleetGPU, now time.Duration) float64 {
		return only(!g.lost, 110+550*g.host.demand(now))
	}},
}

// demand is what the job of a host asks of its GPUs.
func (h *fleetHost) demand(now time.Duration) float64 {
	switch {
	case !h.works():
		return 0
	case h.cluster.course == nil:
		return 1
	}
	return h.cluster.course(h.job, now)
}
