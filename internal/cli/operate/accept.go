package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/control"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/words"
)

// Accept is the command accept, with its flags.
type Accept struct {
	names  []string
	all    bool
	dryRun bool
}

// Flags adds the flags.
func (p *Accept) Flags(a *kingpin.CmdClause) {
	a.Arg("NAME", "On this host: DEVICE, its PCI address, or DEVICE/PORT. In the fabric: NODE/PORT, one end of a link that is gone, or NODE, a node that does not respond, with all its links; node names are those of the fabric page, or GUIDs.").StringsVar(&p.names)
	a.Flag("all", "Accept all differences from the present state.").BoolVar(&p.all)
	a.Flag("dry-run", "List what would be accepted, change nothing.").BoolVar(&p.dryRun)
}

// remembering is a running exporter on this host with the state that it would discard.
type remembering struct {
	dir   string
	names []string // those known to it
	control.Accepted
}

// Run runs the command.
func (p *Accept) Run(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	switch {
	case p.all && len(p.names) > 0:
		return command.Usage(errors.New("NAME and --all are mutually exclusive"))
	case c.Replay != "":
		return command.Usage(errReplay)
	}
	exporters, err := toAccept(ctx, c.StateDir, p.names)
	if err != nil {
		return command.Usage(err)
	}
	do := !p.dryRun && (p.all || len(p.names) > 0)
	var forgets []string
	for _, e := range exporters {
		forgets = append(forgets, e.Forgets...)
	}
	text := "To accept, by NAME or with --all (nothing changed yet):\n"
	switch {
	case len(forgets) == 0:
		text = "Nothing to accept: no device or link differs from the recorded state.\n"
	case do:
		text = "Accepting:\n"
	}
	for _, what := range forgets {
		text += "  " + words.Plain(what) + "\n"
	}
	if _, err := io.WriteString(std.Out, text); !do || len(forgets) == 0 {
		return command.OK, err
	}
	for _, e := range exporters {
		if len(e.Forgets) == 0 {
			continue
		}
		if _, err := control.Ask[control.Accepted](ctx, e.dir, http.MethodPost, control.AcceptPath,
			url.Values{"name": e.names}); err != nil {
			return command.Usage(err)
		}
	}
	fmt.Fprintln(std.Out, "Accepted. The present state is recorded.")
	return command.OK, nil
}

// toAccept asks the running exporters of this host what they would discard: serve, fabric, or both. A name that is
// unknown to all of them is an error.
func toAccept(ctx context.Context, stateDir string, names []string) (out []remembering, err error) {
	var notRunning []error
	for _, dir := range []string{stateDir, filepath.Join(stateDir, control.FabricFolder)} {
		a, err := control.Ask[control.Accepted](ctx, dir, http.MethodGet, control.AcceptPath, url.Values{"name": names})
		switch {
		case errors.Is(err, control.ErrNoExporter):
			notRunning = append(notRunning, err)
			continue
		case err != nil:
			return nil, err
		}
		known := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return a.Unknown[n] != "" })
		out = append(out, remembering{dir, known, a})
	}
	if len(out) == 0 {
		return nil, notRunning[0]
	}
	for _, name := range names {
		if !slices.ContainsFunc(out, func(e remembering) bool { return e.Unknown[name] == "" }) {
			err = errors.Join(err, errors.New(whyUnknown(out, name)))
		}
	}
	return out, err
}

// whyUnknown prefers the reason of fabric for names in its form.
func whyUnknown(of []remembering, name string) string {
	if last := of[len(of)-1].Unknown[name]; strings.Contains(name, "/") {
		return last
	}
	return of[0].Unknown[name]
}
