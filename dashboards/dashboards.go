// Package dashboards holds the Grafana dashboards, in the binary too, so that a machine that has the program has those
// that belong to it. dashboards/gen writes them.
package dashboards

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed *.json
var boardFiles embed.FS

// All gives the dashboards: the files, and their names.
func All() (fs.FS, []string, error) {
	names, err := fs.Glob(boardFiles, "*.json")
	if err != nil {
		return nil, nil, fmt.Errorf("list embedded dashboards: %w", err)
	}
	return boardFiles, names, nil
}
