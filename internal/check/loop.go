package check

import (
	"regexp"
	"slices"
	"strings"
)

// joinCommands returns commands that differ in one name only as a loop over the names; others as they are.
func joinCommands(commands []string) []string {
	if len(commands) < 2 {
		return commands
	}
	if loop := loopOf(commands); loop != "" {
		return []string{loop}
	}
	var parts []string // setpci -s A ...; setpci -s B ...
	for _, c := range commands {
		if strings.ContainsAny(c, "'\"$(#") {
			return commands
		}
		parts = append(parts, strings.Split(c, "; ")...)
	}
	if loop := loopOf(parts); loop != "" {
		return []string{loop}
	}
	return commands
}

// programs begin the commands that may be in a loop: other remedies are prose.
var programs = []string{
	"dcb", "echo", "ethtool", "for", "ip", "mkdir", "mlnx_qos", "mlxconfig", "setpci", "sysctl",
}

const (
	loopName = "$d"
	gapMark  = "\x00" // plain text has none
)

// loopNames are PCI addresses, then names without a dot, then with one.
var loopNames = []*regexp.Regexp{
	regexp.MustCompile(`[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]`),
	regexp.MustCompile(`[A-Za-z0-9_:@-]+`), regexp.MustCompile(`[A-Za-z0-9_:@.-]+`),
}

// loopOf returns a loop over the names in which commands differ; empty if they differ in anything else, or if the name
// is in quotes.
func loopOf(commands []string) string {
	first, _, _ := strings.Cut(commands[0], " ")
	if !slices.Contains(programs, first) || strings.Contains(commands[0], loopName) {
		return ""
	}
	for _, pattern := range loopNames {
		var names []string
		template := ""
		for i, c := range commands {
			other := commands[(i+1)%len(commands)]
			name := nameAt(pattern, c, firstDifference(c, other))
			t := strings.ReplaceAll(c, name, gapMark)
			if name == "" || strings.HasPrefix(name, "-") || template != "" && t != template ||
				slices.Contains(names, name) {
				template = ""
				break
			}
			template, names = t, append(names, name)
		}
		if template == "" || strings.Count(template, gapMark) == 0 || inQuotes(template) {
			continue
		}
		body, comment, _ := strings.Cut(template, " # ")
		if strings.Contains(comment, gapMark) {
			continue
		}
		if comment != "" {
			comment = " # " + comment
		}
		return "for d in " + strings.Join(names, " ") + "; do " + fillGaps(body) + "; done" + comment
	}
	return ""
}

// firstDifference returns the index of the first byte in which a differs from b.
func firstDifference(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return i
}

// nameAt returns the name around an index; empty if there is none.
func nameAt(pattern *regexp.Regexp, s string, at int) string {
	for _, m := range pattern.FindAllStringIndex(s, -1) {
		if m[0] <= at && at <= m[1] {
			return s[m[0]:m[1]]
		}
	}
	return ""
}

// inQuotes reports whether a shell would not expand a variable in one of the gaps.
func inQuotes(template string) bool {
	quoted := false
	for i := range len(template) {
		switch template[i] {
		case '\'':
			quoted = !quoted
		case gapMark[0]:
			if quoted {
				return true
			}
		}
	}
	return quoted
}

var continuesName = regexp.MustCompile(`^[A-Za-z0-9_\[]`)

// fillGaps puts the variable into the gaps, in braces where a name goes on after it.
func fillGaps(body string) string {
	parts := strings.Split(body, gapMark)
	var out strings.Builder
	for i, p := range parts {
		out.WriteString(p)
		if i == len(parts)-1 {
			break
		}
		if continuesName.MatchString(parts[i+1]) {
			out.WriteString("${d}")
		} else {
			out.WriteString(loopName)
		}
	}
	return out.String()
}
