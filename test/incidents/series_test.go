package incidents

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"

	"rdma_exporter/collector"
	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/rounds"
)

// absent is the value of a sample that an exporter leaves out.
var absent = math.NaN()

// series is a metric of a kind of object: name, labels and values in pairs, value.
type series[T any] struct {
	name   string
	labels func(T) []string
	value  func(T, time.Duration) float64
}

// sample is a series of one object.
type sample struct {
	labels labels.Labels
	value  func(time.Duration) float64
	ref    storage.SeriesRef
	there  bool // in the last scrape
	// healthy is what value was before a change; nil: there was none.
	healthy func(time.Duration) float64
}

// scrapeTarget is what a Prometheus keeps of an exporter: whether it answers, and its samples.
type scrapeTarget struct {
	down    bool
	closed  bool // its exporter does not run
	up      *sample
	samples []*sample
}

// answers reports whether a scrape gets samples.
func (t *scrapeTarget) answers() bool { return !t.down && !t.closed }

// scrape appends what the samples are at a time, with staleness markers for those that are gone.
func (t *scrapeTarget) scrape(app storage.Appender, at int64, now time.Duration) error {
	if err := t.up.append(app, at, where(t.answers())); err != nil {
		return err
	}
	for _, s := range t.samples {
		v := absent
		if t.answers() {
			v = s.value(now)
		}
		if err := s.append(app, at, v); err != nil {
			return err
		}
	}
	return nil
}

func (s *sample) append(app storage.Appender, at int64, v float64) error {
	there := !math.IsNaN(v)
	if !there {
		if !s.there {
			return nil
		}
		v = math.Float64frombits(value.StaleNaN)
	}
	ref, err := app.Append(s.ref, s.labels, at, v)
	if err != nil {
		return fmt.Errorf("append %s: %w", s.labels, err)
	}
	s.ref, s.there = ref, there
	return nil
}

// identity is the labels of a target.
type identity struct{ cluster, instance, job string }

func (i identity) sample(name string, pairs []string, at func(time.Duration) float64) *sample {
	return i.of(labels.NewBuilder(labels.FromStrings(append([]string{model.MetricNameLabel, name}, pairs...)...)), at)
}

func (i identity) of(b *labels.Builder, at func(time.Duration) float64) *sample {
	return &sample{
		labels: b.Set("cluster", i.cluster).Set("instance", i.instance).Set("job", i.job).Labels(), value: at,
	}
}

// bind makes the samples of an object.
func bind[T any](i identity, table []series[T], object T) (samples []*sample) {
	for _, s := range table {
		samples = append(samples,
			i.sample(s.name, s.labels(object), func(now time.Duration) float64 { return s.value(object, now) }))
	}
	return samples
}

// bind makes the samples of a host, anew after each boot, whose identifier is a label. Those of an earlier boot ended
// while the host was down.
func (h *fleetHost) bind() {
	i := identity{h.cluster.cluster, h.name, "rdma_exporter"}
	h.scrapeTarget = scrapeTarget{up: i.sample("up", nil, nil), samples: bind(i, hostSeries, h)}
	for _, p := range h.ports {
		if !h.cluster.unplaced {
			h.samples = append(h.samples, bind(i, placeSeries, p)...)
		}
		if h.cluster.optics {
			h.samples = append(h.samples, bind(i, opticsSeries, p)...)
		}
		h.samples = append(h.samples, bind(i, deviceSeries, p)...)
		h.samples = append(h.samples, bind(i, portSeries, p)...)
		if h.cluster.layer == infiniBand {
			h.samples = append(h.samples, bind(i, infiniBandSeries, p)...)
			continue
		}
		h.samples = append(h.samples, bind(i, ethernetSeries, p)...)
		if h.cluster.pfc {
			h.samples = append(h.samples, bind(i, pfcSeries, p)...)
		}
	}
	for _, g := range h.gpus {
		h.samples = append(h.samples, i.sample("rdma_place_info", []string{
			"gpu", strconv.Itoa(g.index), "UUID", g.uuid, "rack", h.rack(), "name", "GPU " + strconv.Itoa(g.index),
		}, func(time.Duration) float64 { return 1 }))
		h.samples = append(h.samples, bind(i, gpuSeries, g)...)
	}
	if h.recording != nil {
		h.bindRecording(i)
	}
}

// with gives labels that all objects have alike.
func with[T any](pairs ...string) func(T) []string { return func(T) []string { return pairs } }

// where is 1 or 0.
func where(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// only is v where b, else absent.
func only(b bool, v float64) float64 {
	if b {
		return v
	}
	return absent
}

// collectors are those that the incidents concern.
var collectors = []string{"device", "infiniband", "hwcounters", "ethernet", "gpu"}

var hostSeries = append([]series[*fleetHost]{
	{"rdma_place_info", func(h *fleetHost) []string {
		return []string{"name", h.name, "rack", h.rack()}
	}, func(*fleetHost, time.Duration) float64 { return 1 }},
	{"rdma_host_uptime_seconds", func(h *fleetHost) []string { return []string{"boot_id", fmt.Sprintf("%s-%d", h.name, h.boots)} }, func(h *fleetHost, now time.Duration) float64 {
		return (now - h.booted).Seconds()
	}},
	{"rdma_stack_loaded", with[*fleetHost](), func(h *fleetHost, _ time.Duration) float64 { return where(!h.unloaded) }},
	{"rdma_stack_info", with[*fleetHost]("state", "no_device", "expected", "inventory"), func(h *fleetHost, _ time.Duration) float64 { return only(h.unloaded, 1) }},
	{"rdma_stack_settled_seconds", with[*fleetHost](), func(h *fleetHost, _ time.Duration) float64 { return only(h.unloaded, 0) }},
	{"rdma_host_maintenance", with[*fleetHost](), func(h *fleetHost, _ time.Duration) float64 { return only(h.maintenance, 1) }},
}, collectorSeries()...)

func collectorSeries() (table []series[*fleetHost]) {
	for _, c := range collectors {
		table = append(table, series[*fleetHost]{
			"rdma_scrape_collector_success", with[*fleetHost]("collector", c), func(h *fleetHost, _ time.Duration) float64 {
				ok := true
				for _, p := range h.ports {
					ok = ok && !(p.stuck && c == "hwcounters")
				}
				return where(ok)
			},
		})
	}
	return table
}

func (h *fleetHost) rack() string { return fmt.Sprintf("rack-%d", h.index/rackSize+1) }

func (p *port) device() string {
	if r := p.host.recording; r != nil {
		return r.ports[p.rail].device
	}
	return "mlx5_" + strconv.Itoa(p.rail)
}

func (p *port) netdev() string {
	if r := p.host.recording; r != nil {
		return r.ports[p.rail].netdev
	}
	if p.host.cluster.layer == ethernet {
		return fmt.Sprintf("enp%ds0np0", 24+16*p.rail)
	}
	return fmt.Sprintf("ibp%ds0", 24+16*p.rail)
}

// pciAddress returns the PCI address of the port's function. Two adapters, or four functions, are below a PCIe switch.
func (p *port) pciAddress() string {
	if r := p.host.recording; r != nil {
		return r.ports[p.rail].pciAddress
	}
	if p.host.cluster.dual {
		return fmt.Sprintf("0000:%02x:00.%d", 24+16*(p.rail/2), p.rail%2)
	}
	return fmt.Sprintf("0000:%02x:00.0", 24+16*p.rail)
}

func (p *port) pcieSwitch() string {
	if r := p.host.recording; r != nil {
		return r.ports[p.rail].pcieSwitch
	}
	return fmt.Sprintf("0000:%02x:00.0", 16*(p.rail/2))
}

// registered reports whether the kernel has the device.
func (p *port) registered() bool { return !p.missing && !p.host.unloaded }

// ofDevice gives the labels of a device, then more.
func ofDevice(pairs ...string) func(*port) []string {
	return func(p *port) []string { return append([]string{"device", p.device()}, pairs...) }
}

// place gives the labels of the place of a port, which the exporter remembers while the link is down or the device is
// gone.
func (p *port) place(number string) []string {
	leaf, subnet := "", ""
	if number != "" && !p.host.cluster.blind {
		leaf = p.leaf.name
	}
	if number != "" && p.host.cluster.layer == infiniBand {
		subnet = "fe80:0000:0000:0000"
	}
	pairs := []string{
		"device", p.device(), "port", number, "pci_address", p.pciAddress(), "card", p.pciAddress()[:10],
		"pcie_switch", p.pcieSwitch(), "rail", strconv.Itoa(p.rail), "leaf", leaf,
		"rack", p.host.rack(), "subnet", subnet, "name", p.device() + " " + leaf,
	}
	if r := p.host.recording; r != nil && number != "" { // what else is known of a port: its module, its firmware
		r.ports[p.rail].place.Range(func(l labels.Label) {
			if l.Name != model.MetricNameLabel && !slices.Contains(pairs, l.Name) {
				pairs = append(pairs, l.Name, l.Value)
			}
		})
	}
	return pairs
}

func isKnown(*port, time.Duration) float64 { return 1 }

var placeSeries = []series[*port]{
	{"rdma_place_info", func(p *port) []string { return p.place("") }, isKnown},
	{"rdma_place_info", func(p *port) []string { return p.place("1") }, isKnown},
}

var deviceSeries = []series[*port]{
	{"rdma_device_info", func(p *port) []string {
		return []string{
			"device", p.device(), "driver", "mlx5_core", "hca_type", "MT4129", "board_id", "MT_0000000838",
			"firmware_version", "28.43.2566",
			"node_guid", p.guid, "pci_address", p.pciAddress(), "numa_node", strconv.Itoa(p.rail / 4),
			"function_type", "physical",
		}
	}, func(p *port, _ time.Duration) float64 { return only(p.registered(), 1) }},
	{"rdma_device_present", func(p *port) []string { return []string{"device", p.device(), "pci_address", p.pciAddress()} }, func(p *port, _ time.Duration) float64 {
		return where(p.registered())
	}},
	{"rdma_device_missing_info", func(p *port) []string {
		return []string{
			"device", p.device(), "pci_address", p.pciAddress(), "node_guid", p.guid, "reason",
			"not_on_pci", "seen", "this_boot",
		}
	}, func(p *port, _ time.Duration) float64 { return only(p.missing, 1) }},
	{"rdma_device_missing_info", func(p *port) []string {
		return []string{
			"device", p.device(), "pci_address", p.pciAddress(), "node_guid", p.guid, "reason", "no_driver", "seen", "this_boot",
		}
	}, func(p *port, _ time.Duration) float64 { return only(p.host.unloaded && !p.missing, 1) }},
	{"rdma_device_node_type_id", ofDevice(), func(p *port, _ time.Duration) float64 { return only(p.registered(), 1) }},
	{"rdma_device_health_state", ofDevice("reporter", "fw", "state", "error"), func(p *port, _ time.Duration) float64 { return only(p.registered(), where(p.crashed)) }},
	{"rdma_device_health_state", ofDevice("reporter", "fw_fatal", "state", "error"), func(p *port, _ time.Duration) float64 { return only(p.registered(), where(p.crashed)) }},
	{"rdma_device_health_errors_total", ofDevice("reporter", "fw"), func(p *port, _ time.Duration) float64 { return only(p.registered(), p.crashes) }},
	{"rdma_device_health_errors_total", ofDevice("reporter", "fw_fatal"), func(p *port, _ time.Duration) float64 { return only(p.registered(), p.crashes) }},
	{"rdma_scrape_collector_stuck", ofDevice("collector", "hwcounters"), func(p *port, _ time.Duration) float64 { return only(p.stuck, 1) }},
}

// ofPort gives the labels of a port, then more; ofNetdev those with its netdev.
func ofPort(pairs ...string) func(*port) []string {
	return func(p *port) []string { return append([]string{"device", p.device(), "port", "1"}, pairs...) }
}

func ofNetdev(pairs ...string) func(*port) []string {
	return func(p *port) []string {
		return append([]string{"device", p.device(), "port", "1", "netdev", p.netdev()}, pairs...)
	}
}

// count returns a counter that does not come from the firmware, hardware one that does and is absent while reads of the
// device are stuck.
func count(c counter) func(*port, time.Duration) float64 {
	return func(p *port, _ time.Duration) float64 { return only(p.registered(), p.counts[c]) }
}

func hardware(c counter) func(*port, time.Duration) float64 {
	return func(p *port, _ time.Duration) float64 { return only(p.registered() && !p.stuck, p.counts[c]) }
}

// reading is a figure of an object at a time.
type reading[T any] func(T, time.Duration) float64

// of returns the figure of an object.
func (r reading[T]) of(object T) func(time.Duration) float64 {
	return func(now time.Duration) float64 { return r(object, now) }
}

// always returns a fact of a registered device.
func always(v float64) reading[*port] {
	return func(p *port, _ time.Duration) float64 { return only(p.registered(), v) }
}

// linked returns a fact of a link that is up.
func linked(v float64) func(*port, time.Duration) float64 {
	return func(p *port, _ time.Duration) float64 { return only(p.registered() && p.up, v) }
}

func (p *port) stateID(time.Duration) float64 {
	switch {
	case !p.registered():
		return absent
	case !p.up:
		return 1
	case !p.active():
		return 2
	}
	return 4
}

func (p *port) physicalStateID(time.Duration) float64 {
	switch {
	case !p.registered():
		return absent
	case p.up:
		return 5
	case p.host.cluster.layer == ethernet:
		return 3
	}
	return 2
}

// peersActive is 1 where more than half of the host's ports are ACTIVE, at least three, and this one is not.
func (p *port) peersActive(time.Duration) float64 {
	n := 0
	for _, o := range p.host.ports {
		if o.registered() && o.active() {
			n++
		}
	}
	return only(p.registered() && !p.active() && n >= 3 && 2*n > len(p.host.ports), 1)
}

var portSeries = []series[*port]{
	{"rdma_port_info", func(p *port) []string {
		return ofNetdev("link_layer", p.host.cluster.layer, "role", "compute", "role_source", "gpudirect")(p)
	}, always(1)},
	{"rdma_port_state_id", ofPort(), (*port).stateID},
	{"rdma_port_physical_state_id", ofPort(), (*port).physicalStateID},
	{"rdma_port_was_active", ofPort(), always(1)},
	{"rdma_port_peers_active", ofPort(), (*port).peersActive},
	{"rdma_port_rate_bytes_per_second", ofPort(), func(p *port, _ time.Duration) float64 {
		return only(p.registered() && p.up, p.rate*(1-p.slowed))
	}},
	{"rdma_port_width_lanes", ofPort(), linked(4)},
	{"rdma_port_expected_rate_bytes_per_second", ofPort(), func(p *port, _ time.Duration) float64 {
		return only(p.registered(), p.rate)
	}},
	{"rdma_port_expected_width_lanes", ofPort(), always(4)},
	{"rdma_port_expected_rate_info", ofPort("source", "siblings"), always(1)},
	{"rdma_port_neighbour_info", func(p *port) []string {
		source := "subnet"
		if p.host.cluster.layer == ethernet {
			source = "lldp"
		}
		return ofNetdev("system", p.leaf.name, "port_id", strconv.Itoa(p.host.index+1), "source", source)(p)
	}, func(p *port, now time.Duration) float64 { return only(!p.host.cluster.blind, linked(1)(p, now)) }},
	{"rdma_port_link_downed_total", ofPort(), hardware(linkDowned)},
	{"rdma_port_symbol_errors_total", ofPort(), hardware(symbolErrors)},
	{"rdma_port_transmit_bytes_total", ofPort(), hardware(transmitBytes)},
	{"rdma_port_receive_bytes_total", ofPort(), hardware(receiveBytes)},
	{"rdma_port_transmit_packets_total", ofPort(), hardware(transmitPackets)},
	{"rdma_port_ack_timeouts_total", ofPort(), hardware(ackTimeouts)},
	{"rdma_port_transport_retries_exceeded_total", ofPort(), hardware(retriesExceeded)},
	{"rdma_port_carrier_changes_total", ofNetdev(), count(carrierChanges)},
}

var opticsSeries = []series[*port]{
	{"rdma_transceiver_info", ofNetdev("vendor", "NVIDIA", "part_number", "MMA4Z00-NS400", "form_factor", "OSFP"), always(1)},
	{"rdma_transceiver_temperature_celsius", ofNetdev(), func(p *port, _ time.Duration) float64 { return only(p.registered(), 50+30*where(p.hot)) }},
	{"rdma_transceiver_temperature_threshold_celsius", ofNetdev("level", "high_alarm"), always(75)},
}

var infiniBandSeries = []series[*port]{
	{"rdma_port_link_transitions_total", ofPort("to", "down"), count(transitionsDown)},
	{"rdma_port_link_transitions_total", ofPort("to", "up"), count(transitionsUp)},
	{"rdma_port_sm_lid", ofPort(), func(p *port, _ time.Duration) float64 { return only(p.registered(), p.host.cluster.subnetManager) }},
	{"rdma_port_transmit_discards_total", ofPort(), hardware(zero)},
}

var ethernetSeries = []series[*port]{
	{"rdma_port_link_transitions_total", ofNetdev("to", "down"), count(transitionsDown)},
	{"rdma_port_link_transitions_total", ofNetdev("to", "up"), count(transitionsUp)},
	{"rdma_port_link_down_events_total", ofNetdev(), hardware(linkDownEvents)},
	{"rdma_port_fec_uncorrectable_blocks_total", ofNetdev(), hardware(uncorrectable)},
	{"rdma_port_admin_up", ofNetdev(), always(1)},
}

var pfcSeries = []series[*port]{
	{"rdma_port_pfc_enabled", ofNetdev("priority", "3"), always(1)},
	{"rdma_port_pfc_enabled_priorities", ofNetdev(), always(1)},
	{"rdma_port_pfc_pause_seconds_total", ofNetdev("direction", "transmit", "priority", "3"), hardware(pauseTransmit)},
	{"rdma_port_pfc_pause_seconds_total", ofNetdev("direction", "receive", "priority", "3"), hardware(pauseReceive)},
	{"rdma_port_priority_bytes_total", ofNetdev("direction", "transmit", "priority", "3"), hardware(transmitBytes)},
	{"rdma_port_priority_bytes_total", ofNetdev("direction", "receive", "priority", "3"), hardware(receiveBytes)},
	{"rdma_port_pause_storm_events_total", ofNetdev("severity", "error"), hardware(zero)},
}

// ofGPU gives the labels of a GPU, then more.
func ofGPU(pairs ...string) func(*fleetGPU) []string {
	return func(g *fleetGPU) []string {
		return append([]string{"gpu", strconv.Itoa(g.index), "UUID", g.uuid}, pairs...)
	}
}

// answer returns a figure that NVML reads from the GPU.
func answer(v float64) reading[*fleetGPU] {
	return func(g *fleetGPU, _ time.Duration) float64 { return only(!g.lost, v) }
}

var gpuSeries = []series[*fleetGPU]{
	{"rdma_gpu_info", ofGPU("model", "NVIDIA H200", "numa_node", "0"), answer(1)},
	{"rdma_gpu_lost_info", ofGPU("pci_bus_id", "0000:1b:00.0", "reason", "off_bus"), func(g *fleetGPU, _ time.Duration) float64 {
		return only(g.lost, 1)
	}},
	{"rdma_gpu_nvlinks_up", ofGPU(), answer(18)},
	{"rdma_gpu_fabric_state", ofGPU("state", "completed"), answer(1)},
	{"rdma_gpu_fabric_state", ofGPU("state", "degraded"), answer(0)},
	{"rdma_gpu_fabric_state", ofGPU("state", "pending"), answer(0)},
	{"rdma_gpu_recovery_action_id", ofGPU(), answer(0)},
	{"rdma_gpu_xid_events_total", ofGPU(), func(g *fleetGPU, _ time.Duration) float64 { return g.xids }},
	{"rdma_gpu_last_xid", ofGPU(), func(g *fleetGPU, _ time.Duration) float64 { return only(g.xids > 0, g.lastXID) }},
}

// foreign are metrics that a Prometheus adds.
var foreign = []string{"up"}

// TestSeriesAreTheExporters: a fleet has metrics and labels that the exporter declares, and each series once.
func TestSeriesAreTheExporters(t *testing.T) {
	declared := map[string][]string{}
	descs := append(slices.Clone(rounds.Descs), fabric.Descs()...)
	for _, c := range collector.All(collector.Options{}) {
		descs = append(descs, c.Descs...)
	}
	for _, d := range descs {
		declared[d.Name] = d.Labels
	}
	for _, i := range incidents {
		checkSeries(t, i.name, newFleet(i.fleet...), declared)
	}
	for _, g := range append(slices.Clone(generated), sampled) {
		g.spec.hosts = min(g.spec.hosts, 32)
		readRecordings(t, g.spec)
		f := newFleet(g.spec)
		checkSeries(t, g.name, f, declared)
		all, _ := generate(f, rand.New(rand.NewPCG(1, 1)), 1, time.Minute, regexp.MustCompile(g.classes))
		for _, x := range all {
			if x.begin != nil {
				x.begin(x)
			}
		}
		checkSeries(t, g.name+", with faults", f, declared)
	}
}

func checkSeries(t *testing.T, fleetName string, f *fleet, declared map[string][]string) {
	t.Helper()
	seen := map[string]bool{}
	if len(f.targets()) == 0 {
		t.Errorf("%s: no targets", fleetName)
	}
	for _, target := range f.targets() {
		if len(target.samples) == 0 {
			t.Errorf("%s: a target without samples", fleetName)
		}
		for _, s := range target.samples {
			if key := s.labels.String(); seen[key] {
				t.Errorf("%s: twice", key)
			} else {
				seen[key] = true
			}
			name := s.labels.Get(model.MetricNameLabel)
			names, known := declared[name]
			if known == slices.Contains(foreign, name) {
				t.Errorf("%s: declared %v, foreign %v", name, known, !known)
			}
			if !known {
				continue
			}
			s.labels.Range(func(l labels.Label) {
				if !slices.Contains([]string{model.MetricNameLabel, "cluster", "instance", "job"}, l.Name) &&
					!slices.Contains(names, l.Name) {
					t.Errorf("%s: label %s is not declared", name, l.Name)
				}
			})
		}
	}
}
