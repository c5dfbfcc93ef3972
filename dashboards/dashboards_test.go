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
	UID           string  `json:"uid"`
	Title         string  `json:"title"`
	ID            *int    `json:"id"`
	SchemaVersion int     `json:"schemaVersion"`
	Panels        []panel `json:"panels"`
	Templating    struct {
		List []variable `json:"list"`
	} `json:"templating"`
	Annotations struct {
		List []struct {
			Name, Expr string
			Datasource datasource
		} `json:"list"`
	} `json:"annotations"`
	text string // the file
}

type panel struct {
	ID          int        `json:"id"`
	Title       string     `json:"title"`
	Type        string     `json:"type"`
	Description string     `json:"description"`
	Datasource  datasource `json:"datasource"`
	FieldConfig struct {
		Defaults struct {
			Unit     string    `json:"unit"`
			Mappings []mapping `json:"mappings"`
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
	GridPos         place    `json:"gridPos"`
	Targets         []target `json:"targets"`
	Transformations []struct {
		ID      string `json:"id"`
		Options struct {
			ExcludeByName map[string]bool   `json:"excludeByName"`
			RenameByName  map[string]string `json:"renameByName"`
		} `json:"options"`
	} `json:"transformations"`
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

type target struct {
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
	AllValue   string     `json:"allValue"`
	Datasource datasource `json:"datasource"`
}

// uids are those that links from elsewhere, and from an Alertmanager's templates, go to: they do not change.
var uids = map[string]string{
	"fabric.json": "rdma-fabric", "node.json": "rdma-node", "roce.json": "rdma-roce", "optics.json": "rdma-optics", "gpudirect.json": "rdma-gpudirect",
	"subnet.json": "rdma-subnet",
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
		out[name] = d
	}
	if len(out) != len(uids) {
		t.Fatalf("%d dashboards, want %d", len(out), len(uids))
	}
	return out
}

func TestLayout(t *testing.T) {
	for name, d := range load(t) {
		if d.UID != uids[name] || d.Title == "" || d.ID != nil {
			t.Errorf("%s: uid %q, title %q, id %v, want %q, some, none", name, d.UID, d.Title, d.ID, uids[name])
		}
		if d.SchemaVersion != 39 {
			t.Errorf("%s: schema version %d, want that of Grafana 10.4, which later ones migrate", name, d.SchemaVersion)
		}
		ids := map[int]string{}
		for i, p := range d.Panels {
			if p.ID == 0 || ids[p.ID] != "" {
				t.Errorf("%s: %s: id %d, which %q has", name, p.Title, p.ID, ids[p.ID])
			}
			ids[p.ID] = p.Title
			for _, o := range d.Panels[:i] {
				if p.GridPos.overlaps(o.GridPos) {
					t.Errorf("%s: %s lies on %s", name, p.Title, o.Title)
				}
				if p.Title == o.Title {
					t.Errorf("%s: two panels %s", name, p.Title)
				}
			}
			if p.GridPos.X+p.GridPos.W > 24 || p.GridPos.W == 0 || p.GridPos.H == 0 {
				t.Errorf("%s: %s does not fit the grid: %+v", name, p.Title, p.GridPos)
			}
		}
	}
}

func TestPanelsExplainThemselves(t *testing.T) {
	for name, d := range load(t) {
		for _, p := range d.Panels {
			if p.Type == "row" {
				continue
			}
			if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
				t.Errorf("%s: %s: wants a title, a description, a unit and a query", name, p.Title)
			}
			refs := map[string]bool{}
			for _, q := range p.Targets {
				if refs[q.RefID] || q.RefID == "" {
					t.Errorf("%s: %s: two queries %s", name, p.Title, q.RefID)
				}
				refs[q.RefID] = true
				if now := p.Type == "table" || p.Type == "stat"; q.Instant != now || (q.Format == "table") != (p.Type == "table") {
					t.Errorf("%s: %s: %s: a table and a number are of this moment, all others over time", name, p.Title, q.RefID)
				}
				if q.LegendFormat == "" && p.Type != "table" && p.Type != "stat" {
					t.Errorf("%s: %s: %s: no legend", name, p.Title, q.RefID)
				}
				for _, ds := range []datasource{p.Datasource, q.Datasource} {
					if ds != chosen {
						t.Errorf("%s: %s: %s: data source %v, want the chosen one", name, p.Title, q.RefID, ds)
					}
				}
			}
		}
	}
}

var chosen = datasource{"prometheus", "${datasource}"}

// TestTables: what a table shows and colours are columns that it has.
func TestTables(t *testing.T) {
	known := metrics(t)
	for name, d := range load(t) {
		for _, p := range d.Panels {
			if p.Type != "table" {
				continue
			}
			if len(p.Targets) > 1 && p.Transformations[0].ID != "merge" {
				t.Errorf("%s: %s: several queries make several tables", name, p.Title)
			}
			organize := p.Transformations[len(p.Transformations)-1].Options
			var titles []string
			for field, title := range organize.RenameByName {
				titles = append(titles, title)
				if organize.ExcludeByName[field] {
					t.Errorf("%s: %s: %s is both shown and not", name, p.Title, field)
				}
			}
			for _, q := range p.Targets {
				field := "Value #" + q.RefID
				if len(p.Targets) == 1 {
					field = "Value"
				}
				if organize.RenameByName[field] == "" && !organize.ExcludeByName[field] {
					t.Errorf("%s: %s: the values of %s have no column", name, p.Title, q.RefID)
				}
				for _, l := range labels(nodes(t, windows.Replace(q.Expr))[0], known) {
					if organize.RenameByName[l] == "" && !organize.ExcludeByName[l] {
						t.Errorf("%s: %s: label %s has no column", name, p.Title, l)
					}
				}
			}
			for _, o := range p.FieldConfig.Overrides {
				if !slices.Contains(titles, o.Matcher.Options) {
					t.Errorf("%s: %s: no column %s", name, p.Title, o.Matcher.Options)
				}
			}
		}
	}
}

// TestColoursHaveWords: what is told by a colour is told by a word as well, and red is never set against green.
func TestColoursHaveWords(t *testing.T) {
	for name, d := range load(t) {
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
						t.Errorf("%s: %s: %s has a colour and no word", name, p.Title, value)
					}
				}
			}
			if len(p.FieldConfig.Defaults.Mappings) == 0 && p.Type == "state-timeline" {
				t.Errorf("%s: %s: states have no words", name, p.Title)
			}
		}
		if m := regexp.MustCompile(`"[a-z-]*green"|palette-classic[a-z-]*|continuous-GrYlRd|continuous-RdYlGr`).FindString(d.text); m != "" {
			t.Errorf("%s: %s: people who do not tell red from green cannot read it", name, m)
		}
	}
}

// builtIn are variables of Grafana itself.
var builtIn = regexp.MustCompile(`^__(rate_interval|range|url_time_range|all|field\.labels\.\w+|data\.fields\.\w+|value\.raw)$`)

// TestVariables: each that is used exists, and each that there is can be chosen where there is no such label.
func TestVariables(t *testing.T) {
	known := metrics(t)
	for name, d := range load(t) {
		for _, m := range regexp.MustCompile(`\$(?:(\w+)|\{([\w.]+)(?::\w+)?\})`).FindAllStringSubmatch(d.text, -1) {
			used := m[1] + m[2]
			if !builtIn.MatchString(used) && !slices.ContainsFunc(d.Templating.List, func(v variable) bool { return v.Name == used }) {
				t.Errorf("%s: no variable %s", name, m[0])
			}
		}
		for i, v := range d.Templating.List {
			want := []string{"datasource", "cluster", "job", "instance", "device"}
			if name == "subnet.json" {
				want[4] = "switch"
			}
			if v.Name != want[i] {
				t.Errorf("%s: variable %d is %s, want %s", name, i, v.Name, want[i])
			}
			if !strings.Contains(d.text, "$"+v.Name) && !strings.Contains(d.text, "${"+v.Name) {
				t.Errorf("%s: variable %s is not used", name, v.Name)
			}
			if v.Type == "query" {
				m := labelValues.FindStringSubmatch(v.Definition)
				if m == nil || v.Datasource != chosen || !slices.Contains(labels(nodes(t, m[1])[0], known), m[2]) {
					t.Errorf("%s: variable %s: %v %s, want label_values(…) of the chosen data source, of a label that there is", name, v.Name, v.Datasource, v.Definition)
				}
			}
			if v.Name == "cluster" && (!v.IncludeAll || v.AllValue != ".*") {
				t.Errorf("%s: cluster: hosts without that label cannot be chosen", name)
			}
		}
	}
}

// TestLinks: to dashboards that there are.
func TestLinks(t *testing.T) {
	for name, d := range load(t) {
		links := regexp.MustCompile(`\bd/([\w-]+)\?`).FindAllStringSubmatch(d.text, -1)
		if len(links) == 0 {
			t.Errorf("%s: nothing leads to a host", name)
		}
		for _, m := range links {
			if !slices.Contains(slices.Collect(maps.Values(uids)), m[1]) {
				t.Errorf("%s: no dashboard %s", name, m[1])
			}
		}
		if len(d.Annotations.List) != 1 || d.Annotations.List[0].Datasource != chosen {
			t.Errorf("%s: wants the alerts as marks, of the chosen data source", name)
		}
	}
}
