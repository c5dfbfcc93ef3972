//go:build !race

package cli

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/collector"
	"rdma_exporter/docs/runbooks"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/web"
	"rdma_exporter/rules"
)

// documents returns the pages that people read, by their path from the root of the sources.
func documents(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	must(t, filepath.WalkDir("../..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel("../..", p)
		if err != nil {
			return err
		}
		if d.IsDir() && (name == "bin" || name == "fixtures" || name == "test/contributing/testdata" ||
			strings.HasPrefix(name, ".") && name != ".") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".md") {
			b, err := os.ReadFile(p)
			out[name] = string(b)
			return err
		}
		return nil
	}))
	if len(out) < 50 {
		t.Fatalf("%d pages only", len(out))
	}
	return out
}

var (
	fenced      = regexp.MustCompile("(?ms)^```.*?^```$")
	spans       = regexp.MustCompile("`[^`\n]+`")
	link        = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading     = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	punctuation = regexp.MustCompile(`[^\p{L}\p{N}_-]`) // of a heading, in its anchor
)

// anchors returns the anchors of the headings of a page, as GitHub generates them.
func anchors(text string) (out []string) {
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		a := strings.ReplaceAll(strings.ToLower(m[1]), " ", "-")
		out = append(out, punctuation.ReplaceAllString(a, ""))
	}
	return out
}

// TestDocsLinks: what a page links to is there, down to the heading.
func TestDocsLinks(t *testing.T) {
	pages, headings := documents(t), map[string][]string{}
	for name, text := range pages {
		headings[name] = anchors(text)
	}
	for name, text := range pages {
		t.Run(name, func(t *testing.T) {
			for _, m := range link.FindAllStringSubmatch(spans.ReplaceAllString(fenced.ReplaceAllString(text, ""), ""), -1) {
				target, anchor, _ := strings.Cut(m[1], "#")
				if strings.Contains(target, "://") {
					continue
				}
				to := name
				if target != "" {
					to = path.Join(path.Dir(name), target)
				}
				if _, err := os.Stat(filepath.Join("../..", to)); err != nil {
					t.Errorf("%s is not there", m[1])
				} else if anchor != "" && !slices.Contains(headings[to], anchor) {
					t.Errorf("%s: no such heading", m[1])
				}
			}
		})
	}
}

var (
	commandLine = regexp.MustCompile(`(?m)^ *(?:\$ |Look: )?(?:\S*/)?rdma_exporter((?: +[^|;&#\n]*)?)`)
	longFlag    = regexp.MustCompile(`(?:^|[\s\[(])--([a-z][a-z0-9.-]*)`)
	dottedFlag  = regexp.MustCompile("^`--([a-z]+\\.[a-z0-9.-]+)")
)

// TestDocsCommands: the commands and flags of the program that pages name are there.
func TestDocsCommands(t *testing.T) {
	flags, commands := map[string]bool{}, map[string]bool{}
	note := func(all []*kingpin.FlagModel) {
		for _, f := range all {
			flags[f.Name], flags["no-"+f.Name] = true, flags["no-"+f.Name] || f.IsBoolFlag()
		}
	}
	m := CommandLine()
	note(m.Flags)
	for _, c := range m.FlattenedCommands() {
		note(c.Flags)
		first, _, _ := strings.Cut(c.FullCommand, " ")
		commands[first] = true
	}
	reference := documents(t)["docs/commands.md"]
	for name := range commands {
		if name != "help" && !strings.Contains(reference, "`"+name+" ") && !strings.Contains(reference, "`"+name+"`") {
			t.Errorf("docs/commands.md has no command %s", name)
		}
	}
	for name, text := range documents(t) {
		t.Run(name, func(t *testing.T) {
			code := fenced.FindAllString(text, -1)
			for _, s := range spans.FindAllString(fenced.ReplaceAllString(text, ""), -1) {
				if f := dottedFlag.FindStringSubmatch(s); f != nil && !flags[f[1]] && !strings.HasSuffix(f[1], ".") {
					t.Errorf("there is no flag %s", s)
				}
				code = append(code, strings.Trim(s, "`"))
			}
			for _, c := range commandLine.FindAllStringSubmatch(strings.Join(code, "\n"), -1) {
				for _, f := range longFlag.FindAllStringSubmatch(c[1], -1) {
					if !flags[f[1]] {
						t.Errorf("there is no flag --%s: rdma_exporter%s", f[1], c[1])
					}
				}
				if words := strings.Fields(c[1]); len(words) > 0 && !strings.Contains(c[1], "{{") &&
					regexp.MustCompile(`^[a-z]+(-[a-z]+)?$`).MatchString(words[0]) && !commands[words[0]] {
					t.Errorf("there is no command %s: rdma_exporter%s", words[0], c[1])
				}
			}
		})
	}
}

// TestDocsCollectors: the README says of each collector what it collects.
func TestDocsCollectors(t *testing.T) {
	readme := documents(t)["README.md"]
	for _, c := range collector.All(collector.Options{}) {
		if !strings.Contains(readme, "\n| `"+c.Name+"` | ") {
			t.Errorf("README.md has nothing on the collector %s", c.Name)
		}
	}
}

// TestDocsNames: the metrics and alerts that pages name are there.
func TestDocsNames(t *testing.T) {
	metrics, alerts := map[string]bool{}, map[string]bool{}
	for _, c := range collector.All(collector.Options{}) {
		for _, d := range c.Descs {
			metrics[d.Name] = true
		}
	}
	for _, d := range slices.Concat(rounds.Descs, web.Descs) {
		metrics[d.Name] = true
	}
	alertName := regexp.MustCompile(`(?m)^ *- alert: (\S+)$`)
	fsys, files, err := rules.Both()
	must(t, err)
	for _, file := range files {
		b, err := fs.ReadFile(fsys, file)
		must(t, err)
		for _, m := range alertName.FindAllSubmatch(b, -1) {
			alerts[string(m[1])] = true
		}
	}
	metrics["rdma_port_neighbour_info"] = true // the rules on switches read it where something else exports it
	metric := regexp.MustCompile(`(?:^|[^\w:])(rdma_(?:port|device|gpu|gdr|transceiver|pcie|wire|scrape|alerting|detection|state|config|driver|host|kernel|bond)_[a-z0-9_]*[a-z0-9])\b[^*…{_:(]`)
	alerts["RDMAFabricUnhealthy"] = true // a condition of node problem detector
	alert := regexp.MustCompile(`\b(RDMA[A-Z][A-Za-z0-9]+)\b`)
	for name, text := range documents(t) {
		t.Run(name, func(t *testing.T) {
			if name == "CHANGELOG.md" { // what was renamed has its old name there
				return
			}
			for _, m := range metric.FindAllStringSubmatch(text, -1) {
				if base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(m[1], "_bucket"), "_sum"),
					"_count"); !metrics[m[1]] && !metrics[base] {
					t.Errorf("there is no metric %s", m[1])
				}
			}
			for _, m := range alert.FindAllStringSubmatch(text, -1) {
				if _, former := runbooks.Former(m[1]); !alerts[m[1]] && !(former && name == "docs/alerts.md") {
					t.Errorf("there is no alert %s", m[1])
				}
			}
		})
	}
}
