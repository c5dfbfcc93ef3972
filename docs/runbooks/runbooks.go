// Package runbooks holds what to do about each alert, so that the exporter can show it where there is no network.
package runbooks

import "embed"

// Files are the runbooks, NAME.md by alert.
//
//go:embed *.md
var Files embed.FS
