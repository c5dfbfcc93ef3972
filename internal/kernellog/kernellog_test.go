package kernellog

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// lines reads a file of testdata without its comments.
func lines(t testing.TB, name string) []string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimRight(line, "\n"); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

func object(e Event) string {
	return strings.Join(strings.Fields(e.PCIAddress+" "+e.Netdev+" "+e.Device), " ")
}

func TestLines(t *testing.T) {
	seen := map[string]bool{}
	all := append(lines(t, "lines.txt"), lines(t, "lines_vendors.txt")...)
	if len(all) < 60 {
		t.Errorf("%d lines", len(all))
	}
	for _, line := range all {
		f := strings.Split(line, "\t")
		if len(f) != 5 {
			t.Fatalf("%d fields: %s", len(f), line)
		}
		e, ok := Parse(f[4])
		kind := string(e.Kind)
		if !ok {
			kind = "-"
		}
		who := object(e)
		if (kind == "transmit_timeout" || kind == "module_refused") && e.PCIAddress == "" {
			who = strings.TrimSpace(who + " " + e.Driver)
		}
		if kind != f[0] || who != f[1] || e.Detail != f[2] {
			t.Errorf("%s\n got %s, %q, %q\nwant %s, %q, %q", f[4], kind, who, e.Detail, f[0], f[1], f[2])
		}
		seen[kind] = true
	}
}

func TestBoot(t *testing.T) {
	for _, line := range lines(t, "boot.txt") {
		if e, ok := Parse(line); ok && e.Kind != DriverLoaded {
			t.Errorf("%s: %+v", line, e)
		}
	}
}

// TestPatterns: each says what it means and where it is from.
func TestPatterns(t *testing.T) {
	for _, p := range Patterns {
		if p.Kind != Ignored && (p.Meaning == "" || p.Source == "" || strings.HasSuffix(p.Meaning, ".")) {
			t.Errorf("%s: meaning %q, source %q", p.Kind, p.Meaning, p.Source)
		}
	}
}

// TestIndex: the index finds each pattern whose expression matches, and few others.
func TestIndex(t *testing.T) {
	all := slices.Concat(lines(t, "lines.txt"), lines(t, "lines_vendors.txt"), lines(t, "boot.txt"))
	forms := make([]*regexp.Regexp, len(Patterns))
	for i := range Patterns {
		forms[i] = regexp.MustCompile(Patterns[i].form)
	}
	found, matching := 0, 0
	for _, line := range all {
		var e Event
		text := e.origin(line[strings.LastIndex(line, "\t")+1:])
		candidates := e.candidates(text)
		found += len(candidates)
		for i := range Patterns {
			p := &Patterns[i]
			ours := p.drivers == nil || p.drivers[e.Driver] || e.Driver == "" && e.Device != ""
			if !ours || !forms[i].MatchString(text) {
				continue
			}
			matching++
			if !slices.ContainsFunc(candidates, func(c *candidate) bool { return c.Pattern == p }) {
				t.Errorf("%s: not found: %s", line, p.form)
			}
		}
	}
	if len(all) < 200 || found > 3*len(all)+matching {
		t.Errorf("%d lines: %d candidates, %d matching", len(all), found, matching)
	}
}

func FuzzParse(f *testing.F) {
	for _, line := range slices.Concat(lines(f, "lines.txt"), lines(f, "lines_vendors.txt"), lines(f, "boot.txt")) {
		f.Add(line[strings.LastIndex(line, "\t")+1:])
	}
	f.Fuzz(func(t *testing.T, line string) {
		e, ok := Parse(line)
		if !ok {
			return
		}
		if len(e.Detail) > maxDetail || strings.ContainsFunc(e.Detail, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%q", e.Detail)
		}
		if e.Kind == Ignored {
			t.Errorf("%+v", e)
		}
	})
}

// BenchmarkParse parses the lines of a boot, of which few are recognised, and lines that are recognised.
func BenchmarkParse(b *testing.B) {
	var known []string
	for _, line := range append(lines(b, "lines.txt"), lines(b, "lines_vendors.txt")...) {
		if kind, _, _ := strings.Cut(line, "\t"); kind != "-" {
			known = append(known, line[strings.LastIndex(line, "\t")+1:])
		}
	}
	for name, all := range map[string][]string{"boot": lines(b, "boot.txt"), "recognised": known} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for _, line := range all {
					Parse(line)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/line")
		})
	}
}
