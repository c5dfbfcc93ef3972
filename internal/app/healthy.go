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

// exitUnhealthy is what the health checks of container engines take for unhealthy.
const exitUnhealthy = 1

type healthyConfig struct {
	url     string
	ready   bool
	timeout time.Duration
}

func (h *healthyConfig) flags(a *kingpin.CmdClause) {
	a.Flag("url", "The exporter to ask, with the prefix of its paths if it has one; empty: the one that runs in this container or on this host, by its own command line.").PlaceHolder("URL").StringVar(&h.url)
	a.Flag("ready", "Ask as well whether its first collection has ended.").BoolVar(&h.ready)
	a.Flag("timeout", "How long it has to answer.").Default("3s").DurationVar(&h.timeout)
}

// runHealthy asks the running exporter whether it answers.
func runHealthy(ctx context.Context, h *healthyConfig, stdout io.Writer) (int, error) {
	base, err := h.base()
	if err != nil {
		return usage(err)
	}
	if h.timeout <= 0 {
		return usage(fmt.Errorf("--timeout=%s: has to be more than 0", h.timeout))
	}
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	path := "-/healthy"
	if h.ready {
		path = "-/ready"
	}
	u := base.JoinPath(path)
	said, err := ask(ctx, u)
	if errors.Is(err, http.ErrSchemeMismatch) { // its configuration has no TLS
		u.Scheme = "http"
		said, err = ask(ctx, u)
	}
	if err != nil {
		return exitUnhealthy, fmt.Errorf("the exporter is not healthy: %w", err)
	}
	_, err = fmt.Fprintf(stdout, "%s: %s\n", u.Redacted(), said)
	return exitOK, err
}

// base is the URL of the exporter that is asked.
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

// served is how a command line of this program serves, and by which command; an error for one that serves nothing.
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

// ownURL is where an exporter with these flags is reached from its own network namespace. Its scheme is https where it may have TLS.
func (w *webConfig) ownURL() (*url.URL, error) {
	listen := *w.toolkit.WebListenAddresses
	if *w.toolkit.WebSystemdSocket || len(listen) == 0 {
		return nil, errors.New("the running exporter has its socket from systemd: give --url")
	}
	name, port, err := net.SplitHostPort(listen[0])
	if err != nil || port == "0" {
		return nil, fmt.Errorf("the running exporter listens at %s: give --url", listen[0])
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

// knock says how an exporter is, or why it is not well. One that wants to know first who asks is well: it answers.
func ask(ctx context.Context, u *url.URL) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", err
	}
	// The certificate has the name that others use, and nothing is told to whoever shows it.
	resp, err := localClient(&tls.Config{InsecureSkipVerify: true}).Do(req)
	var refused *net.OpError
	switch {
	case errors.As(err, &refused) && refused.Op == "remote error": // as crypto/tls names an alert of the other side
		return "it answers, and wants another certificate: " + refused.Err.Error(), nil
	case err != nil:
		return "", err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return "healthy", nil
	case http.StatusUnauthorized:
		return "it answers, and wants a password", nil
	}
	return "", fmt.Errorf("%s: it answers %s", u.Redacted(), resp.Status)
}
