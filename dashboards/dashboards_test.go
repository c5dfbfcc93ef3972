package dashboards

import (
	"encoding/json"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

type dashboard struct {
	UID           string `json:"uid"`
	Title         string `json:"title"`
	Description   string `json:"description"`
	ID            *int   `json:"id"`
	Tags          []string
	SchemaVersion int     `json:"schemaVersion"`
	Panels        []panel `json:"panels"`
	Templating    struct {
		List []variable `json:"list"`
	} `json:"templating"`
	Annotations struct {
		List []struct {
			Name, Expr string
			Enable     bool
			Datasource datasource
		} `json:"list"`
	} `json:"annotations"`
	Links []link `json:"links"`
	text  string // the file
}

type link struct {
	Title, Type, URL string
	Tags             []string

	AsDropdown, IncludeVars bool
}

type panel struct {
	ID          int        `json:"id"`
	Title       string     `json:"title"`
	Type        string     `json:"type"`
	Description string     `json:"description"`
	Panels      []panel    `json:"panels"` // of a collapsed row
	Collapsed   bool       `json:"collapsed"`
	Datasource  datasource `json:"datasource"`
	FieldConfig struct {
		Defaults struct {
			Unit     string    `json:"unit"`
			Mappings []mapping `json:"mappings"`
			NoValue  string    `json:"noValue"`
			Decimals *float64  `json:"decimals"`
			Color    struct {
				Mode string `json:"mode"`
			} `json:"color"`
			Thresholds struct {
				Steps []struct {
					Color string   `json:"color"`
					Value *float64 `json:"value"`
				} `json:"steps"`
			} `json:"thresholds"`
		} `json:"defaults"`
		Overrides []struct {
			Matcher struct {
				ID      string `json:"id"`
				Options string `json:"options"`
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
	GridPos         place            `json:"gridPos"`
	Targets         []panelTarget    `json:"targets"`
	Transformations []transformation `json:"transformations"`
}

type transformation struct {
	ID      string `json:"id"`
	Options struct {
		ExcludeByName map[string]bool   `json:"excludeByName"`
		RenameByName  map[string]string `json:"renameByName"`
		IndexByName   map[string]int    `json:"indexByName"`
		Sort          []struct {
			Field string `json:"field"`
		} `json:"sort"`
	} `json:"options"`
}

type mapping struct {
	Options map[string]struct{ Text, Color string } `json:"options"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type place struct{ X, Y, W, H int }

func (a place) overlaps(b place) bool {
	return a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
}

type panelTarget struct {
	RefID        string     `json:"refId"`
	Expr         string     `json:"expr"`
	LegendFormat string     `json:"legendFormat"`
	Format       string     `json:"format"`
	Instant      bool       `json:"instant"`
	Datasource   datasource `json:"datasource"`
}

type variable struct {
	Name       string     `json:"name"`
	Type       string     `json:"type"`
	Definition string     `json:"definition"`
	IncludeAll bool       `json:"includeAll"`
	Multi      bool       `json:"multi"`
	AllValue   string     `json:"allValue"`
	Regex      string     `json:"regex"`
	Datasource datasource `json:"datasource"`
}

// uids are those that links from elsewhere, and from an Alertmanager's templates, go to: they do not change.
var uids = map[string]string{
	"fabric.json": "rdma-fabric", "node.json": "rdma-node", "job.json": "rdma-job",
	"roce.json": "rdma-roce", "optics.json": "rdma-optics",
	"gpudirect.json": "rdma-gpudirect", "subnet.json": "rdma-subnet",
}

func load(t *testing.T) map[string]dashboard {
	t.Helper()
	files, names, err := All()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]dashboard{}
	for _, name := range names {
		b, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		d := dashboard{text: string(b)}
		if err := json.Unmarshal(b, &d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		d.open()
		out[name] = d
	}
	if len(out) != len(uids) {
		t.Fatalf("%d dashboards, want %d", len(out), len(uids))
	}
	return out
}

// isMatrix reports whether the columns of a table are the values of a label.
func (p panel) isMatrix() bool {
	return slices.ContainsFunc(p.Transformations, func(x transformation) bool { return x.ID == "groupingToMatrix" })
}

// open takes the panels out of collapsed rows, to where they are drawn when the row is opened: below all others, as
// only one row is open at a time.
func (d *dashboard) open() {
	var out []panel
	for _, p := range d.Panels {
		for i := range p.Panels {
			p.Panels[i].GridPos.Y += 1000 * p.ID
		}
		out = append(append(out, p), p.Panels...)
	}
	d.Panels = out
}

func TestLayout(t *testing.T) {
	for name, d := range load(t) {
		t.Run(name, func(t *testing.T) {
			if d.UID != uids[name] || d.Title == "" || d.ID != nil {
				t.Errorf("uid %q, title %q, id %v, want %q, some, none", d.UID, d.Title, d.ID, uids[name])
			}
			if d.SchemaVersion != 39 {
				t.Errorf("schema version %d, want that of Grafana 10.4, which later ones migrate", d.SchemaVersion)
			}
			ids := map[int]string{}
			for i, p := range d.Panels {
				if p.ID == 0 || ids[p.ID] != "" {
					t.Errorf("%s: id %d, which %q has", p.Title, p.ID, ids[p.ID])
				}
				ids[p.ID] = p.Title
				for _, o := range d.Panels[:i] {
					if p.GridPos.overlaps(o.GridPos) {
						t.Errorf("%s lies on %s", p.Title, o.Title)
					}
					if p.Title == o.Title {
						t.Errorf("two panels %s", p.Title)
					}
				}
				if p.GridPos.X+p.GridPos.W > 24 || p.GridPos.W == 0 || p.GridPos.H == 0 {
					t.Errorf("%s does not fit the grid: %+v", p.Title, p.GridPos)
				}
			}
		})
	}
}

func TestPanelsExplainThemselves(t *testing.T) {
	for name, d := range load(t) {
		t.Run(name, func(t *testing.T) {
			for _, p := range d.Panels {
				if p.Type == "row" {
					continue
				}
				if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
					t.Errorf("%s: wants a title, a description, a unit and a query", p.Title)
				}
				refs := map[string]bool{}
				for _, q := range p.Targets {
					if refs[q.RefID] || q.RefID == "" {
						t.Errorf("%s: two queries %s", p.Title, q.RefID)
					}
					refs[q.RefID] = true
					if now := p.Type == "table" || p.Type == "stat"; q.Instant != now || (q.Format == "table") != (p.Type == "table") {
						t.Errorf("%s: %s: a table and a number are of this moment, all others over time", p.Title, q.RefID)
					}
					if q.LegendFormat == "" && p.Type != "table" && p.Type != "stat" {
						t.Errorf("%s: %s: no legend", p.Title, q.RefID)
					}
					for _, ds := range []datasource{p.Datasource, q.Datasource} {
						if ds != chosen {
							t.Errorf("%s: %s: data source %v, want the chosen one", p.Title, q.RefID, ds)
						}
					}
				}
			}
		})
	}
}

var chosen = datasource{"prometheus", "${datasource}"}

// TestTables: what a table shows and colours are columns that it has.
func TestTables(t *testing.T) {
	known := metrics(t)
	for name, d := range load(t) {
		t.Run(name, func(t *testing.T) {
			for _, p := range d.Panels {
				if p.Type != "table" {
					continue
				}
				if len(p.Targets) > 1 && p.Transformations[0].ID != "merge" {
					t.Errorf("%s: several queries make several tables", p.Title)
				}
				i := slices.IndexFunc(p.Transformations, func(x transformation) bool { return x.ID == "organize" })
				organize := p.Transformations[i].Options
				if len(p.Targets) > 1 && organize.RenameByName["Value"] == "" && !organize.ExcludeByName["Value"] {
					t.Errorf("%s: the values of a query that alone has a result have no column", p.Title)
				}
				var titles []string
				for field, title := range organize.RenameByName {
					titles = append(titles, title)
					if organize.ExcludeByName[field] {
						t.Errorf("%s: %s is both shown and not", p.Title, field)
					}
				}
				for _, q := range p.Targets {
					field := "Value #" + q.RefID
					if len(p.Targets) == 1 {
						field = "Value"
					}
					if organize.RenameByName[field] == "" && !organize.ExcludeByName[field] {
						t.Errorf("%s: the values of %s have no column", p.Title, q.RefID)
					}
					for _, l := range labels(nodes(t, windows.Replace(q.Expr))[0], known) {
						if organize.RenameByName[l] == "" && !organize.ExcludeByName[l] {
							t.Errorf("%s: label %s has no column", p.Title, l)
						}
					}
				}
				if p.isMatrix() { // its columns are values
					continue
				}
				for _, x := range p.Transformations {
					for _, s := range x.Options.Sort {
						titles := slices.Collect(maps.Values(organize.RenameByName))
						if !slices.Contains(titles, s.Field) {
							t.Errorf("%s: sorted by %s, which is none of %v", p.Title, s.Field, titles)
						}
					}
				}
				for _, o := range p.FieldConfig.Overrides {
					if !slices.Contains(titles, o.Matcher.Options) {
						t.Errorf("%s: no column %s", p.Title, o.Matcher.Options)
					}
				}
			}
		})
	}
}

// TestColoursHaveWords: what a colour shows, a word shows as well, and red is never set against green.
func TestColoursHaveWords(t *testing.T) {
	for name, d := range load(t) {
		t.Run(name, func(t *testing.T) {
			for _, p := range d.Panels {
				all := slices.Clone(p.FieldConfig.Defaults.Mappings)
				for _, o := range p.FieldConfig.Overrides {
					for _, v := range o.Properties {
						var m []mapping
						if v.ID == "mappings" && json.Unmarshal(v.Value, &m) == nil {
							all = append(all, m...)
						}
					}
				}
				for _, m := range all {
					for value, to := range m.Options {
						if to.Text == "" {
							t.Errorf("%s: %s has a colour and no word", p.Title, value)
						}
					}
				}
				if len(p.FieldConfig.Defaults.Mappings) == 0 && p.Type == "state-timeline" {
					t.Errorf("%s: states have no words", p.Title)
				}
			}
			if m := regexp.MustCompile(`"[a-z-]*green"|palette-classic[a-z-]*|continuous-GrYlRd|continuous-RdYlGr`).
				FindString(d.text); m != "" {
				t.Errorf("%s: people who do not tell red from green cannot read it", m)
			}
		})
	}
}

// builtIn are variables of Grafana itself.
var builtIn = regexp.MustCompile(`^__(rate_interval|range|url_time_range|all|field\.labels\.\w+|data\.fields\.\w+|value\.raw|from|to)$|^[12]$`)

// kinds are the variables: a name stands for one kind of target, one or several of it.
var kinds = map[string]*struct{ one bool }{
	"datasource": {}, "cluster": {}, "job": {}, "hosts": {}, "host": {one: true}, "device": {}, "fabric_job": {},
	"fabric": {one: true}, "switch": {}, "workload": {one: true}, "books": {one: true},
}

// TestVariables: each that is used exists, and each that there is can be chosen where there is no such label.
func TestVariables(t *testing.T) {
	known := metrics(t)
	for name, d := range load(t) {
		t.Run(name, func(t *testing.T) {
			for _, m := range regexp.MustCompile(`\$(?:(\w+)|\{([\w.]+)(?::\w+)?\})`).FindAllStringSubmatch(d.text, -1) {
				used := m[1] + m[2]
				if !builtIn.MatchString(used) &&
					!slices.ContainsFunc(d.Templating.List, func(v variable) bool { return v.Name == used }) {
					t.Errorf("no variable %s", m[0])
				}
			}
			for i, v := range d.Templating.List {
				if want := kinds[v.Name]; want == nil || v.Type == "query" && v.Multi == want.one {
					t.Errorf("variable %d, %s: no kind of target, or one where several can be chosen: %v", i, v.Name, kinds)
				}
				if !strings.Contains(d.text, "$"+v.Name) && !strings.Contains(d.text, "${"+v.Name) {
					t.Errorf("variable %s is not used", v.Name)
				}
				if v.Type == "query" {
					if strings.HasPrefix(v.Definition, "query_result(") {
						continue
					}
					m := labelValues.FindStringSubmatch(v.Definition)
					if m == nil || v.Datasource != chosen || !slices.Contains(labels(nodes(t, m[1])[0], known), m[2]) {
						t.Errorf("variable %s: %v %s, want label_values(…) of the chosen data source, of a label that there is",
							v.Name, v.Datasource, v.Definition)
					}
				}
				if v.Name == "cluster" && (!v.IncludeAll || v.AllValue != ".*") {
					t.Error("cluster: hosts without that label cannot be chosen")
				}
			}
		})
	}
}
