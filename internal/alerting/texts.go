package alerting

import (
	"io/fs"

	"github.com/prometheus/prometheus/model/rulefmt"
)

// RuleTexts are the labels and annotations of an alerting rule, as they stand in its file: templates.
type RuleTexts struct{ Labels, Annotations map[string]string }

// Texts reads those of the alerts in rule files, by alert. Of rules of one name the first counts.
func Texts(fsys fs.FS, files []string) (map[string]RuleTexts, error) {
	out := map[string]RuleTexts{}
	err := eachRule(fsys, files, func(_ string, r rulefmt.Rule) error {
		if _, ok := out[r.Alert]; r.Alert != "" && !ok {
			out[r.Alert] = RuleTexts{r.Labels, r.Annotations}
		}
		return nil
	})
	return out, err
}
