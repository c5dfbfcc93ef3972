package main

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"rdma_exporter/internal/blind"
)

func TestPagesAreCurrent(t *testing.T) {
	if err := run("..", true); err != nil {
		t.Error(err)
	}
}

func TestCompare(t *testing.T) {
	err := compare(t.TempDir(), []page{{name: "a.md"}, {name: "b.md"}})
	if err == nil || !strings.Contains(err.Error(), "a.md is missing") || !strings.Contains(err.Error(), "b.md is missing") {
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

func TestMeaning(t *testing.T) {
	docs := fstest.MapFS{
		"runbooks/A.md": {Data: []byte("# A\n\n## Meaning\n\nNot [B](RDMAB.md).\n\n## Impact\n\nNone.\n")},
		"runbooks/C.md": {Data: []byte("# C\n")},
	}
	got, err := meaning(docs, "A")
	if want := "Not [B](runbooks/RDMAB.md)."; got != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, name := range []string{"C", "D"} {
		if _, err := meaning(docs, name); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestComments(t *testing.T) {
	got := comments(`# The file.
groups:
  - name: g
    rules:
      # One. 5m: it
      # lasts.
      - record: a
        expr: 1 # no comment of a rule
      - alert: B
        expr: 1
      # Not of the next one.

      # Of this.
      - alert: C
`)
	if want := []string{"One. 5m: it lasts.", "", "Of this."}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestNeedsOf: the collectors, and what a process without privileges lacks.
func TestNeedsOf(t *testing.T) {
	got := needsOf([]blind.Need{{Metric: "rdma_port_state_id"}, {Metric: "rdma_transceiver_state"}, {Metric: "rdma_device_pcie_settings_info", Labels: []string{"iommu"}}})
	if !slices.Equal(got.collectors, []string{"infiniband", "transceiver", "gdr"}) || !slices.Equal(got.permissions, []string{"CAP_NET_ADMIN"}) {
		t.Errorf("%+v", got)
	}
}
