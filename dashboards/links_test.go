package dashboards

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// found returns the addresses of all links of a dashboard: in its header, of panels, of columns, of marks.
func (d dashboard) found() []string {
	var out []string
	for _, m := range regexp.MustCompile(`"url": ?"([^"]+)"|href=\\\\?"(d/[^"\\\\]+)`).
		FindAllStringSubmatch(strings.ReplaceAll(d.text, `\u0026`, "&"), -1) {
		out = append(out, m[1]+m[2])
	}
	return out
}

func (d dashboard) variable(name string) (variable, bool) {
	i := slices.IndexFunc(d.Templating.List, func(v variable) bool { return v.Name == name })
	if i < 0 {
		return variable{}, false
	}
	return d.Templating.List[i], true
}

// TestLinks: a link between dashboards sets variables that its target has, each from one of the same kind: several
// values never become one, and a link that chooses a host or a fabric chooses its job as well.
func TestLinks(t *testing.T) {
	all := load(t)
	for name, d := range all {
		t.Run(name, func(t *testing.T) {
			if len(d.Annotations.List) != 1 || d.Annotations.List[0].Datasource != chosen {
				t.Error("wants the alerts as marks, of the chosen data source")
			}
			for _, address := range d.found() {
				if strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "${__data.fields.") {
					continue // of an exporter, or by the labels of the alert
				}
				uid := strings.Split(strings.TrimPrefix(strings.TrimPrefix(address, "/"), "d/"), "?")[0]
				var target dashboard
				for _, other := range all {
					if other.UID == uid {
						target = other
					}
				}
				if target.UID == "" {
					t.Errorf("%s: no dashboard %s", address, uid)
					continue
				}
				for _, fault := range d.faultsOfLink(address, target) {
					t.Errorf("%s: %s", address, fault)
				}
			}
			if l := d.Links[0]; l.Type != "dashboards" || !l.AsDropdown || !l.IncludeVars ||
				!slices.Equal(l.Tags, []string{"rdma"}) || !slices.Equal(d.Tags, l.Tags) {
				t.Errorf("the header begins with %v, want one menu of all dashboards with the choices: tags %v", l, d.Tags)
			}
			if strings.Contains(d.Title, "/") {
				t.Errorf("%s: the menu shows the common prefix", d.Title)
			}
		})
	}
}

// passed is how a link passes on a choice, which may be of several values.
var passed = regexp.MustCompile(`\$\{(\w+):queryparam\}`)

func (d dashboard) faultsOfLink(address string, target dashboard) (out []string) {
	set := map[string]bool{}
	for _, m := range passed.FindAllStringSubmatch(address, -1) {
		from, ok := d.variable(m[1])
		to, known := target.variable(m[1])
		if !ok || !known || from.Multi != to.Multi {
			out = append(out, m[1]+" is not a variable of both, of one kind")
		}
		set[m[1]] = true
	}
	query, err := url.ParseQuery(strings.SplitN(passed.ReplaceAllString(address, "x=y"), "?", 2)[1])
	if err != nil {
		return append(out, err.Error())
	}
	for param, values := range query {
		name, ok := strings.CutPrefix(param, "var-")
		if !ok {
			continue
		}
		set[name] = true
		if _, known := target.variable(name); !known {
			out = append(out, name+" is not a variable of "+target.UID)
		}
		if m := regexp.MustCompile(`^\$\{(\w+)\}$`).FindStringSubmatch(values[0]); m != nil {
			if from, ok := d.variable(m[1]); !ok || from.Multi {
				out = append(out, m[1]+" may be several, which {a,b} does not pass on")
			}
		}
	}
	if set["host"] && !set["job"] || set["fabric"] && !set["fabric_job"] ||
		set["device"] && !(set["host"] || set["hosts"]) {
		out = append(out, "chooses a target without its job, or a device without its host")
	}
	return out
}
