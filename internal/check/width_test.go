package check_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/terminal"
)

var escape = regexp.MustCompile("\x1b\\[[0-9;]*m")

// TestWidth: at any width a report has the same words, its commands unbroken; at 80 and 200 columns its prose fits. The
// first line says what is wrong.
func TestWidth(t *testing.T) {
	b, err := os.ReadFile("testdata/faulty.json")
	if err != nil {
		t.Fatal(err)
	}
	var r check.Report
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	r.Findings = r.Findings[:2]
	const dmesg = "dmesg -T | grep -iE 'mlx5|bnxt ; |aer' | tail -20 # as root"
	r.Findings[0].Summary = "gpu-1 交换机/1 (eeeeeeeeeeeeeee): link degraded, 200 of 400 Gb/s, 2 of 4 lanes " +
		"(expected by siblings)\x1b[2J"
	r.Findings[0].Diagnose = "rdma link show mlx5_0/1 ; ethtool enp39s0np0 ; " + dmesg
	r.Findings[1].Diagnose = `lid=$(ibnetdiscover | awk -v RS= '/-0000000000200000"\t/' | sed -nE 's/^(Switch)/\2/p')` +
		` ; smpquery portinfo "$lid" 2`
	words := func(text string) string {
		text = strings.ReplaceAll(escape.ReplaceAllString(text, ""), " ; ", " ")
		return strings.Join(strings.Fields(text), " ")
	}
	whole := tableOf(t, r, check.Style{})
	for _, width := range []int{1, 20, 80, 200} {
		for _, colour := range []bool{false, true} {
			got := tableOf(t, r, check.Style{Style: terminal.Style{Width: width, Colour: colour}})
			if words(got) != words(whole) {
				t.Errorf("%d: %s\nwant %s", width, words(got), words(whole))
			}
			if strings.Contains(got, "\x1b") != colour || strings.Contains(escape.ReplaceAllString(got, ""), "\x1b") {
				t.Errorf("%d, colour %v: %q", width, colour, got)
			}
			for _, command := range []string{
				"rdma link show mlx5_0/1", dmesg, r.Findings[1].Diagnose,
			} {
				if !strings.Contains(got, command) {
					t.Errorf("%d: %s is broken\n%s", width, command, got)
				}
			}
			for line := range strings.Lines(escape.ReplaceAllString(got, "")) {
				prose := !strings.Contains(line, "dmesg") && !strings.Contains(line, "lid=")
				if n := terminal.Width(strings.TrimSuffix(line, "\n")); width >= 80 && prose && n > width {
					t.Errorf("%d columns, want at most %d: %s", n, width, line)
				}
			}
		}
	}
	if !strings.HasPrefix(whole, "gpu-1: critical: 交换机/1 (eeeeeeeeeeeeeee): link degraded, 200 of 400 Gb/s, 2 of 4 lanes") {
		t.Error(whole)
	}
	if got := r.Worst(); !strings.HasPrefix(got, "交换机/1 (") {
		t.Error(got)
	}
}
