package web

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// slow is how long a response may take to send while others wait, and how long they wait.
	slow = time.Second
	// retry is the interval at which responses that are not read are searched for.
	retry = 20 * time.Millisecond
)

// requestLimit limits the concurrent requests of a kind. If the limit is reached, the connection with the slowest
// response is closed for the next request, so that clients that do not read cannot block others. An address with more
// requests than others gives way sooner.
type requestLimit struct {
	what   string
	places chan struct{}

	mu      sync.Mutex
	held    map[string]int // places by address
	leaving []*reply       // being sent, the oldest first
}

func newLimit(n int, what string) *requestLimit {
	return &requestLimit{what: what, places: make(chan struct{}, n), held: map[string]int{}}
}

// handle responds with 503 while the limit is reached.
func (l *requestLimit) handle(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, _, _ := net.SplitHostPort(r.RemoteAddr)
		if !l.enter(from) {
			w.Header().Set("Connection", "close") // a client with many requests in a row has to connect for each
			http.Error(w, fmt.Sprintf("limit of %d concurrent %s reached, try again later", cap(l.places), l.what),
				http.StatusServiceUnavailable)
			return
		}
		l.hold(from, 1)
		defer func() { l.hold(from, -1); <-l.places }()
		next(&reply{ResponseWriter: w, limit: l, from: from}, r)
	}
}

// enter reports whether a request got a place. It waits for one while a response is ended, or can be soon.
func (l *requestLimit) enter(from string) bool {
	timer := time.NewTimer(slow)
	defer timer.Stop()
	for began := time.Now(); !l.endOldest(from); time.Sleep(retry) {
		select {
		case l.places <- struct{}{}:
			return true
		default:
		}
		if !l.hasFewer(from) || time.Since(began) >= slow {
			return false
		}
	}
	select {
	case l.places <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}

func (l *requestLimit) hold(from string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[from] += n; l.held[from] == 0 {
		delete(l.held, from)
	}
}

// hasFewer reports whether another address has at least two places more.
func (l *requestLimit) hasFewer(from string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.held {
		if n > l.held[from]+1 {
			return true
		}
	}
	return false
}

// endOldest reports whether it has ended the oldest response that its client does not read, if the limit is reached.
func (l *requestLimit) endOldest(from string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.places) < cap(l.places) {
		return false
	}
	i := slices.IndexFunc(l.leaving, func(p *reply) bool {
		took := time.Since(p.left)
		return took >= slow || took >= stalled && l.held[p.from] > l.held[from]+1
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
	limit *requestLimit
	from  string // address
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
