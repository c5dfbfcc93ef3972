package page

import (
	"bytes"
	"strings"
	"testing"
)

// TestRunbookLinks: links lead to served pages and reasons, other links become text; reasons have the ids that links
// use.
func TestRunbookLinks(t *testing.T) {
	for in, want := range map[string]string{
		"[a](RDMAPortDown.md)":              `<p><a href="RDMAPortDown">a</a></p>`,
		"[a](RDMAExporterDegraded.md#gpus)": `<p><a href="RDMAExporterDegraded#gpus">a</a></p>`,
		"[a `b`](#gpus_paused)":             `<p><a href="#gpus_paused">a <code>b</code></a></p>`,
		"[a](https://docs.example/b#c)":     `<p><a href="https://docs.example/b#c">a</a></p>`,
		"[a](../install.md#memory)":         `<p>a</p>`,
		"[a](RDMANothing.md#gpus)":          `<p>a</p>`,
		"[a](javascript:alert(1))":          `<p>a</p>`,
		"# RDMAExporterDegraded":            `<h1>RDMAExporterDegraded</h1>`,
		"## Meaning":                        `<h2>Meaning</h2>`,
		"### gpus_paused":                   `<h3 id="gpus_paused">gpus_paused</h3>`,
		`### "><script>`:                    `<h3 id="&quot;&gt;&lt;script&gt;">&quot;&gt;<!-- raw HTML omitted --></h3>`,
	} {
		var b bytes.Buffer
		if err := markdown.Convert([]byte(in+"\n"), &b); err != nil || strings.TrimSpace(b.String()) != want {
			t.Errorf("%s: %s, %v, want %s", in, b.String(), err, want)
		}
	}
}
