// Package control has the commands that control the running exporter: accept, maintenance, gpu, reload.
package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/control"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/words"
)

// instead adds to the error of a missing socket what an exporter without one accepts.
func instead(err error, what string) error {
	if errors.Is(err, control.ErrNoExporter) {
		return fmt.Errorf("%w; an exporter without a usable state directory %s", err, what)
	}
	return err
}

// RunReload is the command reload.
func RunReload(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	if _, err := ask[bool](ctx, c, http.MethodPost, control.ReloadPath, nil); err != nil {
		return command.Usage(instead(err, "reloads on SIGHUP"))
	}
	fmt.Fprintln(std.Out, "Configuration reloaded.")
	return command.OK, nil
}

// errReplay is the error of a command that needs a running exporter.
var errReplay = errors.New("--replay: a replay has no running exporter")

// ask sends a request to the running exporter.
func ask[T any](ctx context.Context, c *machine.Config, method, path string, q url.Values) (answer T, err error) {
	if c.Replay != "" {
		return answer, errReplay
	}
	return control.Ask[T](ctx, c.StateDir, method, path, q)
}

// show prints a response, and none for null.
func show[T fmt.Stringer](answer *T, err error, format, none string, std command.Streams) (int, error) {
	switch {
	case err != nil:
		return command.Usage(err)
	case answer == nil:
		fmt.Fprintln(std.Out, none)
	default:
		fmt.Fprintf(std.Out, format, words.Plain((*answer).String()))
	}
	return command.OK, nil
}
