package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/words"
)

// AreAlerts returns an error for the first name that is no alert, with similar names.
func AreAlerts(given, all []string) error {
	for _, name := range given {
		if !slices.Contains(all, name) {
			return fmt.Errorf("--only=%s: unknown alert: %s",
				name, Hint(name, all, "names: rdma_exporter runbook, docs/alerts.md"))
		}
	}
	return nil
}

// Hint asks for similar names; without one it is otherwise.
func Hint(name string, all []string, otherwise string) string {
	if near := Closest(name, all); len(near) > 0 {
		return "did you mean " + strings.Join(near, " or ") + "?"
	}
	return otherwise
}

// Closest returns up to three names that differ from a name by few edits or contain it, the nearest first.
func Closest(name string, all []string) []string {
	type candidate struct {
		name    string
		changes int
	}
	var found []candidate
	low := strings.ToLower(name)
	for _, other := range all {
		n := changes(low, strings.ToLower(other))
		if n <= max(2, len(name)/3) || low != "" && strings.Contains(strings.ToLower(other), low) {
			found = append(found, candidate{other, n})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.changes, b.changes), strings.Compare(a.name, b.name))
	})
	return words.Map(found[:min(3, len(found))], func(c candidate) string { return c.name })
}

// changes returns the Levenshtein distance of a and b in bytes.
func changes(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
