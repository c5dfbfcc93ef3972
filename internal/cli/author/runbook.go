package author

import (
	"context"
	"fmt"
	"slices"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/docs/runbooks"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/machine"
)

// Runbook is the command runbook, with its flags.
type Runbook struct{ name string }

// Flags adds the flags.
func (r *Runbook) Flags(a *kingpin.CmdClause) {
	a.Arg("NAME", "Name of the alert. Default: list all with their meanings.").
		HintAction(runbooks.Names).StringVar(&r.name)
}

// Run prints the runbook of an alert, also by a former name, or lists all alerts that have one with their meanings.
func (r *Runbook) Run(_ context.Context, _ *machine.Config, std command.Streams) (int, error) {
	text, err := r.text()
	if err != nil {
		return command.Usage(err)
	}
	_, err = std.Out.Write(text)
	return command.OK, err
}

func (r *Runbook) text() ([]byte, error) {
	all := runbooks.Names()
	if r.name == "" {
		return listing(all), nil
	}
	if text, ok := runbooks.Text(r.name); ok {
		return text, nil
	}
	if now, ok := runbooks.Former(r.name); ok {
		text, _ := runbooks.Text(now.Alert) // there is one: docs/runbooks/former_test.go
		return fmt.Appendf(nil, "%s is now %s.\n\n%s", r.name, now, text), nil
	}
	return nil, fmt.Errorf("unknown alert %s: %s", r.name,
		command.Hint(r.name, slices.Concat(all, runbooks.FormerNames()), "names: rdma_exporter runbook"))
}

// listing returns a line for each alert: name and meaning, in columns.
func listing(names []string) (out []byte) {
	width := 0
	for _, name := range names {
		width = max(width, len(name))
	}
	for _, name := range names {
		meaning, _ := runbooks.Meaning(name) // each has one: docs/runbooks/runbooks_test.go
		out = fmt.Appendf(out, "%-*s  %s\n", width, name, meaning)
	}
	return out
}
