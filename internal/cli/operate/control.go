// Package operate has the commands for the running exporter: accept, maintenance, gpu, reload, healthy, and its helper.
package operate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/model"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/control"
	"rdma_exporter/internal/host/nvml"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/maintenance"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/words"
)

// instead adds to the error of a missing socket what an exporter without one accepts.
func instead(err error, what string) error {
	if errors.Is(err, control.ErrNoExporter) {
		return fmt.Errorf("%w; an exporter without a usable state directory %s", err, what)
	}
	return err
}

// RunReload runs the command reload.
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

// Maintenance is of "maintenance start".
type Maintenance struct {
	length string
	reason string
}

// Flags adds the flags.
func (p *Maintenance) Flags(a *kingpin.CmdClause) {
	a.Flag("for", "Duration of the maintenance, such as 30m, 2h or 1d; from 1m to 7d.").
		Required().PlaceHolder("DURATION").StringVar(&p.length)
	a.Flag("reason", "Reason, one line of up to 200 characters, shown on the page and by check.").
		PlaceHolder("TEXT").StringVar(&p.reason)
}

// Run runs the command.
func (p *Maintenance) Run(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	length, err := model.ParseDuration(p.length)
	if err != nil {
		return command.Usage(fmt.Errorf("--for=%s: must be a duration from 1m to 7d, such as 30m, 2h or 1d", p.length))
	}
	if err := errors.Join(maintenance.CheckLength(time.Duration(length)), maintenance.CheckReason(p.reason)); err != nil {
		return command.Usage(err)
	}
	q := url.Values{"for": {time.Duration(length).String()}, "reason": {p.reason}}
	return showMaintenance(ctx, c, http.MethodPost, control.MaintenanceStartPath, q, "%s\n", std)
}

// RunMaintenanceEnd runs the command maintenance end.
func RunMaintenanceEnd(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	return showMaintenance(ctx, c, http.MethodPost, control.MaintenanceEndPath, nil, "Ended: %s\n", std)
}

// RunMaintenanceStatus runs the command maintenance status.
func RunMaintenanceStatus(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	return showMaintenance(ctx, c, http.MethodGet, control.MaintenancePath, nil, "%s\n", std)
}

// showMaintenance prints the maintenance in a response.
func showMaintenance(
	ctx context.Context, c *machine.Config, method, path string, q url.Values, format string, std command.Streams,
) (int, error) {
	n, err := ask[*maintenance.Notice](ctx, c, method, path, q)
	return show(n, err, method, format, "No maintenance is announced.", std)
}

// GPURelease is of "gpu release".
type GPURelease struct{ length string }

// Flags adds the flags.
func (p *GPURelease) Flags(a *kingpin.CmdClause) {
	a.Flag("for", "Duration of the release, such as 30m; at most 24h, with the releases that it extends.").
		Required().PlaceHolder("DURATION").StringVar(&p.length)
}

// Run runs the command.
func (p *GPURelease) Run(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	length, err := model.ParseDuration(p.length)
	if err != nil || length <= 0 || time.Duration(length) > nvml.LongestRelease {
		return command.Usage(fmt.Errorf("--for=%s: must be a duration up to 24h, such as 30m", p.length))
	}
	q := url.Values{"for": {time.Duration(length).String()}, "by": {operator()}}
	return showRelease(ctx, c, http.MethodPost, control.GPUReleasePath, q, "%s\n", std)
}

// RunGPUResume runs the command gpu resume.
func RunGPUResume(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	return showRelease(ctx, c, http.MethodPost, control.GPUResumePath, url.Values{"by": {operator()}}, "Ended: %s\n", std)
}

// RunGPUStatus runs the command gpu status.
func RunGPUStatus(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	return showRelease(ctx, c, http.MethodGet, control.GPUPath, nil, "%s\n", std)
}

func showRelease(
	ctx context.Context, c *machine.Config, method, path string, q url.Values, format string, std command.Streams,
) (int, error) {
	r, err := ask[*accel.GPURelease](ctx, c, method, path, q)
	return show(r, instead(err, "takes POST /-/gpu/release?for=30m, with --web.enable-lifecycle"), method, format,
		"The GPUs are not released.", std)
}

// show prints a response, and none for null.
func show[T fmt.Stringer](answer *T, err error, method, format, none string, std command.Streams) (int, error) {
	switch {
	case err != nil:
		return command.Usage(err)
	case answer == nil:
		_, err = fmt.Fprintln(std.Out, none)
	default:
		_, err = fmt.Fprintf(std.Out, format, words.Plain((*answer).String()))
	}
	if method != http.MethodGet { // done, also if nobody reads that
		err = nil
	}
	return command.OK, err
}

// operator returns the user who runs a command, before sudo.
func operator() string {
	if name := os.Getenv("SUDO_USER"); name != "" {
		return name
	}
	u, err := user.Current()
	if err != nil {
		return fmt.Sprintf("uid %d", os.Getuid())
	}
	return u.Username
}
