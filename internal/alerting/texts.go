package alerting

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// RuleTexts are the labels and annotations of an alerting rule, as they stand in its file: templates.
type RuleTexts struct{ Labels, Annotations map[string]string }

// Texts reads those of the alerts in rule files, by alert. Of rules of one name the first counts.
func Texts(fsys fs.FS, files []string) (map[string]RuleTexts, error) {
	l := fsLoader{files: fsys, parser: parser.NewParser(parser.Options{}), logger: slog.New(slog.DiscardHandler)}
	out := map[string]RuleTexts{}
	for _, file := range files {
		groups, errs := l.Load(file, false, model.LegacyValidation)
		if len(errs) > 0 {
			return nil, fmt.Errorf("read rules %s: %w", file, errors.Join(errs...))
		}
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				if _, ok := out[r.Alert]; r.Alert != "" && !ok {
					out[r.Alert] = RuleTexts{r.Labels, r.Annotations}
				}
			}
		}
	}
	return out, nil
}
