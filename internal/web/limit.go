package web

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// slow is how long an answer may be on its way where others wait for its place, and how long they wait until it has left.
const slow = time.Second

// limit bounds the requests of a kind that are answered at a time. Where all places are taken, the answer that has been on its way the
// longest is ended for the next request: clients that ask and do not read keep nobody away.
type limit struct {
	what   string
	places chan struct{}

	mu      sync.Mutex
	leaving []*reply // on their way, the oldest first
}

func newLimit(n int, what string) *limit { return &limit{what: what, places: make(chan struct{}, n)} }

// handle answers 503 while there is no place.
func (l *limit) handle(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !l.enter() {
			http.Error(w, fmt.Sprintf("%d %s are in progress, try again later", cap(l.places), l.what), http.StatusServiceUnavailable)
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

// endOldest ends the connection of an answer that is not taken.
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

// reply is on its way while it is written, in one piece.
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
