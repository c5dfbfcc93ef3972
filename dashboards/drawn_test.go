package dashboards

import (
	"slices"
	"strings"
	"testing"
)

// TestDrawn holds the panels to what Grafana's own frontend makes of them: it draws merged states by thresholds as one bar without words, a value that
// has neither a word nor a threshold green, a value that is not there in the colour below the first threshold, and labels with the unit of the panel.
func TestDrawn(t *testing.T) {
	for name, d := range load(t) {
		for _, a := range d.Annotations.List {
			if a.Enable || !strings.Contains(a.Expr, " unless ") {
				t.Errorf("%s: annotation %s is on, or marks times and not when they begin", name, a.Name)
			}
		}
		for _, p := range d.Panels {
			where := name + ", " + p.Title
			if (p.Type == "stat" || p.Type == "table") && p.FieldConfig.Defaults.NoValue == "" {
				t.Errorf("%s: does not say what no value means", where)
			}
			switch p.Type {
			case "state-timeline":
				if p.FieldConfig.Defaults.Color.Mode != "fixed" {
					t.Errorf("%s: states are coloured by %q", where, p.FieldConfig.Defaults.Color.Mode)
				}
			case "stat":
				if s := p.FieldConfig.Defaults.Thresholds.Steps; len(s) == 0 || s[0].Color != "gray" {
					t.Errorf("%s: what is unknown has the colour of a value: %v", where, s)
				}
			case "timeseries":
				if low := strings.HasPrefix(p.Targets[0].Expr, "bottomk("); low != (p.Options.Legend.SortBy == "Min") || low == p.Options.Legend.SortDesc {
					t.Errorf("%s: the legend does not begin with the worst", where)
				}
			case "table":
				p.checkColumns(t, where)
			}
		}
	}
}

func (p panel) checkColumns(t *testing.T, where string) {
	t.Helper()
	set := map[string][]string{} // properties by column
	for _, o := range p.FieldConfig.Overrides {
		for _, property := range o.Properties {
			set[o.Matcher.Options] = append(set[o.Matcher.Options], property.ID)
		}
	}
	for _, tr := range p.Transformations {
		for field, column := range tr.Options.RenameByName {
			if !strings.HasPrefix(field, "Value") && !slices.Contains(set[column], "unit") {
				t.Errorf("%s: column %s is a label and has the unit of the panel", where, column)
			}
		}
	}
	for column, ids := range set {
		if slices.Contains(ids, "custom.cellOptions") && !slices.Contains(ids, "thresholds") {
			t.Errorf("%s: column %s is green where a value has no word", where, column)
		}
	}
}
