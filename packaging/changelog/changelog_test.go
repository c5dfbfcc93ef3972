//go:build !race

package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestChangelog: that of the project.
func TestChangelog(t *testing.T) {
	t.Chdir("../..")
	if err := run(t.Context(), "", ""); err != nil {
		t.Error(err)
	}
}

const good = `# Changelog

What is above is free.

## [Unreleased]

### Added

- check: one
  that goes on
- two

## [0.2.0] - 2026-03-01

### Fixed

- a fault

### Added

- three

## [0.1.0-rc.1] - 2026-02-01

### Security

- four
`

func TestParse(t *testing.T) {
	log, err := parse(good)
	if err != nil || len(log) != 3 ||
		!slices.Equal(log[0].entries, []entry{{"Added", "check: one\n  that goes on"}, {"Added", "two"}}) ||
		log[2].version != "0.1.0-rc.1" {
		t.Errorf("%+v, %v", log, err)
	}
	for want, text := range map[string]string{
		"[Unreleased] is missing":          "# Changelog\n\n## [0.1.0] - 2026-01-01\n\n### Added\n\n- x\n",
		"line 5: a section is":             "# Changelog\n\n## [Unreleased]\n\n## 0.1.0 - 2026-01-01\n",
		"line 2: a section is":             "## [Unreleased]\n## [01.0.0] - 2026-01-01\n### Added\n- x\n",
		"2026-13-01: a date":               "## [Unreleased]\n## [0.1.0] - 2026-13-01\n### Added\n- x\n",
		"0.1.0 is there twice":             "## [Unreleased]\n## [0.1.0] - 2026-01-02\n### Added\n- x\n## [0.1.0] - 2026-01-01\n### Added\n- x\n",
		"below a version that is older":    "## [Unreleased]\n## [0.1.0] - 2026-01-01\n### Added\n- x\n## [0.2.0] - 2026-01-02\n### Added\n- x\n",
		"has to be the first":              "## [0.1.0] - 2026-01-01\n### Added\n- x\n## [Unreleased]\n",
		"line 2: Feature: there are Added": "## [Unreleased]\n### Feature\n- x\n",
		"line 2: an entry stands below":    "## [Unreleased]\n- x\n",
		"line 3: an entry begins with":     "## [Unreleased]\n### Added\n* x\n",
		"line 3: no entry goes on":         "## [Unreleased]\n### Added\n  x\n",
		"section of 0.1.0 has no entry":    "## [Unreleased]\n## [0.1.0] - 2026-01-01\n",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestRelease(t *testing.T) {
	log, err := parse(good)
	if err != nil {
		t.Fatal(err)
	}
	s, err := log.release("0.2.0")
	if want := "### Added\n\n- three\n\n### Fixed\n\n- a fault\n"; err != nil || s.markdown() != want {
		t.Errorf("got %q, %v, want %q", s.markdown(), err, want)
	}
	for _, version := range []string{"0.1.0", unreleased, "v0.2.0"} {
		if _, err := log.release(version); err == nil {
			t.Errorf("%s has a section", version)
		}
	}
}

// TestSince plays pull requests in a repository of its own.
func TestSince(t *testing.T) {
	const entryless = "## [Unreleased]\n\n### Added\n\n- one\n"
	for _, c := range []struct {
		what    string
		files   map[string]string
		message string
		fails   bool
	}{
		{"the program without a line", map[string]string{"collector/a.go": "x"}, "a change", true},
		{"a rule without a line", map[string]string{"rules/node/a.yml": "x"}, "a change", true},
		{"the program with a line", map[string]string{"collector/a.go": "x", name: entryless + "- two\n"}, "a change", false},
		{"a changelog that only moves", map[string]string{"cmd/a.go": "x", name: "## [Unreleased]\n\n### Added\n\n\n- one\n"}, "a change", true},
		{"a release", map[string]string{"cmd/a.go": "x", name: "## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n\n### Added\n\n- one\n"}, "a change", true},
		{"what no user notices", map[string]string{"internal/a.go": "x"}, "tidy\n\n" + noChangelog, false},
		{"tests", map[string]string{"internal/a_test.go": "x", "rules/tests/a.yml": "x", "internal/cli/testdata/x": "x", "internal/deptest/a.go": "x"}, "a change", false},
		{"documents", map[string]string{"docs/a.md": "x"}, "a change", false},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Chdir(t.TempDir())
			commitFiles(t, map[string]string{name: entryless}, "first", "init", "-q", "-b", "main")
			commitFiles(t, c.files, c.message, "checkout", "-q", "-b", "topic")
			if err := run(t.Context(), "", "main"); (err != nil) != c.fails {
				t.Errorf("got %v, want an error: %v", err, c.fails)
			}
		})
	}
}

// commitFiles writes files and commits them, after a command of git.
func commitFiles(t *testing.T, files map[string]string, message string, before ...string) {
	t.Helper()
	write := func() {
		for f, text := range files {
			if i := strings.LastIndex(f, "/"); i > 0 {
				if err := os.MkdirAll(f[:i], 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(f, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, args := range [][]string{
		before,
		{"add", "-A"},
		{"-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false", "commit", "-q", "-m", message},
	} {
		if args[0] == "add" {
			write()
		}
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
}
