package nodedaemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/common/model"

	"rdma_exporter/internal/control"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/nvml"
	"rdma_exporter/internal/snapshot/accel"
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
	case errors.Is(err, nvml.ErrReleaseTooLong):
		return err
	case err != nil && r == nil:
		return fmt.Errorf("cannot release the GPUs: %w", err)
	case err != nil:
		g.log.Warn("not all GPUs could be released, retrying", "until", r.Until.UTC(), "by", by, "err", err)
		return fmt.Errorf("not all GPUs released: %w; GPUs are not read for %s and are released as soon as possible",
			err, model.Duration(d))
	case r == nil:
		g.log.Info("release of GPUs ended", "by", by)
	default:
		g.log.Info("GPUs released", "until", r.Until.UTC(), "since", r.Since.UTC(), "by", by)
	}
	return nil
}

// addHandlers adds the handlers for the control socket. They respond with the current release or null; a request to end
// it gets the ended release.
func (g gpuRelease) addHandlers(mux *http.ServeMux) {
	control.Handle(mux, "GET "+control.GPUPath,
		func(*http.Request) (*accel.GPURelease, error) { return g.gpus.GPUsReleased(), nil })
	control.Handle(mux, "POST "+control.GPUReleasePath, func(r *http.Request) (*accel.GPURelease, error) {
		d, err := time.ParseDuration(r.URL.Query().Get("for"))
		if err == nil {
			err = checkRelease(d)
		}
		if err == nil {
			err = g.release(r.Context(), d, requesterOf(r))
		}
		if err != nil {
			return nil, control.BadRequest(err)
		}
		return g.gpus.GPUsReleased(), nil
	})
	control.Handle(mux, "POST "+control.GPUResumePath, func(r *http.Request) (*accel.GPURelease, error) {
		before := g.gpus.GPUsReleased()
		return before, g.release(r.Context(), 0, requesterOf(r))
	})
}

// requesterOf returns the user that a request on the socket names, as untrusted text.
func requesterOf(r *http.Request) string {
	return cmp.Or(exposition.ValidLabel(r.URL.Query().Get("by")), "the control socket")
}

// checkRelease validates the duration of a release.
func checkRelease(d time.Duration) error {
	if d <= 0 || d > nvml.LongestRelease {
		return errors.New("--for: must be a duration up to 24h, such as 30m")
	}
	return nil
}
