package alerting

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// word is a metric name, the name of a record, or another word.
var word = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)

// Reads returns the metrics with a prefix that the rules in files read, in expressions or in the queries of their texts. The texts are
// templates, so names are found as words.
func Reads(fsys fs.FS, files []string, prefix string) (map[string]bool, error) {
	l := fsLoader{files: fsys, parser: parser.NewParser(parser.Options{}), logger: slog.New(slog.DiscardHandler)}
	out := map[string]bool{}
	for _, file := range files {
		groups, errs := l.Load(file, false, model.LegacyValidation)
		if len(errs) > 0 {
			return nil, fmt.Errorf("read rules %s: %w", file, errors.Join(errs...))
		}
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				for _, text := range append(slices.Collect(maps.Values(r.Annotations)), r.Expr) {
					for _, name := range word.FindAllString(text, -1) {
						if strings.HasPrefix(name, prefix) && !isRecord(name) {
							out[name] = true
						}
					}
				}
			}
		}
	}
	return out, nil
}
