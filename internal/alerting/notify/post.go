package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/common/version"
	"github.com/prometheus/prometheus/notifier"

	"rdma_exporter/internal/words"
)

const (
	// requestTimeout is longer than that of Prometheus (10s): an answer after 10s is one, and sending again would deliver
	// twice.
	requestTimeout = 15 * time.Second
	// answerSize limits what is read of an answer.
	answerSize = 64 << 10
	// answerShown limits its text in an error.
	answerShown = 200
)

// post sends alerts to the API v2 of an Alertmanager. It returns the time of the response by the clock of the
// Alertmanager, zero if unknown.
func post(ctx context.Context, client *http.Client, base string, alerts []*notifier.Alert) (date time.Time, err error) {
	body, err := json.Marshal(alerts)
	if err != nil {
		return date, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(base, "/")+"/api/v2/alerts",
		bytes.NewReader(body))
	if err != nil {
		return date, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "rdma_exporter/"+version.Version)
	resp, err := client.Do(r)
	if err != nil {
		return date, plain(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, answerSize)) // the status decides
	date, _ = http.ParseTime(resp.Header.Get("Date"))            // zero if there is none
	if resp.StatusCode/100 != 2 {
		return date, &statusError{resp.StatusCode, words.Foreign(resp.Status), words.Foreign(strings.TrimSpace(string(text)))}
	}
	return date, nil
}

// plain returns an error of a request without the URL, which the log has beside it.
func plain(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", requestTimeout)
	}
	var inURL *url.Error
	if errors.As(err, &inURL) {
		return inURL.Err
	}
	return err
}

// statusError is an answer other than 2xx.
type statusError struct {
	code         int
	status, text string
}

func (e *statusError) Error() string {
	if e.text == "" {
		return e.status
	}
	return fmt.Sprintf("%s: %.*s", e.status, answerShown, e.text)
}

// isRejection reports whether an Alertmanager answered that the alerts themselves are invalid: it would reject them
// again.
func isRejection(err error) bool {
	var answer *statusError
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.code {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// Remedies of the errors of requests that a configuration causes.
const (
	urlFlag  = "--alerting.alertmanager-url"
	fileFlag = "--alerting.alertmanager-config-file"

	caRemedy = "set ca_file of tls_config in " + fileFlag +
		" to the certificate of the CA that signed the Alertmanager's"
	nameRemedy   = "set a host name of the certificate in " + urlFlag + ", or server_name of tls_config in " + fileFlag
	dateRemedy   = "renew the certificate of the Alertmanager, or correct the clock of this host"
	httpsRemedy  = "set https:// in " + urlFlag
	httpRemedy   = "set http:// in " + urlFlag
	clientRemedy = "set cert_file and key_file of tls_config in " + fileFlag
	loginRemedy  = "set basic_auth or authorization in " + fileFlag
	directRemedy = "redirects are not followed, set the address of the Alertmanager itself in " + urlFlag
	pathRemedy   = "set the path of the Alertmanager (its --web.route-prefix) in " + urlFlag
)

// remedyOf returns what to change so that a request succeeds; empty if it is not the configuration.
func remedyOf(err error) string {
	var (
		unknown *tls.CertificateVerificationError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		answer  *statusError
	)
	switch {
	case errors.As(err, &name):
		return nameRemedy
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return dateRemedy
	case errors.As(err, &unknown):
		return caRemedy
	case errors.Is(err, http.ErrSchemeMismatch):
		return httpRemedy
	case errors.As(err, &answer):
		return answer.remedy()
	case err != nil && strings.Contains(err.Error(), "remote error: tls: certificate required"):
		// crypto/tls exports no type of it.
		return clientRemedy
	}
	return ""
}

func (e *statusError) remedy() string {
	switch e.code {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		return directRemedy
	case http.StatusUnauthorized, http.StatusForbidden:
		return loginRemedy
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return pathRemedy
	case http.StatusBadRequest:
		if strings.Contains(e.text, "HTTP request to an HTTPS server") {
			return httpsRemedy
		}
	}
	return ""
}
