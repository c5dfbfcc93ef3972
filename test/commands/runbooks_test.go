package commands_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/dashboards"
	"rdma_exporter/docs/runbooks"
)

// TestRunbookURL: written rules link to where runbooks are, and to nothing where nobody says so.
func TestRunbookURL(t *testing.T) {
	for base, want := range map[string]string{
		"":                                       "",
		"https://wiki.example/rdma/":             "https://wiki.example/rdma/RDMAExporterDown",
		"http://gpu-1:10879/runbooks":            "http://gpu-1:10879/runbooks/RDMAExporterDown",
		"https://git.example/docs/%s.md?plain=1": "https://git.example/docs/RDMAExporterDown.md?plain=1",
		"https://wiki.example/index.php?title=%s": "https://wiki.example/index.php?title=RDMAExporterDown",
	} {
		code, out, errs := runProgram(t, "rules", "--set=central", "--runbook-url="+base)
		if code != 0 || strings.Contains(out, "docs/runbooks/") {
			t.Errorf("%q: exit %d, %s", base, code, errs)
		}
		if has := strings.Contains(out, "\n      runbook_url: "+want+"\n"); has != (base != "") ||
			!has && strings.Contains(out, "runbook_url") {
			t.Errorf("%q: no %s in\n%s", base, want, out)
		}
	}
	for _, base := range []string{
		"wiki", "/runbooks", "ftp://wiki.example", "https://", "https://wiki.example/a b", "https://wiki.example/#a",
		`https://wiki.example/"`,
	} {
		for _, args := range [][]string{{"rules", "--set=central"}, {"dashboards", "-o", t.TempDir()}, {"serve"}} {
			if code, _, errs := runProgram(t, append(args, "--runbook-url="+base)...); code != 2 ||
				!strings.Contains(errs, "--runbook-url="+base+": must be http://HOST/…") {
				t.Errorf("%s %q: exit %d, %s", args[0], base, code, errs)
			}
		}
	}
}

// TestRunbookLinksOfDashboards: with an address each table of alerts links to it, and Grafana still reads the file.
func TestRunbookLinksOfDashboards(t *testing.T) {
	dir := t.TempDir()
	if code, _, errs := runProgram(t, "dashboards", "-o", dir, "--runbook-url=https://git.example/docs/%s.md"); code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	_, names, err := dashboards.All()
	must(t, err)
	links := map[string]int{}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		if !json.Valid(text) {
			t.Errorf("%s is no JSON", name)
		}
		links[name] = strings.Count(string(text), `"url":"https://git.example/docs/${__value.raw}.md"`)
		if strings.Contains(string(text), "/runbooks/${__value.raw}") {
			t.Errorf("%s links to the runbooks of an exporter", name)
		}
	}
	for name, tables := range map[string]int{"fabric.json": 2, "node.json": 2, "subnet.json": 1} {
		if links[name] != tables {
			t.Errorf("%s has %d links to runbooks, want one for each of %d tables with alerts", name, links[name], tables)
		}
	}
}

// TestRunbookCommand prints one, lists all, and says what may have been meant.
func TestRunbookCommand(t *testing.T) {
	want, ok := runbooks.Text("RDMAPortDown")
	if code, out, errs := runProgram(t, "runbook", "RDMAPortDown"); !ok || code != 0 || out != string(want) || errs != "" {
		t.Errorf("exit %d, %s, %s", code, out, errs)
	}
	checkRunbookList(t)
	for name, want := range map[string]string{
		"rdmaportdwn":       "unknown alert rdmaportdwn: did you mean RDMAPortDown",
		"Zzz":               "unknown alert Zzz: names: rdma_exporter runbook",
		"RDMAReloadFaild":   "unknown alert RDMAReloadFaild: did you mean RDMAReloadFailed",
		"RDMAReloadFailed.": "unknown alert RDMAReloadFailed.: did you mean RDMAReloadFailed",
		"../runbooks/a.md":  "unknown alert",
	} {
		if code, out, errs := runProgram(t, "runbook", name); code != 2 || out != "" || !strings.Contains(errs, want) ||
			strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit %d, %q", name, code, errs)
		}
	}
}

// TestRunbookOfFormerName: the current one, below the line that has its name.
func TestRunbookOfFormerName(t *testing.T) {
	for _, name := range runbooks.FormerNames() {
		now, _ := runbooks.Former(name)
		text, ok := runbooks.Text(now.Alert)
		want := name + " is now " + now.String() + ".\n\n" + string(text)
		if code, out, errs := runProgram(t, "runbook", name); !ok || code != 0 || out != want || errs != "" {
			t.Errorf("%s: exit %d, %.200s, %s", name, code, out, errs)
		}
	}
	const first = "RDMAExporterCPUStarved is now RDMAExporterDegraded, reason cpu.\n\n# RDMAExporterDegraded\n"
	if _, out, _ := runProgram(t, "runbook", "RDMAExporterCPUStarved"); !strings.HasPrefix(out, first) {
		t.Errorf("%.200s", out)
	}
}

// checkRunbookList: one line for each alert, the meanings in one column.
func checkRunbookList(t *testing.T) {
	t.Helper()
	code, out, errs := runProgram(t, "runbook")
	lines, names := strings.Split(strings.TrimSuffix(out, "\n"), "\n"), runbooks.Names()
	if code != 0 || errs != "" || len(lines) != len(names) {
		t.Fatalf("exit %d, %s, %d lines of %d alerts", code, errs, len(lines), len(names))
	}
	column := 0
	for i, name := range names {
		meaning, ok := runbooks.Meaning(name)
		begin, found := strings.CutSuffix(lines[i], "  "+meaning)
		if i == 0 {
			column = len(begin)
		}
		if !ok || !found || len(begin) != column || strings.TrimRight(begin, " ") != name {
			t.Errorf("%s: %q", name, lines[i])
		}
	}
}
