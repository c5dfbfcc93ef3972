package web

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// slow is how long a response may take to send while others wait, and how long they wait.
const slow = time.Second

// limit limits the concurrent requests of a kind. If the limit is reached, the connection with the slowest response is closed for the next
// request, so that clients that do not read cannot block others.
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
		if !l.enter() {
			http.Error(w, fmt.Sprintf("limit of %d concurrent %s reached, try again later", cap(l.places), l.what), http.StatusServiceUnavailable)
			return
		}
		defer func() { <-l.places }()
		next(&reply{ResponseWriter: w, limit: l}, r)
	}
}

func (l *limit) enter() bool {
	select {
	case l.places <- struct{}{}:
		return true
	default:
	}
	if !l.endOldest() {
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
func (l *limit) endOldest() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.leaving) == 0 || time.Since(l.leaving[0].left) < slow {
		return false
	}
	oldest := l.leaving[0]
	l.leaving = l.leaving[1:]
	return http.NewResponseController(oldest.ResponseWriter).SetWriteDeadline(time.Unix(1, 0)) == nil
}

// reply is a response. Each is written in one call.
type reply struct {
	http.ResponseWriter
	limit *limit
	left  time.Time
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
