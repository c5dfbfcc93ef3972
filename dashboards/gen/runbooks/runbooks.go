// Package runbooks reads what dashboards say of an alert from its runbook: the meaning and the first action.
package runbooks

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"rdma_exporter/dashboards/gen/panels"
)

// None is in place of a first action where the runbook has none in its table of reasons.
const None = "see the runbook"

// BySymptom reads the alerts of hosts and of the fleet.
func BySymptom(dir string, texts []panels.Word) (out []panels.Word) {
	var text []byte
	for _, name := range []string{"node/alerts.rules.yml", "central/fleet_alerts.rules.yml"} {
		file, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			panic(err)
		}
		text = append(text, file...)
	}
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`- alert: (\w+)\n +expr: .*symptom="(\w+)"`).FindAllSubmatch(text, -1) {
		for _, w := range texts {
			if reason, ok := strings.CutPrefix(w.Value, string(m[1])+" "); ok && !seen[string(m[2])+reason] {
				seen[string(m[2])+reason] = true
				out = append(out, panels.Word{Value: string(m[2]) + " " + reason, Text: w.Text})
			}
		}
	}
	if len(out) == 0 {
		panic("no alert in " + dir)
	}
	return out
}

// ofReason is a row of the table of reasons in a runbook, and aboutReasons the title of its second column.
var (
	ofReason = regexp.MustCompile("(?m)^\\| \\[`(\\w+)`\\]\\([^)]*\\) \\| ([^|]+) \\| " +
		`(?:(?:critical|warning|info) \| )?([^|]+) \|$`)
	aboutReasons = regexp.MustCompile(`(?m)^\| reason \| what is ([a-z]+) \|`)
)

// markup is what a cell does not render.
var markup = regexp.MustCompile("\\[([^\\]]*)\\]\\([^)]*\\)|`")

// Read reads the line below the title of each runbook, and its reasons.
func Read(dir string) (what, first []panels.Word) {
	names, err := filepath.Glob(filepath.Join(dir, "RDMA*.md"))
	if err != nil || len(names) == 0 {
		panic(fmt.Sprintf("no runbooks in %s: %v", dir, err))
	}
	plain := func(text []byte) string {
		s := markup.ReplaceAllString(string(text), "$1")
		return strings.ToUpper(s[:1]) + s[1:]
	}
	for _, path := range names {
		text, err := os.ReadFile(path)
		if err != nil {
			panic(err)
		}
		title, rest, _ := bytes.Cut(text, []byte("\n"))
		about, _, _ := bytes.Cut(bytes.TrimLeft(rest, "\n"), []byte("\n"))
		if bytes.HasPrefix(about, []byte("#")) {
			continue
		}
		alert := string(bytes.TrimPrefix(title, []byte("# ")))
		what = append(what, panels.Word{Value: alert + " ", Text: strings.TrimSuffix(string(about), ".")})
		lead := ""
		if m := aboutReasons.FindSubmatch(text); m != nil && string(m[1]) == "missing" {
			lead = "Missing: "
		}
		for _, m := range ofReason.FindAllSubmatch(text, -1) {
			of := alert + " " + string(m[1])
			is := plain(m[2])
			if lead != "" {
				is = lead + strings.ToLower(is[:1]) + is[1:]
			}
			what = append(what, panels.Word{Value: of, Text: is})
			first = append(first, panels.Word{Value: of, Text: plain(m[3])})
		}
	}
	return what, append(first, panels.Word{Value: "RDMA.* ", Text: None})
}
