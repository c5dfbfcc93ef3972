package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const marked = `      - alert: RDMAX
        annotations:
          evidence: |-
            {{- /* identity of device */ -}}
            whatever stood here
            {{- /* end of identity */}}
            State: down.
`

// TestFilled: text between the markers is generated once, text around them is unchanged.
func TestFilled(t *testing.T) {
	once, err := filled(marked)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(once, "whatever") || !strings.Contains(once, "alertname='RDMAX'") ||
		!strings.HasSuffix(once, "            {{- /* end of identity */}}\n            State: down.\n") {
		t.Error(once)
	}
	for _, line := range strings.Split(once, "\n")[3:] {
		if line != "" && !strings.HasPrefix(line, "            ") {
			t.Errorf("indentation: %q", line)
		}
	}
	if twice, err := filled(once); err != nil || twice != once {
		t.Errorf("%v\n%s", err, twice)
	}
}

const ends = `      - alert: RDMAY
        annotations:
          action: |-
            {{- /* ends of link */ -}}
            {{- /* end of ends */ -}}
            Clean the cable at {{ $rx }}.
`

// TestFilledEnds: the ends of a link are a block like the identity, beside it in the same file.
func TestFilledEnds(t *testing.T) {
	once, err := filled(marked + ends)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(once, "alertname='RDMAX'") ||
		!strings.Contains(once, "            {{- $tx := $there }}{{ $rx := $here }}") ||
		!strings.HasSuffix(once, "Clean the cable at {{ $rx }}.\n") {
		t.Error(once)
	}
	if twice, err := filled(once); err != nil || twice != once {
		t.Errorf("%v\n%s", err, twice)
	}
}

func TestFilledRejects(t *testing.T) {
	for text, want := range map[string]string{
		strings.Replace(marked, "of device", "of bridge", 1):              "line 4: unknown object bridge",
		strings.Replace(marked, "end of identity", "the end", 1):          `line 4: block "identity" has no end`,
		strings.Replace(marked, "end of identity", "the end", 1) + marked: `line 11: block "identity" of line 4 has no end`,
		strings.Replace(ends, "end of ends", "end of identity", 1):        `line 4: block "ends" has no end`,
	} {
		if _, err := filled(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestRun: -check reports each stale file and writes none; without it they are written.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "node", "x.rules.yml")
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(marked), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, true); err == nil || !strings.Contains(err.Error(), "x.rules.yml is stale: go run ./rules/gen") {
		t.Error(err)
	}
	if b, _ := os.ReadFile(file); string(b) != marked {
		t.Error("-check writes")
	}
	if err := run(dir, false); err != nil {
		t.Error(err)
	}
	if err := run(dir, true); err != nil {
		t.Error(err)
	}
	if err := run(t.TempDir(), true); err == nil {
		t.Error("a directory without rules")
	}
}
