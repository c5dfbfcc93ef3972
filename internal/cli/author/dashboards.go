package author

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/dashboards"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rulefiles"
)

// Dashboards is the command dashboards, with its flags.
type Dashboards struct {
	dir   string
	force bool
	books rulefiles.RunbookURL
	https bool
}

// Flags adds the flags.
func (d *Dashboards) Flags(a *kingpin.CmdClause) {
	a.Flag("output",
		"Output directory, one file per dashboard: a directory that Grafana provisions, or any to import them from.").
		Short('o').Required().PlaceHolder("DIR").StringVar(&d.dir)
	a.Flag("force", "Overwrite files that differ.").BoolVar(&d.force)
	a.Flag("runbook-url", "Runbooks for links in alert tables."+rulefiles.RunbookURLHelp).
		PlaceHolder("URL").StringVar((*string)(&d.books))
	a.Flag("https", "Link to the pages of exporters by https: for exporters with TLS.").BoolVar(&d.https)
}

// Run runs the command.
func (d *Dashboards) Run(_ context.Context, _ *machine.Config, _ command.Streams) (int, error) {
	if d.dir == "-" {
		return command.Usage(errors.New("--output=-: must be a directory: each dashboard is a separate file"))
	}
	if err := d.books.Check(); err != nil {
		return command.Usage(err)
	}
	fsys, names, err := dashboards.All()
	if err != nil {
		return command.UsageError, err
	}
	files, err := command.ReadEmbedded(fsys, names)
	if err != nil {
		return command.UsageError, err
	}
	for i := range files {
		files[i].Text = d.books.InDashboard(files[i].Text)
		if d.https {
			files[i].Text = bytes.ReplaceAll(files[i].Text, []byte(`"http://$`), []byte(`"https://$`))
		}
	}
	if err := command.WriteFiles(d.dir, d.force, files); err != nil {
		return command.Usage(fmt.Errorf("--output=%s: %w", d.dir, err))
	}
	return command.OK, nil
}
