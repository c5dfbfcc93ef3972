package app

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// areAlerts says which of the names that were given there is none of, with those that it may have meant.
func areAlerts(given, all []string) error {
	for _, name := range given {
		if slices.Contains(all, name) {
			continue
		}
		hint := "rdma_exporter check --verbose and docs/alerts.md have the names"
		if near := closest(name, all); len(near) > 0 {
			hint = "did you mean " + strings.Join(near, " or ") + "?"
		}
		return fmt.Errorf("--only=%s: there is no such alert: %s", name, hint)
	}
	return nil
}

// closest gives up to three names that are few changes away from a name, or have it in them, the nearest first.
func closest(name string, all []string) []string {
	type candidate struct {
		name    string
		changes int
	}
	var found []candidate
	low := strings.ToLower(name)
	for _, other := range all {
		n := changes(low, strings.ToLower(other))
		if n <= len(name)/3 || low != "" && strings.Contains(strings.ToLower(other), low) {
			found = append(found, candidate{other, n})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.changes, b.changes), strings.Compare(a.name, b.name))
	})
	var out []string
	for _, c := range found[:min(3, len(found))] {
		out = append(out, c.name)
	}
	return out
}

// changes is how many bytes have to be put in, taken out or replaced to make b of a (Levenshtein).
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
