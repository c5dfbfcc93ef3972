package operate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/control"
	"rdma_exporter/internal/host/own"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/serve"
	"rdma_exporter/internal/serve/nodedaemon"
	"rdma_exporter/internal/words"
)

// Healthy is the command healthy, with its flags.
type Healthy struct {
	url     string
	ready   bool
	timeout time.Duration
}

// Flags adds the flags.
func (h *Healthy) Flags(a *kingpin.CmdClause) {
	a.Flag("url", "URL of the exporter, with its route prefix. Default: the exporter running in this container or on this host, found by its command line.").PlaceHolder("URL").StringVar(&h.url)
	a.Flag("ready", "Check also that the first collection has finished.").BoolVar(&h.ready)
	a.Flag("timeout", "Timeout of the request.").Default("3s").DurationVar(&h.timeout)
}

// Run queries the health endpoint of the running exporter.
func (h *Healthy) Run(ctx context.Context, _ *machine.Config, std command.Streams) (int, error) {
	base, err := h.base()
	if err != nil {
		return command.Usage(err)
	}
	if h.timeout <= 0 {
		return command.Usage(fmt.Errorf("--timeout=%s: must be greater than 0", h.timeout))
	}
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	path := "-/healthy"
	if h.ready {
		path = "-/ready"
	}
	u := base.JoinPath(path)
	status, err := askHealth(ctx, u)
	if errors.Is(err, http.ErrSchemeMismatch) { // --web.config.file does not enable TLS
		u.Scheme = "http"
		status, err = askHealth(ctx, u)
	}
	if err != nil {
		return command.Failed, fmt.Errorf("exporter not healthy: %w", err)
	}
	fmt.Fprintf(std.Out, "%s: %s\n", u.Redacted(), status) // healthy, also if nobody reads that
	return command.OK, nil
}

// base returns the URL of the exporter.
func (h *Healthy) base() (*url.URL, error) {
	if h.url != "" {
		u, err := control.ExporterURL(h.url)
		if err != nil {
			return nil, fmt.Errorf("--url=%s: %w", h.url, err)
		}
		return u, nil
	}
	var other *serve.Web // in fabric mode
	for _, args := range own.Siblings() {
		switch w, name, err := parseServed(args); {
		case err != nil:
		case name == nodedaemon.Name:
			return w.URL()
		default:
			other = w
		}
	}
	if other != nil {
		return other.URL()
	}
	return control.ExporterURL("http://127.0.0.1:" + machine.DefaultPort)
}

// askHealth returns the status of an exporter, or why it is not healthy. One that requires authentication is healthy:
// it responds.
func askHealth(ctx context.Context, u *url.URL) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", err
	}
	// The certificate has the external host name. The request has no secrets.
	resp, err := control.HTTPClient(&tls.Config{InsecureSkipVerify: true}).Do(req)
	var refused *net.OpError
	switch {
	case errors.As(err, &refused) && refused.Op == "remote error": // as crypto/tls names an alert of the peer
		return "healthy (requires a client certificate: " + refused.Err.Error() + ")", nil
	case err != nil:
		return "", err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return "healthy", nil
	case http.StatusUnauthorized:
		return "healthy (requires a password)", nil
	}
	return "", fmt.Errorf("%s: HTTP status %s", u.Redacted(), words.Foreign(resp.Status))
}
