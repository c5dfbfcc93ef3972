package app

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/dashboards"
)

type dashboardsConfig struct {
	dir   string
	force bool
	books runbookURL
	https bool
}

func (d *dashboardsConfig) flags(a *kingpin.CmdClause) {
	a.Flag("output", "Output directory, one file per dashboard: a directory that Grafana provisions, or any to import them from.").Short('o').Required().PlaceHolder("DIR").StringVar(&d.dir)
	a.Flag("force", "Overwrite files that differ.").BoolVar(&d.force)
	d.books.flag(a, "Runbooks for links in alert tables.")
	a.Flag("https", "Link to the pages of exporters by https: for exporters with TLS.").BoolVar(&d.https)
}

func runDashboards(d *dashboardsConfig) (int, error) {
	if d.dir == "-" {
		return usage(errors.New("--output=-: must be a directory: each dashboard is a separate file"))
	}
	if err := d.books.check(); err != nil {
		return usage(err)
	}
	fsys, names, err := dashboards.All()
	if err != nil {
		return exitUsage, err
	}
	files, err := readEmbedded(fsys, names)
	if err != nil {
		return exitUsage, err
	}
	for i := range files {
		files[i].text = d.books.inDashboard(files[i].text)
		if d.https {
			files[i].text = bytes.ReplaceAll(files[i].text, []byte(`"http://${`), []byte(`"https://${`))
		}
	}
	if err := writeEmbedded(d.dir, d.force, files); err != nil {
		return usage(fmt.Errorf("--output=%s: %w", d.dir, err))
	}
	return exitOK, nil
}
