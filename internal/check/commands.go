package check

import (
	"regexp"
	"strings"

	"rdma_exporter/internal/terminal"
	"rdma_exporter/internal/words"
)

// formatCommands returns the commands of a diagnosis, each on one line that the terminal alone breaks, so that it can
// be pasted. Commands that fit on one line together stay there.
func formatCommands(diagnose string, s Style) string {
	if diagnose = words.OneLine(diagnose); diagnose == "" {
		return ""
	}
	commands := []string{diagnose}
	if !s.Fits(diagnose, labelIndent) {
		commands = splitCommands(diagnose)
	}
	label := "diagnose:"
	var text strings.Builder
	for _, c := range commands {
		text.WriteString(terminal.Pad(label, labelIndent) + c + "\n")
		label = ""
	}
	return text.String()
}

// compound matches what a later command of a line may depend on: variables, loops, groups, escapes.
var compound = regexp.MustCompile("[$`\\\\(){}]|(?:^|[ ;])(?:[A-Za-z_]+=|(?:for|while|until|if|case|cd|do|done|fi) )")

// splitCommands splits a line of commands at semicolons. Where one may depend on another, or a quote is not closed, it
// returns the line as it is. A comment belongs to the last command.
func splitCommands(line string) []string {
	var out []string
	var bare strings.Builder // without what is in quotes
	start, quote := 0, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			} else if quote == '"' && strings.IndexByte("$`\\", c) >= 0 {
				return []string{line}
			}
			continue
		case c == '\'' || c == '"':
			quote = c
			continue
		case strings.HasPrefix(line[i:], " # "):
			if strings.Contains(line[i:], " ; ") {
				return []string{line}
			}
			i = len(line)
			continue
		case strings.HasPrefix(line[i:], " ; "):
			out = append(out, line[start:i])
			start = i + len(" ; ")
		}
		bare.WriteByte(c)
	}
	if quote != 0 || compound.MatchString(bare.String()) {
		return []string{line}
	}
	return append(out, line[start:])
}
