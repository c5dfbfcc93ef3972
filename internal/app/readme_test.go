package app

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestReadmeOfReplays compares the sample output and the quoted findings of the README with check on the recorded machines.
func TestReadmeOfReplays(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	must(t, err)
	readme := string(b)
	_, rest, _ := strings.Cut(readme, "$ bin/rdma_exporter --replay demo check\n")
	want, _, found := strings.Cut(rest, "$ echo $?\n2\n")
	code, out, errs := command(t, "--replay=demo", "check")
	if code != 2 || errs != "" || !found || out != want {
		t.Errorf("exit %d, %s\n%s\nthe README has\n%s", code, errs, out, want)
	}
	for _, machine := range []string{"downshift-one", "peermem-not-loaded"} {
		archive := "fixtures/sysfs/" + machine + ".txtar"
		if !strings.Contains(readme, archive) {
			t.Errorf("README.md does not name %s", archive)
		}
		_, findings, _ := command(t, "--replay=../../"+archive, "check", "--short")
		out += findings
	}
	quoted := regexp.MustCompile(`(?m)^\| .*\): `+"`(.*)` \\|$").FindAllStringSubmatch(readme, -1)
	if len(quoted) != 3 {
		t.Errorf("%d findings quoted in the table, 3 expected", len(quoted))
	}
	for _, q := range quoted {
		if !strings.Contains(out, q[1]+"\n") {
			t.Errorf("check does not report %q", q[1])
		}
	}
}
