package coverage_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/exposition"
)

var (
	device = &exposition.Desc{
		Name: "rdma_device_info", Scope: exposition.ScopeDevice, Labels: []string{"device"},
		Of: "rdma_device_info", Asks: "identity",
	}
	port     = &exposition.Desc{Name: "rdma_port_info", Scope: exposition.ScopePort, Labels: []string{"device", "layer"}}
	counter  = &exposition.Desc{Name: "counter", Scope: exposition.ScopePort, Labels: []string{"device"}, Asks: "pma"}
	ethernet = &exposition.Desc{
		Name: "ethernet", Scope: exposition.ScopePort, Labels: []string{"device", "level"},
		Of: `rdma_port_info{layer="Ethernet"}`,
	}
	module = &exposition.Desc{
		Name: "module", Scope: exposition.ScopePort, Labels: []string{"device"}, Of: `rdma_port_info{layer="Ethernet"}`,
		Never: `rdma_port_info{layer="InfiniBand"}`, Asks: "eeprom",
	}
	light    = &exposition.Desc{Name: "light", Scope: exposition.ScopePort, Labels: []string{"device"}, Of: "module"}
	full     = &exposition.Desc{Name: "full", Scope: exposition.ScopePort, Labels: []string{"device"}, Beside: "counter"}
	settings = &exposition.Desc{
		Name: "settings", Scope: exposition.ScopeDevice, Labels: []string{"device", "size", "group"}, Asks: "config",
		AskedLabels: []string{"size"},
	}
	gpu = &exposition.Desc{
		Name: "rdma_gpu_info", Scope: exposition.ScopeGPU, Labels: []string{"gpu"}, Of: "rdma_gpu_info", Asks: "nvml",
	}
	links = &exposition.Desc{Name: "links", Scope: exposition.ScopeGPU, Labels: []string{"gpu"}}
	clock = &exposition.Desc{Name: "clock", Scope: exposition.ScopeHost}
)

// detector has one alert per metric, of the same name.
func detector(more ...coverage.Alert) *coverage.Detector {
	var metrics []coverage.Metric
	alerts := slices.Clone(more)
	for _, d := range []*exposition.Desc{
		device, port, counter, ethernet, module, light, full, settings, gpu, links, clock,
	} {
		metrics = append(metrics, coverage.Metric{Desc: d, Collectors: []string{"c"}})
		if len(more) == 0 {
			alerts = append(alerts, coverage.Alert{Name: d.Name, Need: needOf(d.Name)})
		}
	}
	metrics = append(metrics, coverage.Metric{Desc: counter, Collectors: []string{"second"}})
	return coverage.New(alerts, metrics)
}

// host is the result of a round: samples as "metric value value …".
type host struct {
	samples    []string
	collectors map[string]coverage.Reason
	sources    map[string]coverage.Reason
	leftOut    bool
}

func (h host) round() coverage.Round {
	sink := exposition.NewSink([]*exposition.Desc{
		device, port, counter, ethernet, module, light, full, settings, gpu, links, clock,
	})
	sink.Begin()
	for _, s := range h.samples {
		f := strings.Split(s, " ")
		for _, d := range []*exposition.Desc{
			device, port, counter, ethernet, module, light, full, settings, gpu, links, clock,
		} {
			if d.Name == f[0] {
				sink.Emit(d, 1, f[1:]...)
			}
		}
	}
	return coverage.Round{
		Families:  exposition.Merge(sink.End()),
		LeftOut:   h.leftOut,
		Collector: func(name string) coverage.Reason { return h.collectors[name] },
		Source:    func(name string) coverage.Reason { return h.sources[name] },
	}
}

// said formats a report: gaps as "alert:reason", with + for a part of the host; idle alerts as "-alert".
func said(r coverage.Report) string {
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
	roce := []string{
		"rdma_device_info d", "rdma_port_info d Ethernet", "counter d", "settings d 512 DMA", "clock", "ethernet d high",
		"module d", "light d",
	}
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
			host{samples: roce[:6], sources: map[string]coverage.Reason{"eeprom": coverage.Permission}},
			"-links -rdma_gpu_info light:permission module:permission",
		},
		"modules not read yet": {
			host{samples: roce[:6], sources: map[string]coverage.Reason{"eeprom": coverage.NotReadYet}},
			"-links -rdma_gpu_info light:not_read_yet module:not_read_yet",
		},
		"counters fail": {
			host{samples: []string{"rdma_device_info d", "rdma_port_info d InfiniBand", "settings d 512 DMA", "clock"}, sources: map[string]coverage.Reason{"pma": coverage.Failed}},
			"-ethernet" + noGPU + " counter:failed full:not_supported light:not_supported module:not_supported",
		},
		"GPUs denied": {host{samples: roce, sources: map[string]coverage.Reason{"nvml": coverage.Permission}}, "links:permission rdma_gpu_info:permission"},
		"the collector is off": {
			host{collectors: map[string]coverage.Reason{"c": coverage.CollectorDisabled}},
			"clock:collector_disabled counter:collector_disabled ethernet:collector_disabled full:collector_disabled light:collector_disabled links:collector_disabled module:collector_disabled rdma_device_info:collector_disabled rdma_gpu_info:collector_disabled rdma_port_info:collector_disabled settings:collector_disabled",
		},
		"devices are left out": {
			host{samples: append(slices.Clone(roce), "rdma_gpu_info 0", "links 0"), leftOut: true},
			"counter:limit+ ethernet:limit+ full:limit+ light:limit+ module:limit+ rdma_device_info:limit+ rdma_port_info:limit+ settings:limit+",
		},
		"devices are left out, another is not read": {
			host{samples: roce[:6], leftOut: true, sources: map[string]coverage.Reason{"eeprom": coverage.Permission}},
			"-links -rdma_gpu_info counter:limit+ ethernet:limit+ full:limit+ light:permission module:permission rdma_device_info:limit+ rdma_port_info:limit+ settings:limit+",
		},
		"one of two collectors is off": {host{samples: roce, collectors: map[string]coverage.Reason{"second": coverage.CollectorDisabled}}, "-links -rdma_gpu_info"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := said(detector().Evaluate(tc.host.round())); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestNeedsMeet: alerts with several requirements, and labels.
func TestNeedsMeet(t *testing.T) {
	h := host{
		samples: []string{"rdma_device_info d", "rdma_port_info d Ethernet", "counter d", "settings d  DMA", "settings e  "},
		sources: map[string]coverage.Reason{"config": coverage.Permission, "eeprom": coverage.Permission},
	}
	for want, need := range map[string]coverage.Need{
		"":                  coverage.All(needOf("counter"), needOf("rdma_port_info")),
		"x:not_supported":   coverage.All(needOf("counter"), needOf("ethernet")),
		"-x":                coverage.All(needOf("ethernet"), needOf("links")),      // no GPU, whatever else is missing
		" ":                 coverage.Any(needOf("links"), needOf("counter")),       // one suffices
		"-x ":               coverage.Any(needOf("links"), needOf("rdma_gpu_info")), // neither applies
		"x:permission":      coverage.Any(needOf("module"), needOf("ethernet")),     // a permission would be sufficient
		"x:not_supported ":  coverage.All(needOf("module"), needOf("ethernet")),     // a permission alone would not be sufficient
		"x:permission ":     needOf("settings", "size"),                             // present, without the required label
		"  ":                needOf("settings", "group"),                            // the label needs no permission
		"   ":               needOf("settings", "size-that-is-no-label-at-all"),     // no label, and no permission for it
		"x:not_supported  ": needOf("unknown"),
	} {
		t.Run(need.String(), func(t *testing.T) {
			r := detector(coverage.Alert{Name: "x", Need: need}).Evaluate(h.round())
			if got := said(r); got != strings.TrimSpace(want) {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
	r := detector(coverage.Alert{Name: "x", Need: coverage.All(needOf("module"), needOf("light"))}).Evaluate(h.round())
	if g := r.Gaps[0]; g.Source != "eeprom" || !slices.Equal(g.Metrics, []string{"module"}) {
		t.Errorf("%+v", g)
	}
	h.collectors = map[string]coverage.Reason{"c": coverage.Failed}
	r = detector(coverage.Alert{Name: "x", Need: needOf("ethernet")}).Evaluate(h.round())
	if g := r.Gaps[0]; g.Reason != coverage.Failed || g.Collector != "c" {
		t.Errorf("%+v", g)
	}
}

func BenchmarkJudge(b *testing.B) {
	r, d := host{samples: []string{"rdma_device_info d", "rdma_port_info d Ethernet", "counter d"}}.round(), detector()
	for b.Loop() {
		d.Evaluate(r)
	}
}

// TestUnknownCounter: for a saturated counter, alerts on its rate are not evaluated on that part of the host.
func TestUnknownCounter(t *testing.T) {
	desc := &exposition.Desc{Name: "full", Scope: exposition.ScopePort, Labels: []string{"port", "counter"}}
	waits := &exposition.Desc{
		Name: "waits", Scope: exposition.ScopePort, Labels: []string{"port"}, Of: "waits",
		Unknown: map[string][]string{"": {`full{counter="wait"}`}},
	}
	descs := []*exposition.Desc{desc, waits}
	d := coverage.New([]coverage.Alert{{Name: "backpressure", Need: coverage.Need{Metric: "waits"}}},
		[]coverage.Metric{{Desc: desc}, {Desc: waits}})
	for _, c := range []struct {
		name    string
		samples []string
		want    string
	}{
		{"all count", []string{"waits 1", "waits 2"}, "[] idle []"},
		{"another one is full", []string{"waits 1", "full 1 errors"}, "[] idle []"},
		{"one of two", []string{"waits 1", "waits 2", "full 2 wait"}, `[{backpressure  unknown [full{counter="wait"}] true  }] idle []`},
		{"both", []string{"waits 1", "waits 2", "full 1 wait", "full 2 wait"}, `[{backpressure  unknown [full{counter="wait"}] false  }] idle []`},
		{"the only one", []string{"waits 1", "full 1 errors", "full 1 wait"}, `[{backpressure  unknown [full{counter="wait"}] false  }] idle []`},
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
			none := func(string) coverage.Reason { return "" }
			r := d.Evaluate(coverage.Round{Families: exposition.Merge(sink.End()), Collector: none, Source: none})
			if got := fmt.Sprintf("%v idle %v", r.Gaps, r.Idle); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// TestUnknownFacts: for a fact that could not be read, exactly the alerts that require that state are not evaluated.
func TestUnknownFacts(t *testing.T) {
	info := &exposition.Desc{Name: "way_info", Scope: exposition.ScopeHost, Labels: []string{"gpu", "reason"}}
	way := &exposition.Desc{
		Name: "way", Scope: exposition.ScopeHost, Labels: []string{"gpu", "state"}, Of: "way",
		Unknown: map[string][]string{
			"staging": {`way_info{reason="unseen"}`, `way_info{reason="cut"}`}, "": {`way_info{reason="gone"}`},
		},
	}
	descs := []*exposition.Desc{info, way}
	d := coverage.New([]coverage.Alert{
		{Name: "staging", Need: coverage.Need{Metric: "way", Labels: []string{"state"}, State: "staging"}},
		{Name: "tcp", Need: coverage.Need{Metric: "way", Labels: []string{"state"}, State: "tcp"}},
	}, []coverage.Metric{{Desc: info}, {Desc: way}})
	for _, c := range []struct {
		name    string
		samples []string
		want    string
	}{
		{"no job", nil, "[] idle [staging tcp]"},
		{"known", []string{"way 0 gdr", "way_info 0 registered"}, "[] idle []"},
		{"unseen", []string{"way 0 unknown", "way_info 0 unseen"}, `[{staging  unknown [way_info{reason="unseen"}] false  }] idle []`},
		{"of one GPU", []string{"way 0 unknown", "way_info 0 cut", "way 1 gdr"}, `[{staging  unknown [way_info{reason="cut"}] true  }] idle []`},
		{"of any state", []string{"way 0 unknown", "way_info 0 gone"}, `[{staging  unknown [way_info{reason="gone"}] false  } {tcp  unknown [way_info{reason="gone"}] false  }] idle []`},
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
			none := func(string) coverage.Reason { return "" }
			r := d.Evaluate(coverage.Round{Families: exposition.Merge(sink.End()), Collector: none, Source: none})
			if got := fmt.Sprintf("%v idle %v", r.Gaps, r.Idle); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// TestUnknownReasons: a reason that could not be determined concerns the alerts that require one of the reasons in
// question.
func TestUnknownReasons(t *testing.T) {
	info := &exposition.Desc{
		Name: "way_info", Scope: exposition.ScopeHost, Labels: []string{"gpu", "reason"}, Of: "way_info",
		Unknown: map[string][]string{"old": {`way_info{reason="unread"}`}},
	}
	need := func(given string) coverage.Need {
		return coverage.Need{Metric: "way_info", Labels: []string{"reason"}, State: given}
	}
	d := coverage.New([]coverage.Alert{
		{Name: "none", Need: need("absent|old")}, {Name: "far", Need: need("far")}, {Name: "any", Need: need("")},
	}, []coverage.Metric{{Desc: info}})
	for reason, want := range map[string]string{
		"unread": `[{none  unknown [way_info{reason="unread"}] false  }]`, "direct": "[]",
	} {
		t.Run(reason, func(t *testing.T) {
			sink := exposition.NewSink([]*exposition.Desc{info})
			sink.Begin()
			sink.Emit(info, 1, "0", reason)
			none := func(string) coverage.Reason { return "" }
			r := d.Evaluate(coverage.Round{Families: exposition.Merge(sink.End()), Collector: none, Source: none})
			if got := fmt.Sprint(r.Gaps); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}
