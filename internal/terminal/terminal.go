// Package terminal lays out text in columns of a terminal: width of characters, lines with a hanging indent, tables,
// colours. Texts are plain (words.Plain): what is painted is painted last.
package terminal

import (
	"regexp"
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// Style is how text is laid out. The zero value is that of files and pipes: lines are not broken, without escapes, so
// that grep prints whole sentences.
type Style struct {
	Width  int // columns; 0: lines are not broken
	Colour bool
}

// leastText is the number of columns below which prose is not wrapped: its words would stand one a line.
const leastText = 16

// Width returns the number of columns that a text takes: 2 for wide characters, 0 for combining ones.
func Width(s string) int { return displaywidth.String(s) }

// Wrap breaks prose at blanks, so that lines fit beside an indent, which lines after the first begin with. A word that
// is longer than a line is not broken, and neither is a command in the text: a line break in it would be pasted.
func (s Style) Wrap(prose string, indent int) string {
	room := s.Width - indent
	if s.Width == 0 || room < leastText {
		return prose
	}
	var out strings.Builder
	used := 0
	for i, word := range strings.Split(keepCommands(prose), " ") {
		word = strings.ReplaceAll(word, kept, " ")
		w := Width(word)
		switch {
		case i == 0:
		case used+1+w > room:
			out.WriteString("\n" + strings.Repeat(" ", indent))
			used = 0
		default:
			out.WriteByte(' ')
			used++
		}
		out.WriteString(word)
		used += w
	}
	return out.String()
}

// kept stands for a blank at which a line is not broken. Plain text has no NUL.
const kept = "\x00"

// command matches the commands of prose: in brackets, or the name of a program with its flags and the words after it
// that are names.
var command = regexp.MustCompile(`\((?:ip|rdma|dcb|modprobe|mlnx_qos|setpci|sysctl|ethtool|systemctl) [^()]*\)|` +
	`\b(?:rdma_exporter|systemctl|nvidia-smi) [a-z-]+(?: (?:-\S+|list|resume|release|rdma_exporter|\S*[\d/_]\S*))*`)

func keepCommands(prose string) string {
	return command.ReplaceAllStringFunc(prose, func(c string) string { return strings.ReplaceAll(c, " ", kept) })
}

// Fits reports whether a line fits beside an indent.
func (s Style) Fits(line string, indent int) bool {
	return s.Width == 0 || indent+Width(line) <= s.Width
}

// Pad fills a text with blanks to a number of columns.
func Pad(s string, columns int) string { return s + strings.Repeat(" ", max(0, columns-Width(s))) }

// Align aligns the cells of rows in columns, two blanks apart.
func Align(rows [][]string, indent string) string {
	var width []int
	for _, row := range rows {
		for i, cell := range row[:max(0, len(row)-1)] {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], Width(cell))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		line := indent
		for i, cell := range row {
			if i < len(row)-1 {
				cell = Pad(cell, width[i]) + "  "
			}
			line += cell
		}
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return text.String()
}

// Ink is a colour or weight (ECMA-48, SGR).
type Ink string

// Inks. Each says what a word beside it says too.
const (
	Red    Ink = "1;31"
	Yellow Ink = "33"
	Cyan   Ink = "36"
	Green  Ink = "32"
	Grey   Ink = "90"
	Bold   Ink = "1"
)

// Paint paints each line of a text, not the blanks before it. Without an ink or colours it returns the text.
func (s Style) Paint(ink Ink, text string) string {
	if !s.Colour || ink == "" {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if t := strings.TrimLeft(l, " "); t != "" {
			lines[i] = l[:len(l)-len(t)] + "\x1b[" + string(ink) + "m" + t + "\x1b[0m"
		}
	}
	return strings.Join(lines, "\n")
}

// Marks are the parts of plain lines that are painted: the first mark that matches a line counts, and paints its first
// group, or else its whole match.
type Marks []struct {
	Part *regexp.Regexp
	Ink  Ink
}

// PaintLines paints the marks of each line.
func (s Style) PaintLines(text string, marks Marks) string {
	if !s.Colour {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		for _, m := range marks {
			if at := m.Part.FindStringSubmatchIndex(line); at != nil {
				from, to := at[len(at)-2], at[len(at)-1]
				line = line[:from] + s.Paint(m.Ink, line[from:to]) + line[to:]
				break
			}
		}
		out.WriteString(line)
	}
	return out.String()
}
