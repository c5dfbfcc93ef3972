package ruleplay

import (
	"os"
	"strings"
	"testing"
)

// Write writes a part of docs/verification.md, between a mark with its name and the next end.
func Write(t testing.TB, name, part string) {
	t.Helper()
	const page, end = "../../docs/verification.md", "<!-- end -->"
	begin := "<!-- " + name + " -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(text), begin)
	_, after, ends := strings.Cut(rest, end)
	if !found || !ends {
		t.Fatalf("%s has no %s with an %s behind it", page, strings.TrimSpace(begin), end)
	}
	if err := os.WriteFile(page, []byte(head+begin+part+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
