package runbooks

import (
	"regexp"
	"strings"
	"testing"
)

// sentence is the form of a meaning: a capital first, one full stop, at the end, and no Markdown. A dot within a word
// does not end a sentence (802.3x).
var sentence = regexp.MustCompile("^[A-Z](?:[^.!?`*<>\\[\\]|#\\n]|\\.[^ \\n])+\\.$")

// TestMeaning holds each runbook to the form: title, meaning in one sentence, sections.
func TestMeaning(t *testing.T) {
	const shortest, longest = 20, 90 // longest: a column of a table in a dashboard
	names := Names()
	if len(names) == 0 {
		t.Fatal("no runbooks")
	}
	of := map[string]string{}
	for _, name := range names {
		meaning, ok := Meaning(name)
		if !ok {
			t.Errorf("%s has no sentence below the title", name)
			continue
		}
		if text, _ := Text(name); !strings.HasPrefix(string(text), "# "+name+"\n\n"+meaning+"\n\n## Meaning\n\n") {
			t.Errorf("%s does not begin with title, sentence and the section Meaning", name)
		}
		if n := len(meaning); n < shortest || n > longest {
			t.Errorf("%s: %d characters, not %d to %d: %s", name, n, shortest, longest, meaning)
		}
		if !sentence.MatchString(meaning) {
			t.Errorf("%s: not one sentence of plain text: %s", name, meaning)
		}
		if other, ok := of[meaning]; ok {
			t.Errorf("%s and %s: %s", other, name, meaning)
		}
		of[meaning] = name
	}
	if meaning, ok := Meaning("RDMANothing"); ok || meaning != "" {
		t.Errorf("meaning of an alert without runbook: %q", meaning)
	}
}
