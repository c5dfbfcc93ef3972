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
	"os"
	"os/user"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/model"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

// gpuRelease releases the GPUs on request, by the control socket or over HTTP.
type gpuRelease struct {
	gpus host.GPUs
	log  *slog.Logger
}

// gpuReleaseTime is the maximum wait for the NVIDIA driver, less than controlTime.
const gpuReleaseTime = 45 * time.Second

// release releases the GPUs for d and waits until their handles are closed; 0 ends the release.
func (g gpuRelease) release(ctx context.Context, d time.Duration, by string) error {
	ctx, cancel := context.WithTimeout(ctx, gpuReleaseTime)
	defer cancel()
	err := g.gpus.ReleaseGPUs(ctx, d, by)
	switch r := g.gpus.GPUsReleased(); {
	case errors.Is(err, host.ErrReleaseTooLong):
		return err
	case err != nil && r == nil:
		return fmt.Errorf("cannot release the GPUs: %w", err)
	case err != nil:
		g.log.Warn("not all GPUs could be released, retrying", "until", r.Until.UTC(), "by", by, "err", err)
		return fmt.Errorf("not all GPUs released: %w; GPUs are not read for %s and are released as soon as possible", err, model.Duration(d))
	case r == nil:
		g.log.Info("release of GPUs ended", "by", by)
	default:
		g.log.Info("GPUs released", "until", r.Until.UTC(), "since", r.Since.UTC(), "by", by)
	}
	return nil
}

// Paths of the control socket.
const (
	gpuPath        = "/gpu"
	gpuReleasePath = "/gpu/release"
	gpuResumePath  = "/gpu/resume"
)

// control adds the handlers on the control socket. They respond with the current release or null; to its end, with what ended.
func (g gpuRelease) control(mux *http.ServeMux) {
	mux.HandleFunc("GET "+gpuPath, func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, g.gpus.GPUsReleased()) })
	mux.HandleFunc("POST "+gpuReleasePath, func(w http.ResponseWriter, r *http.Request) {
		d, err := time.ParseDuration(r.URL.Query().Get("for"))
		if err == nil {
			err = checkRelease(d)
		}
		if err == nil {
			err = g.release(r.Context(), d, requester(r))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answerJSON(w, g.gpus.GPUsReleased())
	})
	mux.HandleFunc("POST "+gpuResumePath, func(w http.ResponseWriter, r *http.Request) {
		before := g.gpus.GPUsReleased()
		if err := g.release(r.Context(), 0, requester(r)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		answerJSON(w, before)
	})
}

// requester is the user that a request on the socket names, as untrusted text.
func requester(r *http.Request) string {
	return cmp.Or(exposition.ValidLabel(r.URL.Query().Get("by")), "the control socket")
}

func checkRelease(d time.Duration) error {
	if d <= 0 || d > host.LongestRelease {
		return errors.New("--for: must be a duration up to 24h, such as 30m")
	}
	return nil
}

// gpuReleaseConfig is of "gpu release".
type gpuReleaseConfig struct{ length string }

func (p *gpuReleaseConfig) flags(a *kingpin.CmdClause) {
	a.Flag("for", "Duration of the release, such as 30m; at most 24h, with the releases that it extends.").Required().PlaceHolder("DURATION").StringVar(&p.length)
}

func runGPURelease(ctx context.Context, c *config, p *gpuReleaseConfig, stdout io.Writer) (int, error) {
	length, err := model.ParseDuration(p.length)
	if err != nil || checkRelease(time.Duration(length)) != nil {
		return usage(fmt.Errorf("--for=%s: must be a duration up to 24h, such as 30m", p.length))
	}
	q := url.Values{"for": {time.Duration(length).String()}, "by": {operator()}}
	return printRelease(ctx, c, http.MethodPost, gpuReleasePath, q, "%s\n", stdout)
}

func runGPUResume(ctx context.Context, c *config, stdout io.Writer) (int, error) {
	return printRelease(ctx, c, http.MethodPost, gpuResumePath, url.Values{"by": {operator()}}, "Ended: %s\n", stdout)
}

func runGPUStatus(ctx context.Context, c *config, stdout io.Writer) (int, error) {
	return printRelease(ctx, c, http.MethodGet, gpuPath, nil, "%s\n", stdout)
}

// printRelease sends a request to the running exporter, and prints the response.
func printRelease(ctx context.Context, c *config, method, path string, q url.Values, format string, stdout io.Writer) (int, error) {
	if c.replay != "" {
		return usage(errors.New("--replay: a replay has no running exporter"))
	}
	r, err := askControl[*snapshot.GPURelease](ctx, c.stateDir, method, path, q)
	if err != nil {
		return usage(instead(err, "takes POST /-/gpu/release?for=30m, with --web.enable-lifecycle"))
	}
	if r == nil {
		fmt.Fprintln(stdout, "The GPUs are not released.")
		return exitOK, nil
	}
	fmt.Fprintf(stdout, format, check.Plain(r.String()))
	return exitOK, nil
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
