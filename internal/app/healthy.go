package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	promslogflag "github.com/prometheus/common/promslog/flag"

	"rdma_exporter/internal/host"
)

// exitUnhealthy is the exit code for unhealthy in health checks of container engines.
const exitUnhealthy = 1

type healthyConfig struct {
	url     string
	ready   bool
	timeout time.Duration
}

func (h *healthyConfig) flags(a *kingpin.CmdClause) {
	a.Flag("url", "URL of the exporter, with its route prefix. Default: the exporter running in this container or on this host, found by its command line.").PlaceHolder("URL").StringVar(&h.url)
	a.Flag("ready", "Check also that the first collection has finished.").BoolVar(&h.ready)
	a.Flag("timeout", "Timeout of the request.").Default("3s").DurationVar(&h.timeout)
}

// runHealthy queries the health endpoint of the running exporter.
func runHealthy(ctx context.Context, h *healthyConfig, stdout io.Writer) (int, error) {
	base, err := h.base()
	if err != nil {
		return usage(err)
	}
	if h.timeout <= 0 {
		return usage(fmt.Errorf("--timeout=%s: must be greater than 0", h.timeout))
	}
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	path := "-/healthy"
	if h.ready {
		path = "-/ready"
	}
	u := base.JoinPath(path)
	status, err := ask(ctx, u)
	if errors.Is(err, http.ErrSchemeMismatch) { // --web.config.file does not enable TLS
		u.Scheme = "http"
		status, err = ask(ctx, u)
	}
	if err != nil {
		return exitUnhealthy, fmt.Errorf("exporter not healthy: %w", err)
	}
	_, err = fmt.Fprintf(stdout, "%s: %s\n", u.Redacted(), status)
	return exitOK, err
}

// base is the URL of the exporter.
func (h *healthyConfig) base() (*url.URL, error) {
	if h.url != "" {
		u, err := exporterURL(h.url)
		if err != nil {
			return nil, fmt.Errorf("--url=%s: %w", h.url, err)
		}
		return u, nil
	}
	var other *webConfig // in fabric mode
	for _, args := range host.Siblings() {
		switch w, command, err := served(args); {
		case err != nil:
		case command == serveCommand:
			return w.ownURL()
		default:
			other = w
		}
	}
	if other != nil {
		return other.ownURL()
	}
	return exporterURL("http://127.0.0.1:" + defaultPort)
}

// served parses a command line of this program; an error for one that is neither serve nor fabric.
func served(args []string) (w *webConfig, command string, err error) {
	a := kingpin.New("rdma_exporter", "").Terminate(nil).UsageWriter(io.Discard).ErrorWriter(io.Discard)
	var c config
	c.flags(a)
	promslogflag.AddFlags(a, &promslog.Config{})
	var s serveConfig
	s.flags(a.Command(serveCommand, "").Default())
	var f fabricConfig
	f.flags(a.Command(fabricCommand, ""))
	if command, err = a.Parse(args); err != nil {
		return nil, "", err
	}
	w = &s.webConfig
	if command == fabricCommand {
		w = &f.webConfig
	}
	return w, command, w.check()
}

// ownURL is the URL of an exporter with these flags in its own network namespace. Its scheme is https if it may have TLS.
func (w *webConfig) ownURL() (*url.URL, error) {
	listen := *w.toolkit.WebListenAddresses
	if *w.toolkit.WebSystemdSocket || len(listen) == 0 {
		return nil, errors.New("the running exporter uses a systemd socket: set --url")
	}
	name, port, err := net.SplitHostPort(listen[0])
	if err != nil || port == "0" {
		return nil, fmt.Errorf("the running exporter listens on %s: set --url", listen[0])
	}
	switch ip := net.ParseIP(name); {
	case name == "" || ip.Equal(net.IPv4zero):
		name = "127.0.0.1"
	case ip.Equal(net.IPv6unspecified):
		name = "::1"
	}
	u := &url.URL{Scheme: "http", Host: net.JoinHostPort(name, port), Path: w.routePrefix}
	if *w.toolkit.WebConfigFile != "" {
		u.Scheme = "https"
	}
	return u, nil
}

// ask returns the status of an exporter, or why it is not healthy. One that requires authentication is healthy: it responds.
func ask(ctx context.Context, u *url.URL) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", err
	}
	// The certificate has the external host name. The request has no secrets.
	resp, err := localClient(&tls.Config{InsecureSkipVerify: true}).Do(req)
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
	return "", fmt.Errorf("%s: HTTP status %s", u.Redacted(), resp.Status)
}
