package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/fabric"
)

// fabricControl answers on the socket of a fabric's state directory until it is closed.
func fabricControl(dir string, m *fabric.Monitor, log *slog.Logger) (*http.Server, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+acceptFabric, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		forgotten, err := m.Accept(r.Context(), q["device"], q.Get("all") == "true")
		switch {
		case errors.Is(err, fabric.ErrNotKept):
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		log.Info("accepted as taken away", "forgotten", forgotten)
		answerJSON(w, forgotten)
	})
	return listenControl(dir, mux, log)
}

func runFabricAccept(ctx context.Context, c *config, p *acceptConfig, stdout io.Writer) (int, error) {
	if err := p.check(c); err != nil {
		return usage(err)
	}
	forgotten, err := accept[string](ctx, filepath.Join(c.stateDir, fabricState), acceptFabric, p.devices, p.all)
	if err != nil {
		return usage(err)
	}
	for _, what := range forgotten {
		fmt.Fprintf(stdout, "%s: no longer expected; what comes back is remembered again\n", check.Plain(what))
	}
	return exitOK, nil
}
