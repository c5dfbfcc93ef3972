package incidents

import (
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// matching returns the samples of a metric with labels.
func (t *scrapeTarget) matching(name string, pairs ...string) (found []*sample) {
	for _, s := range t.samples {
		if s.labels.Get(model.MetricNameLabel) != name {
			continue
		}
		ok := true
		for i := 0; i < len(pairs); i += 2 {
			ok = ok && s.labels.Get(pairs[i]) == pairs[i+1]
		}
		if ok {
			found = append(found, s)
		}
	}
	return found
}

// change has samples of a metric return something else, given what they returned before.
func (t *scrapeTarget) change(to func(was float64, now time.Duration) float64, name string, pairs ...string) {
	for _, s := range t.matching(name, pairs...) {
		was := s.value
		if s.healthy == nil {
			s.healthy = was
		}
		s.value = func(now time.Duration) float64 { return to(was(now), now) }
	}
}

// set gives samples of a metric a value; NaN takes them away.
func (t *scrapeTarget) set(v float64, name string, pairs ...string) {
	t.change(func(was float64, _ time.Duration) float64 { return only(!math.IsNaN(was), v) }, name, pairs...)
}

// grow adds to counters from now on, each second.
func (t *scrapeTarget) grow(from time.Duration, perSecond float64, name string, pairs ...string) {
	t.change(func(was float64, now time.Duration) float64 {
		return was + perSecond*max(0, (now-from).Seconds())
	}, name, pairs...)
}

// relabel gives the series of a metric another value of a label, where they have it.
func (t *scrapeTarget) relabel(label string, to func(was string) string, name string, pairs ...string) {
	for _, s := range t.matching(name, pairs...) {
		l, was := s.labels, s.value
		if l.Get(label) == "" {
			continue
		}
		if s.healthy == nil {
			s.healthy = was
		}
		s.value = func(time.Duration) float64 { return absent }
		t.add(&sample{labels: labels.NewBuilder(l).Set(label, to(l.Get(label))).Labels(), value: was})
	}
}

// add adds a series until heal; one that has its labels is replaced.
func (t *scrapeTarget) add(s *sample) {
	s.healthy = func(time.Duration) float64 { return absent }
	for _, other := range t.samples {
		if labels.Equal(other.labels, s.labels) {
			other.value = s.value
			return
		}
	}
	t.samples = append(t.samples, s)
}

// heal ends all changes.
func (t *scrapeTarget) heal() {
	for _, s := range t.samples {
		if s.healthy != nil {
			s.value = s.healthy
		}
	}
}

// setting changes settings of a host in what rules compare, by a pattern of their names. parts is how many objects of
// it change; 0: all.
func (h *fleetHost) setting(pattern, value string, parts float64) {
	const metric = "rdma_setup_objects"
	is := regexp.MustCompile("^(" + pattern + ")$")
	for _, s := range h.matching(metric) {
		if !is.MatchString(s.labels.Get("setting")) {
			continue
		}
		n := s.value(h.booted)
		moved := n
		if parts > 0 {
			moved = min(n, parts)
		}
		h.change(func(was float64, _ time.Duration) float64 { return only(was > moved, was-moved) },
			metric, "setting", s.labels.Get("setting"), "role", s.labels.Get("role"), "value", s.labels.Get("value"))
		h.add(&sample{
			labels: labels.NewBuilder(s.labels).Set("value", value).Labels(),
			value:  func(time.Duration) float64 { return moved },
		})
	}
}

// without takes PFC away from the ports of a host.
func withoutPFC(h *fleetHost) {
	h.set(0, "rdma_port_pfc_enabled")
	h.set(0, "rdma_port_pfc_enabled_priorities")
	h.setting("pfc.*", "none", 0)
}

// upgraded gives a host another firmware.
func upgraded(version string) func(*fleetHost) {
	return func(h *fleetHost) {
		h.relabel("firmware_version", func(string) string { return version }, "rdma_device_info")
		h.relabel("firmware", func(was string) string {
			board, _, _ := strings.Cut(was, " ")
			return board + " " + version
		}, "rdma_place_info")
		h.setting("firmware", version, 0)
	}
}

// smallMTU gives the ports of a host the MTU of a new installation.
func smallMTU(h *fleetHost) {
	h.set(1500, "rdma_port_mtu_bytes")
	h.set(1024, "rdma_port_active_mtu_bytes")
	h.setting(".*mtu", "1024", 0)
}

// withoutGPUDirect takes the mechanism of GPUDirect away from a host.
func withoutGPUDirect(h *fleetHost) {
	h.set(0, "rdma_gdr_mechanism_available")
	h.set(0, "rdma_gdr_gpu_direct")
	h.relabel("mechanism", func(string) string { return "none" }, "rdma_gdr_gpu_info")
	h.change(func(float64, time.Duration) float64 { return 1 }, "rdma_gdr_gpu_obstacle_info")
	h.setting("gpu_direct_mechanism", "none", 0)
}
