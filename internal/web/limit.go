package web

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// slow is how long a response may take to send while others wait, and how long they wait.
const slow = time.Second

// limit limits the concurrent requests of a kind. If the limit is reached, the connection with the slowest response is closed for the next
// request, so that clients that do not read cannot block others. Those of an address with several such responses are closed sooner for a
// request from another one.
type limit struct {
	what   string
	places chan struct{}

	mu      sync.Mutex
	leaving []*reply // being sent, the oldest first
}

func newLimit(n int, what string) *limit { return &limit{what: what, places: make(chan struct{}, n)} }

// handle responds with 503 while the limit is reached.
func (l *limit) handle(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from := hostOf(r.RemoteAddr)
		if !l.enter(from) {
			w.Header().Set("Connection", "close") // the next request has to be accepted first
			http.Error(w, fmt.Sprintf("limit of %d concurrent %s reached, try again later", cap(l.places), l.what), http.StatusServiceUnavailable)
			return
		}
		defer func() { <-l.places }()
		next(&reply{ResponseWriter: w, limit: l, from: from}, r)
	}
}

func (l *limit) enter(from string) bool {
	select {
	case l.places <- struct{}{}:
		return true
	default:
	}
	if !l.endOldest(from) {
		return false
	}
	timer := time.NewTimer(slow)
	defer timer.Stop()
	select {
	case l.places <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}

// endOldest closes the connection of a response that the client does not read.
func (l *limit) endOldest(from string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := map[string]int{}
	for _, p := range l.leaving {
		of[p.from]++
	}
	i := slices.IndexFunc(l.leaving, func(p *reply) bool {
		took := time.Since(p.left)
		return took >= slow || took >= stalled && of[p.from] > of[from]+1
	})
	if i < 0 {
		return false
	}
	oldest := l.leaving[i]
	l.leaving = slices.Delete(l.leaving, i, i+1)
	return http.NewResponseController(oldest.ResponseWriter).SetWriteDeadline(time.Unix(1, 0)) == nil
}

// reply is a response. Each is written in one call.
type reply struct {
	http.ResponseWriter
	limit *limit
	from  string // address
	left  time.Time
}

// hostOf is an address without its port.
func hostOf(remote string) string {
	host, _, _ := net.SplitHostPort(remote)
	return host
}

func (p *reply) Write(b []byte) (int, error) {
	l := p.limit
	l.mu.Lock()
	p.left = time.Now()
	l.leaving = append(l.leaving, p)
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if i := slices.Index(l.leaving, p); i >= 0 {
			l.leaving = slices.Delete(l.leaving, i, i+1)
		}
	}()
	return p.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (p *reply) Unwrap() http.ResponseWriter { return p.ResponseWriter }
