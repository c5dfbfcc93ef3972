package panels

import (
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"rdma_exporter/dashboards/gen/promql"
)

// endings are last characters of names, in as many sets as there are colours of lines.
var endings = []string{"06cio", "17djpu", "28ekqv", "39flrw", "4agmsx", "5bhntyz"}

// hues returns expressions for the series of one query, one for each colour: by the end of the names of host and
// device, so that neighbours differ, and a series has one colour in all graphs.
func hues(legend string) (out []string) {
	for i, end := range endings {
		switch {
		case strings.HasPrefix(legend, promql.PortName):
			var both []string
			for j, of := range endings {
				both = append(both, `[`+of+`] \S*[`+endings[(i-j+len(endings))%len(endings)]+`]`)
			}
			out = append(out, `^\S*(`+strings.Join(both, "|")+`)\/`)
		case strings.HasPrefix(legend, promql.HostName):
			out = append(out, `^\S*[`+end+`](\s|$)`)
		case strings.HasPrefix(legend, promql.Short):
			out = append(out, `^\S*[`+end+`]\/`)
		}
	}
	return out
}

// Lines are values over time. Each query has its colour, its series shades of that; hosts and ports have one each.
var Lines = View{format: prometheus.PromQueryFormatTimeSeries, builder: func(p Panel) cog.Builder[dashboard.Panel] {
	// The legend begins with the worst.
	calc, statistic, low := "max", "Max", strings.Contains(p.Queries[0].Expr, "bottomk(")
	if low {
		calc, statistic = "min", "Min"
	}
	b := timeseries.NewPanelBuilder().
		DrawStyle(common.GraphDrawStyleLine).LineWidth(1).FillOpacity(0).ShowPoints(common.VisibilityModeAuto).PointSize(4).
		AxisPlacement(common.AxisPlacementAuto).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeTable).
			Placement(common.LegendPlacementBottom).Calcs([]string{"lastNotNull", calc}).SortBy(statistic).SortDesc(!low)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	if p.List {
		b.Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).
			Placement(common.LegendPlacementBottom).Calcs([]string{"lastNotNull"}).SortBy(statistic).SortDesc(!low))
	}
	if p.Unit == "none" || p.Unit == Whole {
		b.Decimals(0)
	}
	if p.Unit == Scientific {
		b.Decimals(1)
	}
	switch {
	case p.Whole:
		b.ScaleDistribution(common.NewScaleDistributionConfigBuilder().Type(common.ScaleDistributionSymlog).Log(10).
			LinearThreshold(1)).AxisSoftMin(0)
	case p.Decades:
		b.ScaleDistribution(common.NewScaleDistributionConfigBuilder().Type(common.ScaleDistributionLog).Log(10))
	case p.Unit != "suffix:dBm": // 0 dBm is no end of a scale
		b.AxisSoftMin(0)
	}
	if p.Reach > 0 {
		b.AxisSoftMax(p.Reach)
	}
	if p.Colours != nil {
		b.ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	colour := func(mode dashboard.FieldColorModeId, of string) []dashboard.DynamicConfigValue {
		return []dashboard.DynamicConfigValue{{Id: "color", Value: map[string]any{"mode": mode, "fixedColor": of}}}
	}
	for i := range p.Queries {
		if p.Tints != nil {
			b.OverrideByQuery(refID(i), colour(dashboard.FieldColorModeIdFixed, p.Tints[i]))
		} else {
			b.OverrideByQuery(refID(i), colour(dashboard.FieldColorModeIdShades, kinds[i%len(kinds)]))
		}
	}
	named := slices.DeleteFunc(slices.Clone(p.Queries), func(q Query) bool { return hues(q.legend) == nil })
	if len(named) == 1 {
		for i, name := range hues(named[0].legend) {
			b.OverrideByRegexp("/"+name+"/i", colour(dashboard.FieldColorModeIdFixed, kinds[i]))
		}
	}
	for _, w := range p.States {
		b.OverrideByName(w.Value, colour(dashboard.FieldColorModeIdFixed, w.Colour))
	}
	return b
}}

// Timeline shows states over time in words; a gap is unknown.
var Timeline = View{format: prometheus.PromQueryFormatTimeSeries, builder: func(Panel) cog.Builder[dashboard.Panel] {
	return statetimeline.NewPanelBuilder().
		ShowValue(common.VisibilityModeAuto).MergeValues(true).RowHeight(0.8).LineWidth(0).FillOpacity(80).
		AlignValue(common.TimelineValueAlignmentLeft).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).
			Placement(common.LegendPlacementBottom)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeSingle).Sort(common.SortOrderNone)).
		// By thresholds, merged values lose their words.
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdFixed).FixedColor(Neutral)).
		Thresholds(builtThresholds{Thresholds(Neutral)}).
		// Of a gap; that of the panel is of no series.
		OverrideByFieldType("number", []dashboard.DynamicConfigValue{{Id: "noValue", Value: Unknown.Text}})
}}

// builtThresholds hands over what is built already.
type builtThresholds struct{ t *dashboard.ThresholdsConfig }

func (b builtThresholds) Build() (dashboard.ThresholdsConfig, error) { return *b.t, nil }

// number is one value now. It has no past: a value that is gone would be shown as the last one.
var number = View{
	format: prometheus.PromQueryFormatTimeSeries, instant: true, builder: func(p Panel) cog.Builder[dashboard.Panel] {
		b := stat.NewPanelBuilder().
			GraphMode(common.BigValueGraphModeNone).
			Orientation(common.VizOrientationAuto).ColorMode(common.BigValueColorModeValue).
			TextMode(common.BigValueTextModeAuto).JustifyMode(common.BigValueJustifyModeAuto).
			Decimals(0).ReduceOptions(common.NewReduceDataOptionsBuilder().Values(false).Calcs([]string{"lastNotNull"})).
			ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds))
		if p.Width <= 4 { // one below the other
			b.Orientation(common.VizOrientationHorizontal)
		}
		for i, t := range p.Steps {
			b.OverrideByQuery(refID(i), []dashboard.DynamicConfigValue{{Id: "thresholds", Value: t}})
		}
		for i, ways := range p.links {
			if ways != nil {
				b.OverrideByQuery(refID(i), []dashboard.DynamicConfigValue{{Id: "links", Value: linksOf(ways...)}})
			}
		}
		for i, words := range p.Values {
			b.OverrideByQuery(refID(i), []dashboard.DynamicConfigValue{{Id: "mappings", Value: mappings(words...)}})
		}
		return b
	},
}
