package alerting

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestTexts: labels and templates of alerts, as they stand in the file; of one name the first.
func TestTexts(t *testing.T) {
	const rules = `groups: [{name: g, rules: [
  {record: r, expr: up},
  {alert: A, expr: up == 0, labels: {drain: "no"}, annotations: {action: "see {{ $labels.port }}"}},
  {alert: A, expr: up == 2, labels: {drain: cordon}}]}]`
	got, err := Texts(fstest.MapFS{"a.yml": {Data: []byte(rules)}}, []string{"a.yml"})
	if err != nil || len(got) != 1 || got["A"].Labels["drain"] != "no" ||
		got["A"].Annotations["action"] != "see {{ $labels.port }}" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Texts(fstest.MapFS{"a.yml": {Data: []byte("groups: 1")}}, []string{"a.yml"}); err == nil ||
		!strings.Contains(err.Error(), "a.yml") {
		t.Error(err)
	}
}
