package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/control"
)

// remembers returns an exporter that remembers things by name, behind the socket of a directory.
func remembers(t *testing.T, dir string, things ...string) (left func() []string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o700))
	answer := func(names []string, forget bool) (a control.Accepted, err error) {
		a.Unknown = map[string]string{}
		for _, n := range names {
			if !slices.Contains(things, n) {
				a.Unknown[n] = n + ": unknown in " + filepath.Base(dir)
			}
		}
		if forget && len(a.Unknown) > 0 {
			return a, errors.New("is asked for what it does not know")
		}
		for _, thing := range things {
			if len(names) == 0 || slices.Contains(names, thing) {
				a.Forgets = append(a.Forgets, thing)
			}
		}
		if forget {
			things = slices.DeleteFunc(things, func(thing string) bool { return slices.Contains(a.Forgets, thing) })
		}
		return a, nil
	}
	mux := http.NewServeMux()
	control.HandleAccept(mux, func(_ context.Context, names []string) (control.Accepted, error) {
		return answer(names, false)
	}, func(_ context.Context, names []string) (control.Accepted, error) { return answer(names, true) })
	s, err := control.Listen(dir, mux, slog.New(slog.DiscardHandler))
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return func() []string { return things }
}

// TestUnwritableAccept: a list that is lost is an error, what was accepted is not.
func TestUnwritableAccept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	left := remembers(t, dir, "mlx5_0")
	for _, c := range []struct {
		flag string
		code int
		left int
	}{{"--dry-run", 2, 1}, {"--all", 0, 0}, {"--dry-run", 2, 0}} {
		code := Run(t.Context(), []string{"accept", "--state.dir=" + dir, c.flag}, full{}, io.Discard)
		if n := len(left()); code != c.code || n != c.left {
			t.Errorf("%s: exit %d, want %d; %d left, want %d", c.flag, code, c.code, n, c.left)
		}
	}
}

// TestAccept: each name goes to the exporters that know it, one that no exporter knows forgets nothing at all, and
// nothing is forgotten unasked.
func TestAccept(t *testing.T) {
	const planned, does, done = "To accept, by NAME or with --all (nothing changed yet):\n", "Accepting:\n",
		"Accepted. The present state is recorded.\n"
	for name, c := range map[string]struct {
		args         []string
		code         int
		want         string
		node, fabric string // that are left
	}{
		"nothing said":    {nil, 0, planned + "  mlx5_0\n  both\n  leaf1/1\n  both\n", "mlx5_0 both", "leaf1/1 both"},
		"all":             {[]string{"--all"}, 0, does + "  mlx5_0\n  both\n  leaf1/1\n  both\n" + done, "", ""},
		"all, dry":        {[]string{"--all", "--dry-run"}, 0, planned + "  mlx5_0\n  both\n  leaf1/1\n  both\n", "mlx5_0 both", "leaf1/1 both"},
		"a device":        {[]string{"mlx5_0"}, 0, does + "  mlx5_0\n" + done, "both", "leaf1/1 both"},
		"a link":          {[]string{"leaf1/1"}, 0, does + "  leaf1/1\n" + done, "mlx5_0 both", "both"},
		"one of each":     {[]string{"leaf1/1", "mlx5_0"}, 0, does + "  mlx5_0\n  leaf1/1\n" + done, "both", "both"},
		"of both":         {[]string{"both"}, 0, does + "  both\n  both\n" + done, "mlx5_0", "leaf1/1"},
		"by name, dry":    {[]string{"mlx5_0", "--dry-run"}, 0, planned + "  mlx5_0\n", "mlx5_0 both", "leaf1/1 both"},
		"unknown":         {[]string{"mlx5_0", "mlx5_9"}, 2, "rdma_exporter accept: mlx5_9: unknown in state\n", "mlx5_0 both", "leaf1/1 both"},
		"an unknown link": {[]string{"mlx5_0", "leaf9/1"}, 2, "rdma_exporter accept: leaf9/1: unknown in fabric\n", "mlx5_0 both", "leaf1/1 both"},
		"of a replay":     {[]string{"--replay=demo"}, 2, "rdma_exporter accept: --replay: a replay has no running exporter\n", "mlx5_0 both", "leaf1/1 both"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			node, fabric := remembers(t, dir, "mlx5_0", "both"), remembers(t, filepath.Join(dir, "fabric"), "leaf1/1", "both")
			code, out, errs := runProgram(t, append([]string{"accept", "--state.dir=" + dir}, c.args...)...)
			if code != c.code || out+errs != c.want {
				t.Errorf("exit %d\n%s%swant\n%s", code, out, errs, c.want)
			}
			if n, f := strings.Join(node(), " "), strings.Join(fabric(), " "); n != c.node || f != c.fabric {
				t.Errorf("left %q and %q, want %q and %q", n, f, c.node, c.fabric)
			}
		})
	}
}
