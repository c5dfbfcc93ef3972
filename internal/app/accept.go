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

// acceptPath is that of the control sockets: GET plans, POST forgets.
const acceptPath = "/accept"

// acceptAnswer is what an exporter forgets, and why names are none that it remembers.
type acceptAnswer struct {
	Forgets []string          `json:"forgets"`
	Unknown map[string]string `json:"unknown,omitempty"`
}

// controlAccept adds the answers on a socket. No names are all.
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

// accept answers once it is so on disk.
func (k *keeper) accept(_ context.Context, names []string) (acceptAnswer, error) {
	a, err := answerOf(k.memory.Accept(names, false))
	if err != nil {
		return a, err
	}
	k.log.Info("accepted", "forgotten", a.Forgets)
	if err := k.write(); err != nil {
		return a, fmt.Errorf("forgotten until the exporter ends only: %w", err)
	}
	return a, nil
}

// answerOf says what is forgotten, a line each.
func answerOf(what expect.Accepted, unknown []string, err error) (acceptAnswer, error) {
	a := acceptAnswer{Unknown: map[string]string{}}
	for _, l := range what.Links {
		was := cmp.Or(rateText(l.Rate, l.Lanes), "ACTIVE")
		a.Forgets = append(a.Forgets, fmt.Sprintf("link %s: was %s", linkName(l), was))
	}
	for _, r := range what.Roles {
		a.Forgets = append(a.Forgets, fmt.Sprintf("port %s/%d: was of role %s", r.Device, r.Port, r.Role))
	}
	for _, f := range what.Functions {
		if f.Earlier != "" {
			a.Forgets = append(a.Forgets, fmt.Sprintf("device %s (%s): was named %s", f.Device, f.PCIAddress, f.Earlier))
			continue
		}
		a.Forgets = append(a.Forgets, fmt.Sprintf("device %s (%s): was present", f.Device, f.PCIAddress))
	}
	for _, name := range unknown {
		a.Unknown[name] = name + ": no such device or port is remembered (see rdma_exporter expect list, inventory list)"
	}
	return a, err
}

// fabricControl answers on the socket of a fabric's state directory until it is closed.
func fabricControl(dir string, m *fabric.Monitor, log *slog.Logger) (*http.Server, error) {
	mux := http.NewServeMux()
	controlAccept(mux, func(ctx context.Context, names []string) (a acceptAnswer, err error) {
		a.Forgets, a.Unknown, err = m.Plan(ctx, names)
		return a, err
	}, func(ctx context.Context, names []string) (a acceptAnswer, err error) {
		if a.Forgets, err = m.Accept(ctx, names, len(names) == 0); err == nil {
			log.Info("accepted as taken away", "forgotten", a.Forgets)
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
	a.Arg("NAME", "DEVICE, its PCI address or DEVICE/PORT of this host; of the fabric NODE/PORT, one end of a link that is gone, or NODE, one that does not answer, with all its links. Names of the fabric are those of its page, or GUIDs.").StringsVar(&p.names)
	a.Flag("all", "All that differs from what is there now.").BoolVar(&p.all)
	a.Flag("dry-run", "Only show what would be forgotten.").BoolVar(&p.dryRun)
}

// remembering is an exporter that runs on this host, and what is to be accepted of it.
type remembering struct {
	dir   string
	names []string // that it knows
	acceptAnswer
}

func runAccept(ctx context.Context, c *config, p *acceptConfig, stdout io.Writer) (int, error) {
	switch {
	case p.all && len(p.names) > 0:
		return usage(errors.New("accept: name devices or links, or give --all, not both"))
	case c.replay != "":
		return usage(errors.New("accept: a replay has no running exporter; leave --replay out"))
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
		fmt.Fprintln(stdout, "Nothing to accept: what is remembered is there.")
		return exitOK, nil
	}
	if do {
		fmt.Fprintln(stdout, "Forgetting:")
	} else {
		fmt.Fprintln(stdout, "To accept, by name or with --all; nothing is forgotten yet:")
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
	fmt.Fprintln(stdout, "Forgotten. What is there is remembered again.")
	return exitOK, nil
}

// toAccept asks the exporters that run on this host what they would forget: that of the node, that of the fabric, or both. A name that none of
// them knows is an error.
func (c *config) toAccept(ctx context.Context, names []string) (out []remembering, err error) {
	var refused []error
	for _, dir := range []string{c.stateDir, filepath.Join(c.stateDir, fabricState)} {
		a, err := askControl[acceptAnswer](ctx, dir, http.MethodGet, acceptPath, url.Values{"name": names})
		switch {
		case errors.Is(err, errNoExporter):
			refused = append(refused, err)
			continue
		case err != nil:
			return nil, err
		}
		known := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return a.Unknown[n] != "" })
		out = append(out, remembering{dir, known, a})
	}
	if len(out) == 0 {
		return nil, refused[0]
	}
	for _, name := range names {
		if !slices.ContainsFunc(out, func(e remembering) bool { return e.Unknown[name] == "" }) {
			err = errors.Join(err, errors.New(whyUnknown(out, name)))
		}
	}
	return out, err
}

// whyUnknown prefers the words of the fabric for what looks like one of its names.
func whyUnknown(of []remembering, name string) string {
	if last := of[len(of)-1].Unknown[name]; strings.Contains(name, "/") {
		return last
	}
	return of[0].Unknown[name]
}
