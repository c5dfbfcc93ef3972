package control

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
)

// ExporterURL parses the URL of an exporter.
func ExporterURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("must be http://HOST:PORT or https://HOST:PORT, with the route prefix of the exporter")
	}
	return u, nil
}

// HTTPClient is for the exporter of this host: without proxies and redirects.
func HTTPClient(c *tls.Config) *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, TLSClientConfig: c},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
