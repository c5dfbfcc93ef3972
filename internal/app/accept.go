package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/fabric"
)

// acceptPath is the path on the control sockets: GET lists, POST discards.
const acceptPath = "/accept"

// acceptAnswer is the state that an exporter discards, and the reasons for names that it does not know.
type acceptAnswer struct {
	Forgets []string          `json:"forgets"`
	Unknown map[string]string `json:"unknown,omitempty"`
}

// controlAccept adds the handlers on a socket. No names means all.
func controlAccept(mux *http.ServeMux, plan, accept func(ctx context.Context, names []string) (acceptAnswer, error)) {
	for method, answer := range map[string]func(context.Context, []string) (acceptAnswer, error){http.MethodGet: plan, http.MethodPost: accept} {
		mux.HandleFunc(method+" "+acceptPath, func(w http.ResponseWriter, r *http.Request) {
			a, err := answer(r.Context(), r.URL.Query()["name"])
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			answerJSON(w, a)
		})
	}
}

func (k *keeper) plan(_ context.Context, names []string) (acceptAnswer, error) {
	return answerOf(k.memory.Accept(names, true))
}

// accept responds when the change is on disk.
func (k *keeper) accept(_ context.Context, names []string) (acceptAnswer, error) {
	a, err := answerOf(k.memory.Accept(names, false))
	if err != nil {
		return a, err
	}
	k.log.Info("change accepted", "discarded", a.Forgets)
	if err := k.write(); err != nil {
		return a, fmt.Errorf("accepted, but not saved: the earlier state returns at the next restart of the exporter: %w", err)
	}
	return a, nil
}

// answerOf is the state that is discarded, a line each.
func answerOf(what expect.Accepted, unknown []string, err error) (acceptAnswer, error) {
	a := acceptAnswer{Unknown: map[string]string{}}
	for _, l := range what.Links {
		was := cmp.Or(rateText(l.Rate, l.Lanes), "ACTIVE")
		a.Forgets = append(a.Forgets, fmt.Sprintf("link %s: was %s", linkName(l), was))
	}
	for _, r := range what.Roles {
		a.Forgets = append(a.Forgets, fmt.Sprintf("port %s/%d: role was %s", r.Device, r.Port, r.Role))
	}
	for _, port := range portsOf(what.Baselines) {
		a.Forgets = append(a.Forgets, "port "+port+": baselines of bit errors and optics")
	}
	for _, f := range what.Functions {
		if f.Earlier != "" {
			a.Forgets = append(a.Forgets, fmt.Sprintf("device %s (%s): was named %s", f.Device, f.PCIAddress, f.Earlier))
			continue
		}
		a.Forgets = append(a.Forgets, fmt.Sprintf("device %s (%s): was present", f.Device, f.PCIAddress))
	}
	for _, name := range unknown {
		a.Unknown[name] = name + ": unknown device or port (see rdma_exporter expect list, rdma_exporter inventory list)"
	}
	return a, err
}

// portsOf are the ports of baselines, each once.
func portsOf(baselines []expect.Baseline) (out []string) {
	for _, b := range baselines {
		out = append(out, fmt.Sprintf("%s/%d", b.Device, b.Port))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// fabricControl serves the control socket of fabric until it is closed.
func fabricControl(dir string, m *fabric.Monitor, log *slog.Logger) (*http.Server, error) {
	mux := http.NewServeMux()
	controlAccept(mux, func(ctx context.Context, names []string) (a acceptAnswer, err error) {
		a.Forgets, a.Unknown, err = m.Plan(ctx, names)
		return a, err
	}, func(ctx context.Context, names []string) (a acceptAnswer, err error) {
		if a.Forgets, err = m.Accept(ctx, names, len(names) == 0); err == nil {
			log.Info("change accepted", "discarded", a.Forgets)
		}
		return a, err
	})
	return listenControl(dir, mux, log)
}

type acceptConfig struct {
	names  []string
	all    bool
	dryRun bool
}

func (p *acceptConfig) flags(a *kingpin.CmdClause) {
	a.Arg("NAME", "On this host: DEVICE, its PCI address, or DEVICE/PORT. In the fabric: NODE/PORT, one end of a link that is gone, or NODE, a node that does not respond, with all its links; node names are those of the fabric page, or GUIDs.").StringsVar(&p.names)
	a.Flag("all", "Accept all differences from the present state.").BoolVar(&p.all)
	a.Flag("dry-run", "List what would be accepted, change nothing.").BoolVar(&p.dryRun)
}

// remembering is a running exporter on this host with the state that it would discard.
type remembering struct {
	dir   string
	names []string // those known to it
	acceptAnswer
}

func runAccept(ctx context.Context, c *config, p *acceptConfig, stdout io.Writer) (int, error) {
	switch {
	case p.all && len(p.names) > 0:
		return usage(errors.New("NAME and --all are mutually exclusive"))
	case c.replay != "":
		return usage(errors.New("--replay: a replay has no running exporter"))
	}
	exporters, err := c.toAccept(ctx, p.names)
	if err != nil {
		return usage(err)
	}
	do := !p.dryRun && (p.all || len(p.names) > 0)
	var forgets []string
	for _, e := range exporters {
		forgets = append(forgets, e.Forgets...)
	}
	if len(forgets) == 0 {
		fmt.Fprintln(stdout, "Nothing to accept: no device or link differs from the recorded state.")
		return exitOK, nil
	}
	if do {
		fmt.Fprintln(stdout, "Accepting:")
	} else {
		fmt.Fprintln(stdout, "To accept, by NAME or with --all (nothing changed yet):")
	}
	for _, what := range forgets {
		fmt.Fprintf(stdout, "  %s\n", check.Plain(what))
	}
	if !do {
		return exitOK, nil
	}
	for _, e := range exporters {
		if len(e.Forgets) == 0 {
			continue
		}
		if _, err := askControl[acceptAnswer](ctx, e.dir, http.MethodPost, acceptPath, url.Values{"name": e.names}); err != nil {
			return usage(err)
		}
	}
	fmt.Fprintln(stdout, "Accepted. The present state is recorded.")
	return exitOK, nil
}

// toAccept asks the running exporters of this host what they would discard: serve, fabric, or both. A name that is unknown to all of them is an
// error.
func (c *config) toAccept(ctx context.Context, names []string) (out []remembering, err error) {
	var notRunning []error
	for _, dir := range []string{c.stateDir, filepath.Join(c.stateDir, fabricState)} {
		a, err := askControl[acceptAnswer](ctx, dir, http.MethodGet, acceptPath, url.Values{"name": names})
		switch {
		case errors.Is(err, errNoExporter):
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
