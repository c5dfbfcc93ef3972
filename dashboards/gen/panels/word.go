package panels

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// Colours that mean something. Blue, orange and dark red differ in brightness too, so that they can be distinguished
// without distinguishing red from green, and Grafana adapts them to its light and dark theme. Beside each stands a
// word.
const (
	Good    = "blue"
	Notice  = "super-light-orange"
	Remark  = "transparent" // info: no action is urgent
	Warning = "orange"
	Bad     = "dark-red"
	Neutral = "gray"
)

// kinds are colours of queries: those of Okabe and Ito that show on white and on black. A panel has no more queries
// than these; its lines of one query are shades of one.
var kinds = []string{"#0072B2", "#E69F00", "#CC79A7", "#009E73", "#D55E00", "#56B4E9", "#999999"}

// Word is the text and colour of a value; empty: none.
type Word struct{ Value, Text, Colour string }

// Unknown is the word of orUnknown.
var Unknown = Word{"-1", "unknown", Neutral}

// mappings returns the mappings of words. One whose value ends with a blank stands for all values of that first word
// that
// have none of their own.
func mappings(words ...Word) []dashboard.ValueMapping {
	var rest []dashboard.ValueMapping
	m := dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: map[string]dashboard.ValueMappingResult{}}
	for i, w := range words {
		to := dashboard.ValueMappingResult{Text: &w.Text, Index: cog.ToPtr(int32(i))}
		if w.Colour != "" {
			to.Color = &w.Colour
		}
		if !strings.HasSuffix(w.Value, " ") {
			m.Options[w.Value] = to
			continue
		}
		rest = append(rest, dashboard.ValueMapping{RegexMap: &dashboard.RegexMap{
			Type:    dashboard.MappingTypeRegexToText,
			Options: dashboard.DashboardRegexMapOptions{Pattern: "^" + strings.TrimSpace(w.Value) + "( .*)?$", Result: to},
		}})
	}
	return append([]dashboard.ValueMapping{{ValueMap: &m}}, rest...)
}

// Step is the colour of values from one on.
type Step struct {
	From   float64
	Colour string
}

// Thresholds has a colour for values below the first step, too.
func Thresholds(base string, steps ...Step) *dashboard.ThresholdsConfig {
	t := dashboard.ThresholdsConfig{Mode: dashboard.ThresholdsModeAbsolute, Steps: []dashboard.Threshold{{Color: base}}}
	for _, s := range steps {
		t.Steps = append(t.Steps, dashboard.Threshold{Value: &s.From, Color: s.Colour})
	}
	return &t
}
