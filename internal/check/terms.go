package check

import (
	"slices"
	"strings"
)

// terms are the sources of expectations in summaries (expect.Source), with their meaning.
var terms = []struct{ text, meaning string }{
	{"by pin", "as set in --config.file"},
	{"by link modes", "the fastest rate that both ends of the link advertise"},
	{"by link partner", "what both ends of the link have enabled"},
	{"by siblings", "as most comparable ports of this host, which have the same role (for a rate also the same board)"},
	{"by high water mark", "the highest that this link has had"},
}

// explained are the meanings of the terms in the summaries, each once.
func (r *Report) explained() (out []string) {
	for _, t := range terms {
		if slices.ContainsFunc(slices.Concat(r.Findings, r.Pending), func(f Finding) bool {
			return strings.Contains(f.Summary, t.text)
		}) {
			out = append(out, "Expected "+t.text+": "+t.meaning)
		}
	}
	return out
}
