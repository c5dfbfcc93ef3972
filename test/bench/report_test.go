//go:build bench

package bench

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// page is the document with the tables, each between <!-- bench:NAME --> and <!-- end -->.
const page = "docs/performance.md"

// table is a Markdown table.
type table struct{ strings.Builder }

func newTable(heads ...string) *table {
	x := &table{}
	x.row(heads...)
	fmt.Fprintln(x, "|"+strings.Repeat("---|", len(heads)))
	return x
}

func (x *table) row(cells ...string) { fmt.Fprintln(x, "| "+strings.Join(cells, " | ")+" |") }

// report is the tables by name.
type report map[string]string

// put writes all tables into the document.
func (r report) put(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(file(page))
	must(t, err)
	for name, part := range r {
		t.Logf("%s:\n%s", name, part)
		begin, end := "<!-- bench:"+name+" -->\n", "<!-- end -->"
		before, rest, found := strings.Cut(string(text), begin)
		_, after, ends := strings.Cut(rest, end)
		if !found || !ends {
			t.Fatalf("%s has no %s with an %s behind it", page, strings.TrimSpace(begin), end)
		}
		text = []byte(before + begin + part + end + after)
	}
	if *write {
		must(t, os.WriteFile(file(page), text, 0o644))
	}
}

// machineText describes the machine of the measurement.
func machineText(t *testing.T) string {
	t.Helper()
	cpus, err := os.ReadFile("/proc/cpuinfo")
	must(t, err)
	_, model, _ := bytes.Cut(cpus, []byte("model name"))
	model, _, _ = bytes.Cut(bytes.TrimLeft(model, "\t: "), []byte("\n"))
	if len(model) == 0 { // arm64
		model = []byte(runtime.GOARCH)
	}
	load, err := os.ReadFile("/proc/loadavg")
	must(t, err)
	var u unix.Utsname
	must(t, unix.Uname(&u))
	return fmt.Sprintf("Measured %s on %d CPUs of %s, Linux %s, %s, node_exporter v1.12.1; load average before the run: %s.\n",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), model, unix.ByteSliceToString(u.Release[:]),
		runtime.Version(), strings.Fields(string(load))[0])
}

// number has three significant digits.
func number(v float64) string {
	switch {
	case v >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func mib(n int64) string { return fmt.Sprintf("%.1f", float64(n)/(1<<20)) }

// orNone returns an empty cell for 0.
func orNone(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprint(n)
}
