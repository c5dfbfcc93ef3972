package setup

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/snapshot/hostdata"
)

// TestChecks: each entry of the table is complete, and its id is of use in a file of the site.
func TestChecks(t *testing.T) {
	if len(Checks) < 40 || len(Files) < 10 {
		t.Errorf("%d checks, %d files", len(Checks), len(Files))
	}
	seen := map[string]bool{}
	domain := 0
	for _, c := range Checks {
		if seen[c.ID] || !regexp.MustCompile(`^[a-z][a-z0-9_]+$`).MatchString(c.ID) {
			t.Errorf("%s: not an id of its own", c.ID)
		}
		seen[c.ID] = true
		if i := slices.Index(Domains(), c.Domain); i < domain {
			t.Errorf("%s: domain %s is not in the order of Domains", c.ID, c.Domain)
		} else {
			domain = i
		}
		for name, text := range map[string]string{
			"Name": c.Name, "Read": c.Read, "Wanted": c.Wanted, "Why": c.Why, "Remedy": c.Remedy, "Source": c.Source,
		} {
			if text == "" || strings.Contains(text, "\n") {
				t.Errorf("%s: %s is %q", c.ID, name, text)
			}
		}
		for _, part := range regexp.MustCompile(`\{\w+\}`).FindAllString(c.Remedy, -1) {
			if !slices.Contains([]string{"{device}", "{port}", "{netdev}", "{address}", "{wanted}", "{bridge}"}, part) {
				t.Errorf("%s: remedy has %s", c.ID, part)
			}
		}
		if c.find == nil {
			t.Errorf("%s is not read", c.ID)
		}
	}
	for _, f := range Files {
		if strings.HasPrefix(f, "/") {
			t.Errorf("%s: paths have no leading slash", f)
		}
	}
}

// TestRow: what is wanted comes from the site, else from the finding; what is unknown never differs, and a
// recommendation is never more than info.
func TestRow(t *testing.T) {
	c := &Check{ID: "x", Domain: PCIe, Alert: "RDMAX", Remedy: "set {device} {wanted}", Source: "guide"}
	at := object{device: "mlx5_0"}
	for name, k := range map[string]struct {
		found finding
		site  string
		want  hostdata.SetupRow // state, severity, alert, basis, remedy
		none  bool
	}{
		"as wanted":            {found: finding{object: at, found: "on", want: "on", meets: true, basis: hostdata.SetupGuide}, want: hostdata.SetupRow{State: "ok", Severity: "info", Basis: "guide"}},
		"differs":              {found: finding{object: at, found: "off", want: "on", basis: hostdata.SetupGuide}, want: hostdata.SetupRow{State: "differs", Severity: "info", Basis: "guide", Remedy: "set mlx5_0 on"}},
		"contradicts":          {found: finding{object: at, found: "off", want: "on", basis: hostdata.SetupMachine, contradicts: true}, want: hostdata.SetupRow{State: "differs", Severity: "warning", Alert: "RDMAX", Basis: "machine", Remedy: "set mlx5_0 on"}},
		"unknown":              {found: finding{object: at, want: "on", unknown: "denied", basis: hostdata.SetupMachine, contradicts: true}, want: hostdata.SetupRow{State: "unknown", Severity: "info", Basis: "machine"}},
		"site differs":         {found: finding{object: at, found: "on", want: "on", meets: true, basis: hostdata.SetupGuide}, site: "off", want: hostdata.SetupRow{State: "differs", Severity: "info", Basis: "site", Remedy: "set mlx5_0 off"}},
		"site accepts":         {found: finding{object: at, found: "off", want: "on", basis: hostdata.SetupGuide}, site: "o[f]*|none", want: hostdata.SetupRow{State: "ok", Severity: "info", Basis: "site"}},
		"site, unknown":        {found: finding{object: at, unknown: "denied"}, site: "off", want: hostdata.SetupRow{State: "unknown", Severity: "info", Basis: "site"}},
		"site: any":            {found: finding{object: at, found: "off", want: "on"}, site: "any", none: true},
		"nothing is wanted":    {found: finding{object: at, found: "off"}, none: true},
		"only the site wants":  {found: finding{object: at, found: "off"}, site: "on", want: hostdata.SetupRow{State: "differs", Severity: "info", Basis: "site", Remedy: "set mlx5_0 on"}},
		"a name for the shell": {found: finding{object: object{device: "a b'$(x)"}, found: "off", want: "on"}, want: hostdata.SetupRow{State: "differs", Severity: "info", Remedy: `set 'a b'\''$(x)' on`}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := c.row(k.found, func(setting, device string, _ int, _ string) string {
				if setting != "x" || device == "" {
					t.Errorf("asked for %s of %q", setting, device)
				}
				return k.site
			})
			if ok == k.none {
				t.Fatalf("row %v", ok)
			}
			got = hostdata.SetupRow{
				State: got.State, Severity: got.Severity, Alert: got.Alert, Basis: got.Basis, Remedy: got.Remedy,
			}
			if ok && !reflect.DeepEqual(got, k.want) {
				t.Errorf("%+v, want %+v", got, k.want)
			}
		})
	}
}

// TestDeviations: objects with the same value are one deviation, and its remedies are all kept.
func TestDeviations(t *testing.T) {
	row := func(thing, found string, state hostdata.SetupState) hostdata.SetupRow {
		return hostdata.SetupRow{Setting: "x", Object: thing, Found: found, State: state, Remedy: "set " + thing}
	}
	for name, k := range map[string]struct {
		rows []hostdata.SetupRow
		want []string
	}{
		"none": {[]hostdata.SetupRow{row("a", "1", "ok")}, nil},
		"all":  {[]hostdata.SetupRow{row("a", "1", "differs"), row("b", "1", "differs")}, []string{"all: set a, set b"}},
		"some": {[]hostdata.SetupRow{row("a", "1", "differs"), row("b", "1", "differs"), row("c", "2", "ok")}, []string{"a,b: set a, set b"}},
		"two":  {[]hostdata.SetupRow{row("a", "1", "differs"), row("b", "2", "differs")}, []string{"a: set a", "b: set b"}},
		"only": {[]hostdata.SetupRow{row("host", "1", "differs")}, []string{"host: set host"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range Deviations(k.rows, hostdata.SetupDiffers) {
				got = append(got, d.Object+": "+strings.Join(d.Remedies, ", "))
			}
			if !slices.Equal(got, k.want) {
				t.Errorf("%q, want %q", got, k.want)
			}
		})
	}
}
