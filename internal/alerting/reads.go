package alerting

import (
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/rulefmt"
)

// word is a metric name, the name of a record, or another word.
var word = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)

// Reads returns the metrics with a prefix that the rules in files read, in expressions or in the queries of their texts. The texts are
// templates, so names are found as words.
func Reads(fsys fs.FS, files []string, prefix string) (map[string]bool, error) {
	out := map[string]bool{}
	err := eachRule(fsys, files, func(_ *fsLoader, _ string, r rulefmt.Rule) error {
		for _, text := range append(slices.Collect(maps.Values(r.Annotations)), r.Expr) {
			for _, name := range word.FindAllString(text, -1) {
				if strings.HasPrefix(name, prefix) && !isRecord(name) {
					out[name] = true
				}
			}
		}
		return nil
	})
	return out, err
}
