package main

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// Colours that mean something. Blue, orange and dark red differ in brightness too, so that they can be distinguished
// without distinguishing red from green, and Grafana adapts them to its light and dark theme. Beside each stands a
// word.
const (
	good    = "blue"
	notice  = "super-light-orange"
	remark  = "transparent" // info: no action is urgent
	warning = "orange"
	bad     = "dark-red"
	neutral = "gray"
)

// kinds are colours of queries: those of Okabe and Ito that show on white and on black. A panel has no more queries
// than these; its lines of one query are shades of one.
var kinds = []string{"#0072B2", "#E69F00", "#CC79A7", "#009E73", "#D55E00", "#56B4E9", "#999999"}

// word is the text and colour of a value; empty: none.
type word struct{ value, text, colour string }

// unknown is the word of orUnknown.
var unknown = word{"-1", "unknown", neutral}

// mappings returns the mappings of words. One whose value ends with a blank stands for all values of that first word
// that
// have none of their own.
func mappings(words ...word) []dashboard.ValueMapping {
	var rest []dashboard.ValueMapping
	m := dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: map[string]dashboard.ValueMappingResult{}}
	for i, w := range words {
		to := dashboard.ValueMappingResult{Text: &w.text, Index: cog.ToPtr(int32(i))}
		if w.colour != "" {
			to.Color = &w.colour
		}
		if !strings.HasSuffix(w.value, " ") {
			m.Options[w.value] = to
			continue
		}
		rest = append(rest, dashboard.ValueMapping{RegexMap: &dashboard.RegexMap{
			Type:    dashboard.MappingTypeRegexToText,
			Options: dashboard.DashboardRegexMapOptions{Pattern: "^" + strings.TrimSpace(w.value) + "( .*)?$", Result: to},
		}})
	}
	return append([]dashboard.ValueMapping{{ValueMap: &m}}, rest...)
}

// step is the colour of values from one on.
type step struct {
	from   float64
	colour string
}

// thresholds has a colour for values below the first step, too.
func thresholds(base string, steps ...step) *dashboard.ThresholdsConfig {
	t := dashboard.ThresholdsConfig{Mode: dashboard.ThresholdsModeAbsolute, Steps: []dashboard.Threshold{{Color: base}}}
	for _, s := range steps {
		t.Steps = append(t.Steps, dashboard.Threshold{Value: &s.from, Color: s.colour})
	}
	return &t
}

// portStates are those of enum ib_port_state.
var portStates = []word{
	{"1", "DOWN", bad},
	{"2", "INIT", warning},
	{"3", "ARMED", warning},
	{"4", "ACTIVE", good},
	{"5", "ACTIVE_DEFER", notice},
}

// physicalStates are those of the InfiniBand specification, PortInfo.PortPhysicalState.
var physicalStates = []word{
	{"1", "Sleep", "transparent"},
	{"2", "Polling", warning},
	{"3", "Disabled", bad},
	{"4", "Training", warning},
	{"5", "LinkUp", good},
	{"6", "LinkErrorRecovery", warning},
	{"7", "PhyTest", notice},
}

// recoveries are the recovery actions of a GPU (nvmlDeviceGpuRecoveryAction_t).
var recoveries = []word{
	unknown,
	{"0", "none", "transparent"},
	{"1", "reset", warning},
	{"2", "node reboot", warning},
	{"3", "drain peer-to-peer jobs", warning},
	{"4", "drain and reset", warning},
	{"5", "IMEX domain recovery", warning},
	{"6", "PCIe bus reset", warning},
	{"7", "system reboot", warning},
}

var severities = []word{{"3", "critical", bad}, {"2", "warning", warning}, {"1", "info", remark}, {"0", "none", good}}

// drains are the values of the label drain.
var drains = []word{{"evict", "evict", "transparent"}, {"cordon", "cordon", "transparent"}, {"no", "no", "transparent"}}

var alertStates = []word{{"firing", "firing", "transparent"}, {"pending", "pending", "transparent"}}

// worsts are the worst states of what a cell of a grid stands for. Unknown is worse than info.
var worsts = []word{
	{"5", "critical", bad}, {"4", "warning", warning}, {"3", "unknown", neutral}, {"2", "info", remark}, {"1", "ok", good},
}

var direct = []word{
	{"1", "direct", good},
	{"0", "staged", warning},
	{"-1", "staged by job", warning},
	{"2", "staged (hardware)", "transparent"},
}

// transports are ranks of the transport of a job.
var transports = []word{{"3", "slow", warning}, {"2", "unknown", neutral}, {"1", "direct", good}}

// sources are where an expected rate or width comes from.
var sources = []word{
	{"pin", "site configuration", neutral},
	{"link_modes", "link modes of both ends", neutral},
	{"link_partner", "enabled by both ends", neutral},
	{"siblings", "siblings on this host", neutral},
	{"high_water_mark", "highest rate of this port so far", neutral},
	{"capability", "capability of the device", neutral},
}

var answers = []word{{"1", "reachable", good}, {"0", "unreachable", bad}}

// wrongs are what may be wrong with a link of a fabric.
var wrongs = []word{{"3", "gone", bad}, {"2", "degraded", warning}, {"1", "unequal settings", notice}}

// smStates are those of SMInfo (IBA 14.2.5.13).
var smStates = []word{
	{"3", "master", good},
	{"2", "standby", "transparent"},
	{"1", "discovering", notice},
	{"0", "not active", "transparent"},
}
