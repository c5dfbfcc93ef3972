//go:build e2e

package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// shorter is by how much time is cut in the rules: an hour is a minute, a minute a second.
const shorter = 60

var (
	durations    = regexp.MustCompile(`\b(\d+)([smhd])\b`)
	milliseconds = map[string]int{"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
	// uptimes compares the host's uptime with ten and seventeen minutes, in seconds.
	uptimes = regexp.MustCompile(`(<|>=) (600|1020)\b`)
	// ages compares the time since the loss of a link, or since its errors, with 12 minutes to a day, in seconds.
	ages = regexp.MustCompile(`(<|>|-) (720|900|3600|7200|7560|8220|86400)\b`)
)

// uncut is the range of the pause rules: pauses are read every 14 s if they are not sampled, and a shorter range would
// miss readings.
const uncut = "90s"

// quickRules gives the guest rules/node with all other times shortened by the same factor: `for`, `keep_firing_for`,
// ranges and offsets keep their proportions. At production values an alert of ten minutes would exceed the test.
// Everything else is unchanged. It returns a glob.
func (g *guest) quickRules(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, "rules/node/*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no rules: %v", err)
	}
	if err := os.Mkdir(filepath.Join(g.share, "rules"), 0o755); err != nil {
		t.Fatal(err)
	}
	compared, aged := 0, 0
	shorten := func(comparison string, count *int) string {
		op, n, _ := strings.Cut(comparison, " ")
		seconds, err := strconv.Atoi(n)
		if err != nil {
			t.Fatal(err)
		}
		*count++
		return fmt.Sprintf("%s %d", op, seconds/shorter)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		quick := durations.ReplaceAllStringFunc(string(text), func(d string) string {
			if d == uncut {
				return d
			}
			n, err := strconv.Atoi(d[:len(d)-1])
			if err != nil {
				t.Fatalf("%s: %s", file, d)
			}
			return fmt.Sprintf("%dms", n*milliseconds[d[len(d)-1:]]/shorter)
		})
		quick = ages.ReplaceAllStringFunc(quick, func(c string) string { return shorten(c, &aged) })
		quick = uptimes.ReplaceAllStringFunc(quick, func(c string) string { return shorten(c, &compared) })
		if err := os.WriteFile(filepath.Join(g.share, "rules", filepath.Base(file)), []byte(quick), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if aged != 14 {
		t.Fatalf("%d comparisons with an age in the rules, 14 are known", aged)
	}
	if compared != 3 {
		t.Fatalf("%d comparisons with the uptime in the rules, 3 are known", compared)
	}
	return "'" + shareMount + "/rules/*.yml'"
}
