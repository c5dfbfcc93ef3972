package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

// Page is the HTML pages.
type Page struct {
	Views  map[string]View // by pattern below the prefix of all paths: "{$}", "api/v1/node"
	Static fs.FS           // GET /static/
}

// View is rendered for each request. The error fs.ErrNotExist becomes 404, MovedError 301.
type View struct {
	ContentType string
	Write       func(*http.Request, io.Writer) error
	// Of is the data of a large view: while it is unchanged, the last output is served.
	Of func() any
	// Queries: an answer to a query is not kept. Other views ignore it.
	Queries bool
}

// MovedError is the error of a View that is elsewhere: the address, relative to that of the request (RFC 9110, section
// 10.2.2). A proxy in front may have removed a prefix, so that the whole path is unknown here.
type MovedError string

func (e MovedError) Error() string { return "moved to " + string(e) }

// Content types of views.
const (
	HTML = "text/html; charset=utf-8"
	JSON = "application/json"
)

// policy lets a browser load nothing but the page's own style, script and icon, and run nothing that stands in the
// page.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// guards are the security headers of pages.
var guards = map[string]string{
	"Content-Security-Policy":      policy,
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
}

func guard(w http.ResponseWriter) {
	for name, value := range guards {
		w.Header().Set(name, value)
	}
}

// page registers the views and files of the page.
func (h *Handler) page(at func(string) string, api func(http.HandlerFunc) http.HandlerFunc) {
	root := strings.TrimSuffix(at("/"), "/") + "/"
	for pattern, v := range h.Page.Views {
		serve := v.serve
		if v.Of != nil {
			serve = (&kept{View: v}).serve
		}
		h.mux.HandleFunc("GET "+root+pattern, api(serve))
	}
	if root != "/" {
		h.mux.Handle("GET /{$}", http.RedirectHandler(root, http.StatusFound))
	}
	h.mux.HandleFunc("GET "+at("/static")+"/{name}", h.file(h.Page.Static))
}

func (v View) serve(w http.ResponseWriter, r *http.Request) {
	var b bytes.Buffer
	if v.begin(w, v.Write(r, &b)) {
		compressed(w, r, b.Bytes())
	}
}

// begin writes the headers or the error, and reports whether a body follows.
func (v View) begin(w http.ResponseWriter, err error) bool {
	guard(w)
	var moved MovedError
	switch {
	case errors.As(err, &moved):
		w.Header().Set("Location", string(moved))
		w.Header().Set("Cache-Control", "no-store") // another version may have the page
		http.Error(w, err.Error(), http.StatusMovedPermanently)
	case errors.Is(err, fs.ErrNotExist):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		w.Header().Set("Content-Type", v.ContentType)
		w.Header().Set("Cache-Control", "no-store")
	}
	return err == nil
}

// kept is a view that is rendered once for all clients.
type kept struct {
	View
	mu            sync.Mutex
	of            any
	plain, packed []byte
}

func (k *kept) serve(w http.ResponseWriter, r *http.Request) {
	if k.Queries && r.URL.RawQuery != "" {
		k.View.serve(w, r)
		return
	}
	plain, packed, err := k.written(r)
	switch {
	case !k.begin(w, err):
	case acceptsGzip(r):
		send(w, packed, "gzip")
	default:
		send(w, plain, "")
	}
}

func (k *kept) written(r *http.Request) (plain, packed []byte, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if of := k.Of(); k.plain == nil || of != k.of {
		var b bytes.Buffer
		if err := k.Write(r, &b); err != nil {
			return nil, nil, err
		}
		k.of, k.plain, k.packed = of, bytes.Clone(b.Bytes()), pack(b.Bytes())
	}
	return k.plain, k.packed, nil
}

// file serves an embedded file. Browsers revalidate it each time, since another version may be running.
func (h *Handler) file(files fs.FS) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		b, err := fs.ReadFile(files, name)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		guard(w)
		sum := sha256.Sum256(b)
		w.Header().Set("Etag", fmt.Sprintf(`"%s"`, hex.EncodeToString(sum[:8])))
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(b))
	}
}
