package alerting

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
)

// Reads returns the metrics with a prefix that the rules in files read, in expressions or in the queries of their
// texts. The texts are templates, so names are found as words.
func Reads(fsys fs.FS, files []string, prefix string) (map[string]bool, error) {
	out := map[string]bool{}
	err := eachRule(fsys, files, func(_ string, r rulefmt.Rule) error {
		for _, text := range append(slices.Collect(maps.Values(r.Annotations)), r.Expr) {
			for _, name := range strings.FieldsFunc(text, notOfName) {
				if strings.HasPrefix(name, prefix) && !isRecord(name) {
					out[name] = true
				}
			}
		}
		return nil
	})
	return out, err
}

// notOfName reports whether a character separates words: names of metrics, of records, or others.
func notOfName(c rune) bool {
	return c != '_' && c != ':' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
}

// eachRule reads rule files, in order.
func eachRule(fsys fs.FS, files []string, do func(file string, r rulefmt.Rule) error) error {
	l := &fsLoader{files: fsys, logger: slog.New(slog.DiscardHandler)}
	for _, file := range files {
		groups, errs := l.Load(file, false, model.LegacyValidation)
		if len(errs) > 0 {
			return fmt.Errorf("read rules %s: %w", file, errors.Join(errs...))
		}
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				if err := do(file, r); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
