//lint:file-ignore SA1019 the classic model is the one that Grafana 10, 11 and 12 read

package main

import (
	"bytes"
	"errors"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// strict reads a dashboard with Grafana's own types, panels with their options. A field that they do not know is an
// error.
func strict(data []byte) error {
	var d dashboard.Dashboard
	err := d.UnmarshalJSONStrict(data)
	if none := cog.BuildErrors(nil); errors.As(err, &none) && len(none) == 0 { // an error of no errors
		err = nil
	}
	return errors.Join(err, d.Validate())
}

func TestModel(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	files, err := build()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Error("no dashboards")
	}
	for name, data := range files {
		t.Run(name, func(t *testing.T) {
			if len(data) == 0 {
				t.Error("empty")
			}
			if err := strict(data); err != nil {
				t.Error(err)
			}
			for _, wrong := range []string{`"schemaVersion"`, `"showHeader"`, `"legendFormat"`, `"gridPos"`, `"drawStyle"`} {
				if bytes.Contains(data, []byte(wrong)) &&
					strict(bytes.ReplaceAll(data, []byte(wrong), []byte(`"nonsense"`))) == nil {
					t.Errorf("%s may have any name", wrong)
				}
			}
		})
	}
}
