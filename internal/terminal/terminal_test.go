package terminal_test

import (
	"regexp"
	"strings"
	"testing"

	"rdma_exporter/internal/terminal"
)

// TestWrap: prose keeps all words in order, lines fit where words do, and a command is never broken.
func TestWrap(t *testing.T) {
	const prose = "Shut the switch port or set the interface down (ip link set enp39s0np0 down) to end the storm, " +
		"then run rdma_exporter accept mlx5_5. If it stays down, run systemctl restart rdma_exporter."
	for _, width := range []int{0, 1, 20, 40, 80, 200} {
		got := terminal.Style{Width: width}.Wrap(prose, 10)
		if strings.Join(strings.Fields(got), " ") != prose {
			t.Errorf("%d: %q", width, got)
		}
		for _, whole := range []string{
			"(ip link set enp39s0np0 down)", "rdma_exporter accept mlx5_5.", "systemctl restart rdma_exporter",
		} {
			if !strings.Contains(got, whole) {
				t.Errorf("%d: %s is broken:\n%s", width, whole, got)
			}
		}
		for i, line := range strings.Split(got, "\n") {
			if i == 0 {
				line = strings.Repeat(" ", 10) + line
			}
			if !strings.HasPrefix(line, strings.Repeat(" ", 10)) {
				t.Errorf("%d: no hanging indent: %q", width, line)
			}
			if width >= 80 && terminal.Width(line) > width {
				t.Errorf("%d: %d columns: %q", width, terminal.Width(line), line)
			}
		}
		if lines := strings.Count(got, "\n") + 1; width == 80 && lines != 4 || width < 26 && lines != 1 {
			t.Errorf("%d: %d lines\n%s", width, lines, got)
		}
	}
	// Wide characters take two columns, combining ones none; a long word is not broken.
	if got := (terminal.Style{Width: 20}).Wrap("交换机端口 关闭 e\u0301e\u0301 "+strings.Repeat("x", 30)+" y", 2); got !=
		"交换机端口 关闭 e\u0301e\u0301\n  "+strings.Repeat("x", 30)+"\n  y" {
		t.Errorf("%q", got)
	}
}

// TestAlign: columns are as wide as their widest cell in columns of the terminal, without blanks at the end.
func TestAlign(t *testing.T) {
	got := terminal.Align([][]string{{"PORT", "NAME", "X"}, {"交换", "e\u0301", ""}, {"a"}}, " ")
	if want := " PORT  NAME  X\n 交换  e\u0301\n a\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPaint: without colours nothing is painted; with them the blanks before a line are not.
func TestPaint(t *testing.T) {
	marks := terminal.Marks{{regexp.MustCompile(`^ *(!!.*)`), terminal.Yellow}, {regexp.MustCompile(`dark`), terminal.Red}}
	const text = "  !! dark\nlane dark\nok\n"
	if got := (terminal.Style{}).PaintLines(text, marks); got != text {
		t.Errorf("%q", got)
	}
	s := terminal.Style{Colour: true}
	if got, want := s.PaintLines(text, marks), "  \x1b[33m!! dark\x1b[0m\nlane \x1b[1;31mdark\x1b[0m\nok\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := s.Paint(terminal.Grey, "a\n  b\n"), "\x1b[90ma\x1b[0m\n  \x1b[90mb\x1b[0m\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzWrap(f *testing.F) {
	f.Add("a b", 30, 2)
	f.Add("rdma_exporter accept mlx5_0 (ip link set a down)", 20, 10)
	f.Fuzz(func(t *testing.T, prose string, width, indent int) {
		if strings.ContainsAny(prose, "\x00\n") || indent < 0 || indent > 40 || width < 0 {
			return
		}
		got := terminal.Style{Width: width}.Wrap(prose, indent)
		if back := strings.ReplaceAll(got, "\n"+strings.Repeat(" ", indent), " "); back != prose {
			t.Errorf("%q, want %q", back, prose)
		}
	})
}
