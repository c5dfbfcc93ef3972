package blind_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/blind"
	"rdma_exporter/internal/exposition"
)

var (
	device   = &exposition.Desc{Name: "rdma_device_info", Scope: exposition.ScopeDevice, Labels: []string{"device"}, Of: "rdma_device_info", Asks: "identity"}
	port     = &exposition.Desc{Name: "rdma_port_info", Scope: exposition.ScopePort, Labels: []string{"device", "layer"}}
	counter  = &exposition.Desc{Name: "counter", Scope: exposition.ScopePort, Labels: []string{"device"}, Asks: "pma"}
	ethernet = &exposition.Desc{Name: "ethernet", Scope: exposition.ScopePort, Labels: []string{"device", "level"}, Of: `rdma_port_info{layer="Ethernet"}`}
	module   = &exposition.Desc{Name: "module", Scope: exposition.ScopePort, Labels: []string{"device"}, Of: `rdma_port_info{layer="Ethernet"}`, Never: `rdma_port_info{layer="InfiniBand"}`, Asks: "eeprom"}
	light    = &exposition.Desc{Name: "light", Scope: exposition.ScopePort, Labels: []string{"device"}, Of: "module"}
	full     = &exposition.Desc{Name: "full", Scope: exposition.ScopePort, Labels: []string{"device"}, Beside: "counter"}
	settings = &exposition.Desc{Name: "settings", Scope: exposition.ScopeDevice, Labels: []string{"device", "size", "group"}, Asks: "config", AskedLabels: []string{"size"}}
	gpu      = &exposition.Desc{Name: "rdma_gpu_info", Scope: exposition.ScopeGPU, Labels: []string{"gpu"}, Of: "rdma_gpu_info", Asks: "nvml"}
	links    = &exposition.Desc{Name: "links", Scope: exposition.ScopeGPU, Labels: []string{"gpu"}}
	clock    = &exposition.Desc{Name: "clock", Scope: exposition.ScopeHost}
)

// detector knows one alert for each metric, of the same name.
func detector(more ...blind.Alert) *blind.Detector {
	var metrics []blind.Metric
	alerts := slices.Clone(more)
	for _, d := range []*exposition.Desc{device, port, counter, ethernet, module, light, full, settings, gpu, links, clock} {
		metrics = append(metrics, blind.Metric{Desc: d, Collectors: []string{"c"}})
		if len(more) == 0 {
			alerts = append(alerts, blind.Alert{Name: d.Name, Need: m(d.Name)})
		}
	}
	metrics = append(metrics, blind.Metric{Desc: counter, Collectors: []string{"second"}})
	return blind.New(alerts, metrics)
}

// host is what a round brought: samples as "metric value value …".
type host struct {
	samples    []string
	collectors map[string]blind.Reason
	sources    map[string]blind.Reason
}

func (h host) round() blind.Round {
	sink := exposition.NewSink([]*exposition.Desc{device, port, counter, ethernet, module, light, full, settings, gpu, links, clock})
	sink.Begin()
	for _, s := range h.samples {
		f := strings.Split(s, " ")
		for _, d := range []*exposition.Desc{device, port, counter, ethernet, module, light, full, settings, gpu, links, clock} {
			if d.Name == f[0] {
				sink.Emit(d, 1, f[1:]...)
			}
		}
	}
	return blind.Round{
		Families:  exposition.Merge(sink.End()),
		Collector: func(name string) blind.Reason { return h.collectors[name] },
		Source:    func(name string) blind.Reason { return h.sources[name] },
	}
}

// said is the report in words: gaps as "alert:reason", with + where it is so for a part; idle ones as "-alert".
func said(r blind.Report) string {
	var out []string
	for _, g := range r.Gaps {
		s := fmt.Sprintf("%s:%s", g.Alert, g.Reason)
		if g.Partly {
			s += "+"
		}
		out = append(out, s)
	}
	for _, name := range r.Idle {
		out = append(out, "-"+name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestJudge(t *testing.T) {
	ib := []string{"rdma_device_info d", "rdma_port_info d InfiniBand", "counter d", "settings d 512 DMA", "clock"}
	roce := []string{"rdma_device_info d", "rdma_port_info d Ethernet", "counter d", "settings d 512 DMA", "clock", "ethernet d high", "module d", "light d"}
	const noGPU = " -links -rdma_gpu_info"
	for name, tc := range map[string]struct {
		host host
		want string
	}{
		"InfiniBand": {host{samples: ib}, "-ethernet" + noGPU + " light:not_supported module:not_supported"},
		"RoCE":       {host{samples: roce}, "-links -rdma_gpu_info"},
		"both":       {host{samples: append(slices.Clone(roce), "rdma_port_info e InfiniBand")}, "-links -rdma_gpu_info module:not_supported+"},
		"no device":  {host{samples: []string{"clock"}}, "-counter -ethernet -full -light -links -module -rdma_device_info -rdma_gpu_info -rdma_port_info -settings"},
		"no clock":   {host{samples: roce[:4]}, "-links -rdma_gpu_info clock:not_supported ethernet:not_supported light:not_supported module:not_supported"},
		"GPUs":       {host{samples: append(slices.Clone(roce), "rdma_gpu_info 0")}, "links:not_supported"},
		"no cage":    {host{samples: roce[:6]}, "-links -rdma_gpu_info light:not_supported module:not_supported"},
		"modules denied": {
			host{samples: roce[:6], sources: map[string]blind.Reason{"eeprom": blind.Permission}},
			"-links -rdma_gpu_info light:permission module:permission",
		},
		"modules not read yet": {
			host{samples: roce[:6], sources: map[string]blind.Reason{"eeprom": blind.NotReadYet}},
			"-links -rdma_gpu_info light:not_read_yet module:not_read_yet",
		},
		"counters fail": {
			host{samples: []string{"rdma_device_info d", "rdma_port_info d InfiniBand", "settings d 512 DMA", "clock"}, sources: map[string]blind.Reason{"pma": blind.Failed}},
			"-ethernet" + noGPU + " counter:failed full:not_supported light:not_supported module:not_supported",
		},
		"GPUs denied": {host{samples: roce, sources: map[string]blind.Reason{"nvml": blind.Permission}}, "links:permission rdma_gpu_info:permission"},
		"the collector is off": {
			host{collectors: map[string]blind.Reason{"c": blind.CollectorDisabled}},
			"clock:collector_disabled counter:collector_disabled ethernet:collector_disabled full:collector_disabled light:collector_disabled links:collector_disabled module:collector_disabled rdma_device_info:collector_disabled rdma_gpu_info:collector_disabled rdma_port_info:collector_disabled settings:collector_disabled",
		},
		"one of two collectors is off": {host{samples: roce, collectors: map[string]blind.Reason{"second": blind.CollectorDisabled}}, "-links -rdma_gpu_info"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := said(detector().Judge(tc.host.round())); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestNeedsMeet: alerts that need several things, and labels.
func TestNeedsMeet(t *testing.T) {
	h := host{
		samples: []string{"rdma_device_info d", "rdma_port_info d Ethernet", "counter d", "settings d  DMA", "settings e  "},
		sources: map[string]blind.Reason{"config": blind.Permission, "eeprom": blind.Permission},
	}
	for want, need := range map[string]blind.Need{
		"":                  blind.All(m("counter"), m("rdma_port_info")),
		"x:not_supported":   blind.All(m("counter"), m("ethernet")),
		"-x":                blind.All(m("ethernet"), m("links")),          // no GPU, whatever else is wanting
		" ":                 blind.Any(m("links"), m("counter")),           // one suffices
		"-x ":               blind.Any(m("links"), m("rdma_gpu_info")),     // neither applies
		"x:permission":      blind.Any(m("module"), m("ethernet")),         // a permission would do
		"x:not_supported ":  blind.All(m("module"), m("ethernet")),         // a permission alone would not
		"x:permission ":     m("settings", "size"),                         // there, without what is asked for
		"  ":                m("settings", "group"),                        // the label needs no permission
		"   ":               m("settings", "size-that-is-no-label-at-all"), // no label, and no permission for it
		"x:not_supported  ": m("unknown"),
	} {
		t.Run(need.String(), func(t *testing.T) {
			r := detector(blind.Alert{Name: "x", Need: need}).Judge(h.round())
			if got := said(r); got != strings.TrimSpace(want) {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
	r := detector(blind.Alert{Name: "x", Need: blind.All(m("module"), m("light"))}).Judge(h.round())
	if g := r.Gaps[0]; g.Source != "eeprom" || !slices.Equal(g.Metrics, []string{"module"}) {
		t.Errorf("%+v", g)
	}
	h.collectors = map[string]blind.Reason{"c": blind.Failed}
	r = detector(blind.Alert{Name: "x", Need: m("ethernet")}).Judge(h.round())
	if g := r.Gaps[0]; g.Reason != blind.Failed || g.Collector != "c" {
		t.Errorf("%+v", g)
	}
}

func BenchmarkJudge(b *testing.B) {
	r, d := host{samples: []string{"rdma_device_info d", "rdma_port_info d Ethernet", "counter d"}}.round(), detector()
	for b.Loop() {
		d.Judge(r)
	}
}

// TestUnknownCounter: a counter at its end makes blind what asks for its rate, on a part of the host where others count.
func TestUnknownCounter(t *testing.T) {
	full := &exposition.Desc{Name: "full", Scope: exposition.ScopePort, Labels: []string{"port", "counter"}}
	waits := &exposition.Desc{Name: "waits", Scope: exposition.ScopePort, Labels: []string{"port"}, Of: "waits", Unknown: map[string][]string{"": {`full{counter="wait"}`}}}
	descs := []*exposition.Desc{full, waits}
	d := blind.New([]blind.Alert{{Name: "backpressure", Need: blind.Need{Metric: "waits"}}}, []blind.Metric{{Desc: full}, {Desc: waits}})
	for _, c := range []struct {
		name    string
		samples []string
		want    string
	}{
		{"all count", []string{"waits 1", "waits 2"}, "[] idle []"},
		{"another one is full", []string{"waits 1", "full 1 errors"}, "[] idle []"},
		{"one of two", []string{"waits 1", "waits 2", "full 2 wait"}, `[{backpressure unknown [full{counter="wait"}] true  }] idle []`},
		{"both", []string{"waits 1", "waits 2", "full 1 wait", "full 2 wait"}, `[{backpressure unknown [full{counter="wait"}] false  }] idle []`},
		{"the only one", []string{"waits 1", "full 1 errors", "full 1 wait"}, `[{backpressure unknown [full{counter="wait"}] false  }] idle []`},
	} {
		t.Run(c.name, func(t *testing.T) {
			sink := exposition.NewSink(descs)
			sink.Begin()
			for _, s := range c.samples {
				f := strings.Split(s, " ")
				for _, desc := range descs {
					if desc.Name == f[0] {
						sink.Emit(desc, 1, f[1:]...)
					}
				}
			}
			none := func(string) blind.Reason { return "" }
			r := d.Judge(blind.Round{Families: exposition.Merge(sink.End()), Collector: none, Source: none})
			if got := fmt.Sprintf("%v idle %v", r.Gaps, r.Idle); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// TestUnknownFacts: a sample that says that a fact could not be read makes the alerts blind that ask for that state, and no others.
func TestUnknownFacts(t *testing.T) {
	info := &exposition.Desc{Name: "way_info", Scope: exposition.ScopeHost, Labels: []string{"gpu", "reason"}}
	way := &exposition.Desc{
		Name: "way", Scope: exposition.ScopeHost, Labels: []string{"gpu", "state"}, Of: "way",
		Unknown: map[string][]string{"staging": {`way_info{reason="unseen"}`, `way_info{reason="cut"}`}, "": {`way_info{reason="gone"}`}},
	}
	descs := []*exposition.Desc{info, way}
	d := blind.New([]blind.Alert{
		{Name: "staging", Need: blind.Need{Metric: "way", Labels: []string{"state"}, State: "staging"}},
		{Name: "tcp", Need: blind.Need{Metric: "way", Labels: []string{"state"}, State: "tcp"}},
	}, []blind.Metric{{Desc: info}, {Desc: way}})
	for _, c := range []struct {
		name    string
		samples []string
		want    string
	}{
		{"no job", nil, "[] idle [staging tcp]"},
		{"known", []string{"way 0 gdr", "way_info 0 registered"}, "[] idle []"},
		{"unseen", []string{"way 0 unknown", "way_info 0 unseen"}, `[{staging unknown [way_info{reason="unseen"}] false  }] idle []`},
		{"of one GPU", []string{"way 0 unknown", "way_info 0 cut", "way 1 gdr"}, `[{staging unknown [way_info{reason="cut"}] true  }] idle []`},
		{"of any state", []string{"way 0 unknown", "way_info 0 gone"}, `[{staging unknown [way_info{reason="gone"}] false  } {tcp unknown [way_info{reason="gone"}] false  }] idle []`},
	} {
		t.Run(c.name, func(t *testing.T) {
			sink := exposition.NewSink(descs)
			sink.Begin()
			for _, s := range c.samples {
				f := strings.Split(s, " ")
				for _, desc := range descs {
					if desc.Name == f[0] {
						sink.Emit(desc, 1, f[1:]...)
					}
				}
			}
			none := func(string) blind.Reason { return "" }
			r := d.Judge(blind.Round{Families: exposition.Merge(sink.End()), Collector: none, Source: none})
			if got := fmt.Sprintf("%v idle %v", r.Gaps, r.Idle); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}
