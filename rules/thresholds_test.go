package rules

import (
	"io/fs"
	"regexp"
	"strconv"
	"testing"
)

// TestThresholds: each threshold that a rule reads is in the table, with its default, and each of the table is read.
func TestThresholds(t *testing.T) {
	table, read := map[string]float64{}, map[string]bool{}
	for _, th := range Thresholds() {
		if _, twice := table[th.Name]; twice || th.Alert == "" || th.Why == "" {
			t.Errorf("%+v", th)
		}
		table[th.Name] = th.Default
	}
	whole := regexp.MustCompile(`scalar\(max\(rdma:threshold\{name="([a-z-]+)"\}\) or vector\(([-0-9.]+)\)\)`)
	any := regexp.MustCompile(ThresholdMetric)
	paths, names, err := Both()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(paths, name)
		if err != nil {
			t.Fatal(err)
		}
		found := whole.FindAllSubmatch(text, -1)
		if n := len(any.FindAll(text, -1)); n != len(found) {
			t.Errorf("%s: %d of %d without a default", name, n-len(found), n)
		}
		for _, m := range found {
			v, err := strconv.ParseFloat(string(m[2]), 64)
			if want, ok := table[string(m[1])]; !ok || err != nil || v != want {
				t.Errorf("%s: %s, the table has %v", name, m[0], want)
			}
			read[string(m[1])] = true
		}
	}
	for name := range table {
		if !read[name] {
			t.Errorf("%s: no rule reads it", name)
		}
	}
}
