package tune

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// editedText is a rule file as a sequence of pieces. The shipped files have a fixed indentation: groups 0, rules 2,
// keys of a rule 4, annotations 6 spaces, and the labels of a rule on one line.
type editedText struct{ pieces []piece }

// piece is a rule, or the text before a group's rules.
type piece struct {
	head string // where rule is nil
	rule *rule
}

type rule struct {
	alert bool
	name  string
	lead  string // blank lines and comments before it
	text  string
}

var (
	ruleLine = regexp.MustCompile(`^  - (alert|record): (\S+)\n$`)
	forLine  = regexp.MustCompile(`(?m)^    for: \S+\n`)
	// labels of an alert: the text before the value, and the value
	severityLabel = regexp.MustCompile(`(?m)^(    labels: \{(?:.*, )?severity: )(\w+)`)
	drainLabel    = regexp.MustCompile(`(?m)^(    labels: \{(?:.*, )?drain: )("?\w+"?)`)
	// an annotation, and all annotations of a rule
	anchored = []*regexp.Regexp{
		regexp.MustCompile(`(?m)^      \w+: &(\w+)( .*(?:\n(?: {7}.*)?)*)`),
		regexp.MustCompile(`(?m)^    annotations: &(\w+)((?:\n(?: {5}.*)?)*)`),
	}
)

func (r *rule) severity() string {
	if m := severityLabel.FindStringSubmatch(r.text); m != nil {
		return m[2]
	}
	return ""
}

// split splits a file into rules. Blank lines and comments before a rule belong to it.
func split(s string) *editedText {
	t := &editedText{}
	var current *rule
	head, pending := "", "" // pending: lines that belong to what the next line starts
	for line := range strings.Lines(s) {
		trimmed := strings.TrimSpace(line)
		indent := len(line) - len(strings.TrimLeft(line, " "))
		m := ruleLine.FindStringSubmatch(line)
		switch {
		case m != nil:
			if head != "" {
				t.pieces = append(t.pieces, piece{head: head})
				head = ""
			}
			current = &rule{alert: m[1] == "alert", name: m[2], lead: pending, text: line}
			t.pieces = append(t.pieces, piece{rule: current})
			pending = ""
		case trimmed == "" || strings.HasPrefix(trimmed, "#") && indent <= 2:
			pending += line
		case current != nil && indent > 2:
			current.text += pending + line
			pending = ""
		default:
			current, head, pending = nil, head+pending+line, ""
		}
	}
	if head += pending; head != "" {
		t.pieces = append(t.pieces, piece{head: head})
	}
	return t
}

// Alerts returns the names of the alerts in a rule file, one for each rule.
func Alerts(file []byte) (out []string) {
	for _, p := range split(string(file)).pieces {
		if p.rule != nil && p.rule.alert {
			out = append(out, p.rule.name)
		}
	}
	return out
}

func (t *editedText) join() string {
	var b strings.Builder
	for _, p := range t.pieces {
		b.WriteString(p.head)
		if p.rule != nil {
			b.WriteString(p.rule.lead + p.rule.text)
		}
	}
	return b.String()
}

func (c *changes) apply(t *editedText) error {
	for _, p := range t.pieces {
		if r := p.rule; r != nil {
			c.wait(r)
			if err := c.selects(r); err != nil {
				return fmt.Errorf("rule %s: %w", r.name, err)
			}
		}
	}
	for _, p := range t.pieces {
		if r := p.rule; r != nil && r.alert {
			c.label(r)
		}
	}
	c.leaveOut(t)
	return nil
}

// label sets severity and labels of an alert. Alerts of severity info do not drain.
func (c *changes) label(r *rule) {
	var add []string
	if by := c.severities[r.name]; by != nil {
		shipped := r.severity()
		add = append(add, DefaultSeverity+": "+shipped)
		if to := by[shipped]; to != "" {
			r.text = severityLabel.ReplaceAllString(r.text, "${1}"+to)
			switch {
			case to == "info" && drainLabel.MatchString(r.text):
				r.text = drainLabel.ReplaceAllString(r.text, `${1}"no"`)
			case to == "info" && shipped != "info": // the label of its fault
				add = append(add, `drain: "no"`)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Labels)) {
		add = append(add, name+": "+strconv.Quote(c.Labels[name]))
	}
	for _, line := range slices.Backward(add) {
		r.text = strings.Replace(r.text, "\n    labels: {", "\n    labels: {"+line+", ", 1)
	}
}

// leaveOut removes alerts. A YAML anchor in a removed alert moves to its first reference. Groups without rules are
// removed.
func (c *changes) leaveOut(t *editedText) {
	if len(c.LeaveOut) == 0 {
		return
	}
	var gone []*rule
	t.pieces = slices.DeleteFunc(t.pieces, func(p piece) bool {
		out := p.rule != nil && p.rule.alert && slices.Contains(c.LeaveOut, p.rule.name)
		if out {
			gone = append(gone, p.rule)
		}
		return out
	})
	for _, r := range gone {
		for _, form := range anchored {
			for _, m := range form.FindAllStringSubmatch(r.text, -1) {
				for _, p := range t.pieces {
					if p.rule != nil && strings.Contains(p.rule.text, ": *"+m[1]+"\n") {
						p.rule.text = strings.Replace(p.rule.text, ": *"+m[1]+"\n", ": &"+m[1]+strings.TrimRight(m[2], "\n")+"\n", 1)
						break
					}
				}
			}
		}
	}
	for i := len(t.pieces) - 1; i >= 0; i-- {
		last := i+1 == len(t.pieces) || t.pieces[i+1].rule == nil
		if file, _, group := strings.Cut(t.pieces[i].head, "- name:"); last && group {
			t.pieces[i].head = file
		}
	}
}

// wait sets the `for` of an alert. Without one it stands before keep_firing_for, which each alert has.
func (c *changes) wait(r *rule) {
	v := c.Waits[r.name]
	if !r.alert || v == "" {
		return
	}
	r.text = forLine.ReplaceAllString(r.text, "")
	r.text = strings.Replace(r.text, "\n    keep_firing_for:", "\n    for: "+v+"\n    keep_firing_for:", 1)
}
