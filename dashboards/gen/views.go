package main

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// lines are values over time. Each query has its colour, its series shades of that.
var lines = view{format: prometheus.PromQueryFormatTimeSeries, builder: func(p panel) cog.Builder[dashboard.Panel] {
	calc, column, lowest := "max", "Max", strings.Contains(p.queries[0].expr, "bottomk(") // the legend begins with the worst
	if lowest {
		calc, column = "min", "Min"
	}
	b := timeseries.NewPanelBuilder().
		DrawStyle(common.GraphDrawStyleLine).LineWidth(1).FillOpacity(5).ShowPoints(common.VisibilityModeAuto).PointSize(4).
		AxisSoftMin(0).AxisPlacement(common.AxisPlacementAuto).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeTable).
			Placement(common.LegendPlacementBottom).Calcs([]string{"lastNotNull", calc}).SortBy(column).SortDesc(!lowest)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	if p.unit == "none" {
		b.Decimals(0)
	}
	if p.colours != nil {
		b.ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	for i := range p.queries {
		b.OverrideByQuery(refID(i), []dashboard.DynamicConfigValue{
			{Id: "color", Value: map[string]any{"mode": dashboard.FieldColorModeIdShades, "fixedColor": kinds[i%len(kinds)]}},
		})
	}
	return b
}}

// timeline shows states over time in words; a gap is unknown.
var timeline = view{format: prometheus.PromQueryFormatTimeSeries, builder: func(panel) cog.Builder[dashboard.Panel] {
	return statetimeline.NewPanelBuilder().
		ShowValue(common.VisibilityModeAuto).MergeValues(true).RowHeight(0.8).LineWidth(0).FillOpacity(80).
		AlignValue(common.TimelineValueAlignmentLeft).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeSingle).Sort(common.SortOrderNone)).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdFixed).FixedColor(neutral)). // by thresholds, merged values lose their words
		Thresholds(builtThresholds{thresholds(neutral)})
}}

// builtThresholds hands over what is built already.
type builtThresholds struct{ t *dashboard.ThresholdsConfig }

func (b builtThresholds) Build() (dashboard.ThresholdsConfig, error) { return *b.t, nil }

// number is one value now. It has no past: a value that is gone would be shown as the last one.
var number = view{format: prometheus.PromQueryFormatTimeSeries, instant: true, builder: func(panel) cog.Builder[dashboard.Panel] {
	return stat.NewPanelBuilder().
		GraphMode(common.BigValueGraphModeNone).Orientation(common.VizOrientationAuto).ColorMode(common.BigValueColorModeValue).
		TextMode(common.BigValueTextModeAuto).JustifyMode(common.BigValueJustifyModeAuto).
		Decimals(0).ReduceOptions(common.NewReduceDataOptionsBuilder().Values(false).Calcs([]string{"lastNotNull"})).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds))
}}

// rows is a heatmap with a row for each series, whose values are shares of 1.
var rows = heat(prometheus.PromQueryFormatTimeSeries, "percentunit", true)

// buckets is a heatmap of a histogram: how many a second fall between the bounds.
var buckets = heat(prometheus.PromQueryFormatHeatmap, "short", false)

func heat(format prometheus.PromQueryFormat, unit string, share bool) view {
	return view{format: format, builder: func(panel) cog.Builder[dashboard.Panel] {
		colour := heatmap.NewHeatmapColorOptionsBuilder().Mode(heatmap.HeatmapColorModeScheme).Scheme("Oranges").Fill("dark-orange").
			Scale(heatmap.HeatmapColorScaleExponential).Exponent(0.5).Steps(64)
		frame := heatmap.NewRowsHeatmapOptionsBuilder().Layout(common.HeatmapCellLayoutAuto)
		axis := heatmap.NewYAxisConfigBuilder().AxisPlacement(common.AxisPlacementLeft)
		if share {
			colour.Min(0).Max(1)
		} else {
			axis.Unit("percentunit")
		}
		return heatmap.NewPanelBuilder().
			Calculate(false).Color(colour).RowsFrame(frame).YAxis(axis).CellGap(1).
			CellValues(heatmap.NewCellValuesBuilder().Unit(unit)).
			ShowValue(common.VisibilityModeNever).ShowLegend().
			Tooltip(heatmap.NewHeatmapTooltipBuilder().Mode(common.TooltipDisplayModeSingle).ShowColorScale(true))
	}}
}
