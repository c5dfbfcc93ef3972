package notify_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/alerting/notify"
)

// certified is a self-signed certificate for 127.0.0.1.
type certified struct {
	pair tls.Certificate
	pem  []byte
}

func certificate(t *testing.T, name string, until time.Time) certified {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: until,
		BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return certified{
		tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}
}

// TestRemedy: an error that a configuration causes names the flag to change, once, whatever the number of attempts.
func TestRemedy(t *testing.T) {
	valid, expired := certificate(t, "am", time.Now().Add(time.Hour)), certificate(t, "am", time.Now().Add(-time.Hour))
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	redirect := func(code int) http.HandlerFunc { // to an address that takes everything
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				return
			}
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(code)
		}
	}
	trust := func(c certified) func(t *testing.T) string {
		return func(t *testing.T) string {
			dir := t.TempDir()
			write(t, dir+"/ca.pem", string(c.pem))
			write(t, dir+"/am.yml", "tls_config: {ca_file: ca.pem}\n")
			return filepath.Join(dir, "am.yml")
		}
	}
	for name, c := range map[string]struct {
		tls    *tls.Config // nil: HTTP
		scheme string
		host   string
		file   func(t *testing.T) string
		answer http.HandlerFunc
		want   string
	}{
		"unknown CA":        {tls: serving(valid), scheme: "https", want: "unknown authority: set ca_file of tls_config in --alerting.alertmanager-config-file"},
		"another name":      {tls: serving(valid), scheme: "https", host: "localhost", file: trust(valid), want: "not localhost: set a host name of the certificate in --alerting.alertmanager-url"},
		"expired":           {tls: serving(expired), scheme: "https", file: trust(expired), want: ": renew the certificate of the Alertmanager, or correct the clock of this host"},
		"HTTPS wanted":      {tls: serving(valid), scheme: "http", want: ": set https:// in --alerting.alertmanager-url"},
		"HTTP wanted":       {scheme: "https", want: ": set http:// in --alerting.alertmanager-url"},
		"no client's":       {tls: demanding(valid), scheme: "https", file: trust(valid), want: ": set cert_file and key_file of tls_config in --alerting.alertmanager-config-file"},
		"no password":       {scheme: "http", answer: status(http.StatusUnauthorized), want: "401 Unauthorized: set basic_auth or authorization in --alerting.alertmanager-config-file"},
		"forbidden":         {scheme: "http", answer: status(http.StatusForbidden), want: "403 Forbidden: set basic_auth"},
		"another path":      {scheme: "http", answer: status(http.StatusNotFound), want: "404 Not Found: set the path of the Alertmanager (its --web.route-prefix) in --alerting.alertmanager-url"},
		"moved":             {scheme: "http", answer: redirect(http.StatusFound), want: "302 Found: redirects are not followed, set the address of the Alertmanager itself in --alerting.alertmanager-url"},
		"moved, as a POST":  {scheme: "http", answer: redirect(http.StatusTemporaryRedirect), want: "307 Temporary Redirect: redirects are not followed"},
		"not configuration": {scheme: "http", answer: status(http.StatusBadGateway), want: `err="502 Bad Gateway"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewUnstartedServer(c.answer)
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			if s.TLS = c.tls; c.tls == nil {
				s.Start()
			} else {
				s.StartTLS()
			}
			defer s.Close()
			o := notify.Options{}
			if c.file != nil {
				o.HTTPFile = c.file(t)
			}
			_, number, err := net.SplitHostPort(s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			host := "127.0.0.1"
			if c.host != "" {
				host = c.host
			}
			var text lockedLog
			o.URLs, o.Logger = []string{c.scheme + "://" + net.JoinHostPort(host, number)},
				slog.New(slog.NewTextHandler(&text, nil))
			e, n := notifying(t, o)
			fire(t, e, 0)
			await(t, 10*time.Second, func() bool { return delivered(n).Errors > 0 })
			fire(t, e, 1)
			n.Close() // one more attempt
			if d := delivered(n); d.Errors < 2 || d.Sent > 0 {
				t.Errorf("%+v", d)
			}
			if l := text.String(); strings.Count(l, c.want) != 1 || strings.Count(l, "level=WARN") > 2 {
				t.Errorf("want %q once in\n%s", c.want, l)
			}
		})
	}
}

func serving(c certified) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{c.pair}, MinVersion: tls.VersionTLS12}
}

// demanding returns a server that requires a certificate of its client.
func demanding(c certified) *tls.Config {
	conf := serving(c)
	conf.ClientAuth = tls.RequireAnyClientCert
	return conf
}
