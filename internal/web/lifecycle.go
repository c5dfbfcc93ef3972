package web

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/common/model"

	"rdma_exporter/internal/host/nvml"
)

// lifecycle refuses requests that control the exporter unless they are enabled. command does the same on the host.
func (h *Handler) lifecycle(handle http.HandlerFunc, command string) http.HandlerFunc {
	if h.Lifecycle {
		return handle
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, fmt.Sprintf("lifecycle API is not enabled (--web.enable-lifecycle): run %s on the host", command),
			http.StatusForbidden)
	}
}

func (h *Handler) reload(w http.ResponseWriter, _ *http.Request) {
	if err := h.Reload(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprintln(w, "reloaded")
}

func (h *Handler) releaseGPUs(w http.ResponseWriter, r *http.Request) {
	text := r.URL.Query().Get("for")
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		http.Error(w,
			fmt.Sprintf("for=%s: must be a duration up to 24h, such as 30m; 0s ends the release", text), http.StatusBadRequest)
		return
	}
	switch err := h.ReleaseGPUs(r.Context(), d, "HTTP client "+client(r)); {
	case errors.Is(err, nvml.ErrReleaseTooLong):
		http.Error(w, fmt.Sprintf("for=%s: %v", text, err), http.StatusBadRequest)
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case d == 0:
		fmt.Fprintln(w, "release ended, GPUs are read again")
	default:
		fmt.Fprintf(w, "released: the exporter uses no GPU for %s; for=0s ends the release\n", model.Duration(d))
	}
}

// client returns the address of a client without its port.
func client(r *http.Request) string {
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return address
}
