package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

// Page is what a person looks at.
type Page struct {
	HTML     func(context.Context, io.Writer) error // GET /
	Node     func(context.Context, io.Writer) error // GET /api/v1/node
	Topology func(context.Context, io.Writer) error // GET /api/v1/topology
	Static   fs.FS                                  // GET /static/
	Runbooks fs.FS                                  // GET /docs/runbooks/, where the alerts' annotations lead
}

// policy lets a browser load nothing but the page's own style, script and icon, and run nothing that stands in the page.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guards are the headers of all that a browser shows.
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

// page registers what the page consists of.
func (h *Handler) page(at func(string) string) {
	root := strings.TrimSuffix(at("/"), "/") + "/"
	h.mux.HandleFunc("GET "+root+"{$}", h.made("text/html; charset=utf-8", h.Page.HTML))
	if root != "/" {
		h.mux.Handle("GET /{$}", http.RedirectHandler(root, http.StatusFound))
	}
	h.mux.HandleFunc("GET "+at("/api/v1/node"), h.made("application/json", h.Page.Node))
	h.mux.HandleFunc("GET "+at("/api/v1/topology"), h.made("application/json", h.Page.Topology))
	h.mux.HandleFunc("GET "+at("/static")+"/{name}", h.file(h.Page.Static))
	h.mux.HandleFunc("GET "+at("/docs/runbooks")+"/{name}", h.file(h.Page.Runbooks))
}

// made serves what is made for each request.
func (h *Handler) made(contentType string, write func(context.Context, io.Writer) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		guard(w)
		if err := write(r.Context(), &b); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "no-store")
		compressed(w, r, b.Bytes())
	}
}

// file serves a file of the program. A browser asks each time whether it has changed, since another version may have been started.
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
		w.Header().Set("Content-Type", contentType(name))
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(b))
	}
}

func contentType(name string) string {
	if path.Ext(name) == ".md" { // to be read as it is
		return "text/plain; charset=utf-8"
	}
	return mime.TypeByExtension(path.Ext(name))
}
