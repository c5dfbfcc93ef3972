package panels

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// datasource chooses the Prometheus.
var datasource = dashboard.VariableModel{
	Type: dashboard.VariableTypeDatasource, Name: "datasource", Label: cog.ToPtr("Data source"),
	Query:   &dashboard.StringOrMap{String: cog.ToPtr("prometheus")},
	Refresh: cog.ToPtr(dashboard.VariableRefreshOnDashboardLoad),
	Hide:    cog.ToPtr(dashboard.VariableHideDontHide),
}

// Choice is a variable with the values of a label. A name stands for one kind of target on every dashboard, so that
// links can pass it on.
type Choice struct {
	Name, Label, Text string
	Query             string
	Regex             string // of what the query returns; empty: all of it
	One               bool   // one value and not all
	All               string // what all stands for; empty: the values that there are
	Ordered           bool   // in the order of the query
	Hide              bool   // not shown: it is nothing to choose
}

func (c Choice) variable() dashboard.VariableModel {
	v := dashboard.VariableModel{
		Type: dashboard.VariableTypeQuery, Name: c.Name, Label: &c.Label, Description: &c.Text, Datasource: &source,
		Definition: &c.Query,
		Query:      &dashboard.StringOrMap{Map: map[string]any{"query": c.Query, "refId": "StandardVariableQuery"}},
		Refresh:    cog.ToPtr(dashboard.VariableRefreshOnTimeRangeChanged), Sort: cog.ToPtr(dashboard.VariableSortNaturalAsc),
		Hide: cog.ToPtr(dashboard.VariableHideDontHide), Multi: cog.ToPtr(!c.One), IncludeAll: cog.ToPtr(!c.One),
	}
	if c.Ordered {
		v.Sort = cog.ToPtr(dashboard.VariableSortDisabled)
	}
	if c.Hide {
		v.Hide = cog.ToPtr(dashboard.VariableHideHideVariable)
	}
	if c.Regex != "" {
		v.Regex = &c.Regex
	}
	if !c.One {
		all := func(s string) dashboard.StringOrArrayOfString {
			return dashboard.StringOrArrayOfString{ArrayOfString: []string{s}}
		}
		v.Current = &dashboard.VariableOption{Selected: cog.ToPtr(true), Text: all("All"), Value: all("$__all")}
		if c.All != "" {
			v.AllValue = &c.All
		}
	}
	return v
}

func variables(choices []Choice) []dashboard.VariableModel {
	v := []dashboard.VariableModel{datasource}
	for _, c := range choices {
		v = append(v, c.variable())
	}
	return v
}
