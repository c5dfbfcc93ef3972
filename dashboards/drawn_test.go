package dashboards

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// drawn is what of a panel decides how Grafana draws it.
type drawn struct {
	Title       string `json:"title"`
	Type        string `json:"type"`
	FieldConfig struct {
		Defaults struct {
			Color struct {
				Mode string `json:"mode"`
			} `json:"color"`
			NoValue    string     `json:"noValue"`
			Thresholds thresholds `json:"thresholds"`
		} `json:"defaults"`
		Overrides []struct {
			Matcher struct {
				Options any `json:"options"`
			} `json:"matcher"`
			Properties []struct {
				ID    string          `json:"id"`
				Value json.RawMessage `json:"value"`
			} `json:"properties"`
		} `json:"overrides"`
	} `json:"fieldConfig"`
	Options struct {
		Legend struct {
			SortBy   string `json:"sortBy"`
			SortDesc bool   `json:"sortDesc"`
		} `json:"legend"`
	} `json:"options"`
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
	Transformations []struct {
		ID      string `json:"id"`
		Options struct {
			RenameByName map[string]string `json:"renameByName"`
		} `json:"options"`
	} `json:"transformations"`
}

type thresholds struct {
	Steps []struct {
		Color string   `json:"color"`
		Value *float64 `json:"value"`
	} `json:"steps"`
}

// TestDrawn holds the panels to what Grafana's own frontend makes of them: it draws merged states by thresholds as one bar without words, a value that
// has neither a word nor a threshold green, a value that is not there in the colour below the first threshold, and labels with the unit of the panel.
func TestDrawn(t *testing.T) {
	for name, d := range load(t) {
		var file struct {
			Panels      []drawn `json:"panels"`
			Annotations struct {
				List []struct {
					Name   string `json:"name"`
					Enable bool   `json:"enable"`
					Expr   string `json:"expr"`
				} `json:"list"`
			} `json:"annotations"`
		}
		if err := json.Unmarshal([]byte(d.text), &file); err != nil {
			t.Fatal(err)
		}
		for _, a := range file.Annotations.List {
			if a.Enable || !strings.Contains(a.Expr, " unless ") {
				t.Errorf("%s: annotation %s is on, or marks times and not when they begin", name, a.Name)
			}
		}
		for _, p := range file.Panels {
			where := name + ", " + p.Title
			if slices.Contains([]string{"stat", "table", "state-timeline"}, p.Type) && p.FieldConfig.Defaults.NoValue == "" && p.Type != "state-timeline" {
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

func (p drawn) checkColumns(t *testing.T, where string) {
	t.Helper()
	set := map[string][]string{} // properties by column
	for _, o := range p.FieldConfig.Overrides {
		if column, ok := o.Matcher.Options.(string); ok {
			for _, property := range o.Properties {
				set[column] = append(set[column], property.ID)
			}
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
