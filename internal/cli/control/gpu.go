package control

import (
	"context"
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
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/snapshot"
)

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
	if err != nil || length <= 0 || time.Duration(length) > host.LongestRelease {
		return command.Usage(fmt.Errorf("--for=%s: must be a duration up to 24h, such as 30m", p.length))
	}
	q := url.Values{"for": {time.Duration(length).String()}, "by": {operator()}}
	return showRelease(ctx, c, http.MethodPost, control.GPUReleasePath, q, "%s\n", std)
}

// RunGPUResume is the command gpu resume.
func RunGPUResume(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	return showRelease(ctx, c, http.MethodPost, control.GPUResumePath, url.Values{"by": {operator()}}, "Ended: %s\n", std)
}

// RunGPUStatus is the command gpu status.
func RunGPUStatus(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	return showRelease(ctx, c, http.MethodGet, control.GPUPath, nil, "%s\n", std)
}

func showRelease(
	ctx context.Context, c *machine.Config, method, path string, q url.Values, format string, std command.Streams,
) (int, error) {
	r, err := ask[*snapshot.GPURelease](ctx, c, method, path, q)
	return show(r, instead(err, "takes POST /-/gpu/release?for=30m, with --web.enable-lifecycle"), format,
		"The GPUs are not released.", std)
}

// operator is the user who runs a command, before sudo.
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
