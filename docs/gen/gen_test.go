//go:build !race

package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/exposition"
)

func TestPagesAreCurrent(t *testing.T) {
	if err := run("..", true); err != nil {
		t.Error(err)
	}
}

func TestCompare(t *testing.T) {
	err := compare(t.TempDir(), []page{{name: "a.md"}, {name: "b.md"}})
	if err == nil || !strings.Contains(err.Error(), "a.md is missing") ||
		!strings.Contains(err.Error(), "b.md is missing") {
		t.Errorf("got %v, want both files named", err)
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"device/net/*/dev_port": `device/net/\*/dev_port`,
		"a|b":                   `a\|b`,
		"<b> [x] `y`":           "\\<b> \\[x] \\`y\\`",
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
	if got := code("a|b"); got != "`a\\|b`" {
		t.Errorf("code: %s", got)
	}
}

func TestSignature(t *testing.T) {
	for want, d := range map[string]exposition.Desc{
		"`a`":                     {Name: "a", Type: exposition.Gauge},
		"`a_total{b,c}`":          {Name: "a_total", Type: exposition.Counter, Labels: []string{"b", "c"}, Scope: exposition.ScopePort},
		"`a_total{b}` (bond)":     {Name: "a_total", Type: exposition.Counter, Labels: []string{"b"}, Scope: exposition.ScopeBond},
		"`a` (untyped, function)": {Name: "a", Type: exposition.Untyped, Scope: exposition.ScopeFunction},
	} {
		if got := signature(&d); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestCollectorsOf(t *testing.T) {
	got := collectorsOf([]coverage.Need{
		{Metric: "rdma_port_state_id"}, {Metric: "rdma_transceiver_state"}, {Metric: "rdma_device_pcie_settings_info"},
	})
	if !slices.Equal(got, []string{"infiniband", "transceiver", "gdr"}) {
		t.Errorf("%q", got)
	}
}

// TestRoff: text is not interpreted as a request or an escape, and lines are short.
func TestRoff(t *testing.T) {
	for in, want := range map[string]string{
		".conf, -v": `\&.conf, \-v`, "'x'": `\&'x'`, `a\b`: `a\eb`,
		strings.Repeat("word ", 17): strings.Repeat("word ", 15) + "word\nword",
	} {
		if got := roff(in); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	a := kingpin.New("a", "")
	a.Flag("on", "Is on. By the way.").Default("true").Bool()
	a.Flag("file", "A file.").Short('f').PlaceHolder("FILE").String()
	a.Flag("set", "One.").Default("y").Enum("x", "y")
	a.Flag("secret", "None.").Hidden().Bool()
	got := map[string]option{}
	for _, o := range options(a.Model().Flags, "", func(_, flag string) []string {
		values, _, _ := a.FlagCompletion(flag, "")
		return values
	}) {
		got[o.Name] = o
	}
	want := map[string]option{
		"on": {Name: "on", Help: "Is on"}, "no-on": {Name: "no-on", Help: "Disable: Is on"},
		"file": {Name: "file", Help: "A file", Short: "f", Value: "FILE", Files: true},
		"set":  {Name: "set", Help: "One", Value: "y", Choices: "x y"},
	}
	for name, o := range want {
		if !reflect.DeepEqual(got[name], o) {
			t.Errorf("got %+v, want %+v", got[name], o)
		}
	}
	if _, ok := got["secret"]; ok {
		t.Error("hidden flag in completions")
	}
}
