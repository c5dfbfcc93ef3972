package commands_test

import (
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"rdma_exporter/internal/cli"
	"rdma_exporter/internal/terminal"
	"rdma_exporter/test/machines"
)

// onTerminal runs the program on a terminal with a number of columns.
func onTerminal(t *testing.T, columns uint16, args ...string) string {
	t.Helper()
	ours, tty, err := pty.Open()
	must(t, err)
	must(t, pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: columns}))
	read := make(chan string)
	go func() {
		b, _ := io.ReadAll(ours) // EIO at the end
		read <- string(b)
	}()
	cli.Run(t.Context(), args, tty, tty)
	must(t, tty.Close())
	out := <-read
	must(t, ours.Close())
	return strings.ReplaceAll(out, "\r\n", "\n")
}

var colour = regexp.MustCompile("\x1b\\[[0-9;]+m")

// TestTerminal: on a terminal lines fit its width and have colours, unless NO_COLOR, TERM or --color say otherwise. A
// pipe has neither.
func TestTerminal(t *testing.T) {
	replay := "--replay=" + machines.Fixture("acs-on")
	for _, c := range []struct {
		name     string
		columns  uint16
		env      map[string]string
		args     []string
		coloured bool
		widest   int // of the prose
	}{
		{"80 columns", 80, nil, nil, true, 80},
		{"200 columns", 200, nil, nil, true, 200},
		{"no size", 0, nil, nil, true, 80},
		{"COLUMNS", 80, map[string]string{"COLUMNS": "60"}, nil, true, 60},
		{"--color=never", 80, nil, []string{"--color=never"}, false, 80},
		{"TERM=dumb", 80, map[string]string{"TERM": "dumb"}, nil, false, 80},
		{"NO_COLOR", 80, map[string]string{"NO_COLOR": "1"}, nil, false, 80},
		{"--color=always", 80, map[string]string{"NO_COLOR": "1"}, []string{"--color=always"}, true, 80},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, name := range []string{"TERM", "COLUMNS", "NO_COLOR"} {
				t.Setenv(name, c.env[name])
			}
			got := onTerminal(t, c.columns, append([]string{replay, "check", "--setup"}, c.args...)...)
			if colour.MatchString(got) != c.coloured {
				t.Errorf("colours %v, want %v\n%q", !c.coloured, c.coloured, got)
			}
			widest := 0
			for line := range strings.Lines(colour.ReplaceAllString(got, "")) {
				if !strings.HasPrefix(line, "set:") && !strings.Contains(line, "setpci") {
					widest = max(widest, terminal.Width(strings.TrimSuffix(line, "\n")))
				}
			}
			if widest > c.widest || widest < c.widest-20 && c.widest < 200 || c.widest == 200 && widest <= 80 {
				t.Errorf("%d columns, want up to %d\n%s", widest, c.widest, got)
			}
		})
	}
	for _, name := range []string{"TERM", "COLUMNS", "NO_COLOR"} {
		t.Setenv(name, "")
	}
	for name, machine := range map[string]string{
		"check": "gpu-lost", "optics": "optics-lane-dark", "topo": "port-down", "job": "acs-on", "check --setup": "acs-on",
	} {
		args := append([]string{"--replay=" + machines.Fixture(machine)}, strings.Fields(name)...)
		if _, out, _ := runProgram(t, args...); strings.Contains(out, "\x1b") {
			t.Errorf("%s: escapes in a pipe: %q", name, out)
		}
		if got := onTerminal(t, 80, args...); !colour.MatchString(got) ||
			strings.Contains(colour.ReplaceAllString(got, ""), "\x1b") {
			t.Errorf("%s: no colour on a terminal, or another escape: %q", name, got)
		}
	}
}

// TestProgressOnTerminal: a capture says how far it is, and clears the line. A pipe has none of it.
func TestProgressOnTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	dir := t.TempDir()
	args := []string{
		"--path.rootfs=" + machines.Tree(t, "three-rails-ok"), "--state.dir=" + dir, "capture", "--for=2s", "--every=1s",
	}
	got := onTerminal(t, 80, append(args, "--output="+dir+"/a")...)
	if !strings.Contains(got, "\r\x1b[Kcapturing: 1s of 2s\r") || !strings.HasSuffix(got, "\r\x1b[K") {
		t.Errorf("%q", got)
	}
	if _, err := os.Stat(dir + "/a"); err != nil {
		t.Error(err)
	}
	start := time.Now()
	if _, out, errs := runProgram(t, append(args, "--output="+dir+"/b")...); strings.Contains(out+errs, "capturing:") {
		t.Errorf("after %s: %q", time.Since(start), out+errs)
	}
}
