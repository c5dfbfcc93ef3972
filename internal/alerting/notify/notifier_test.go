package notify_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"rdma_exporter/internal/alerting/notify"
)

// posted is an alert as received by Alertmanager's API v2.
type posted struct {
	Labels, Annotations map[string]string
	StartsAt, EndsAt    time.Time
	GeneratorURL        string
}

// receiver is a fake Alertmanager.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	alerts []posted
	paths  []string
	users  []string
	came   chan struct{}
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{came: make(chan struct{}, 100)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		user, _, _ := q.BasicAuth()
		r.paths, r.users = append(r.paths, q.URL.Path), append(r.users, user)
		var alerts []posted
		b, err := io.ReadAll(q.Body)
		if err == nil {
			err = json.Unmarshal(b, &alerts)
		}
		if err != nil {
			t.Error(err)
		}
		r.alerts = append(r.alerts, alerts...)
		r.came <- struct{}{}
	}))
	t.Cleanup(r.Close)
	return r
}

// last waits for a request.
func (r *receiver) last(t *testing.T) posted {
	t.Helper()
	select {
	case <-r.came:
	case <-time.After(10 * time.Second):
		t.Fatal("nothing came")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.alerts) == 0 {
		return posted{}
	}
	return r.alerts[len(r.alerts)-1]
}

// delivered sums the counts of all Alertmanagers.
func delivered(n *notify.Notifier) (sum notify.Deliveries) {
	for _, d := range n.Deliveries() {
		sum.Queued += d.Queued
		sum.Sent += d.Sent
		sum.Errors += d.Errors
		sum.Dropped += d.Dropped
	}
	return sum
}

// TestNotifies: every Alertmanager receives every alert when it fires, every minute while it fires, and when it
// resolves.
func TestNotifies(t *testing.T) {
	a, b := receive(t), receive(t)
	e, n := notifying(t, notify.Options{
		URLs: []string{a.URL, b.URL + "/am/"}, ExternalLabels: map[string]string{"cluster": "x", "severity": "none"},
		ExternalURL: "http://gpu-1:10879/",
	})
	defer n.Close()
	sent := map[time.Duration]posted{}
	for now := time.Duration(0); now <= 9*time.Minute+15*time.Second; now += 15 * time.Second {
		up := 1.0
		if now > 4*time.Minute {
			up = 4
		}
		before := delivered(n).Sent
		step(t, e, timeAt(now), state("mlx5_0", up))
		// Fires; ends 5m after 4m15s.
		if now >= 2*time.Minute && (now-2*time.Minute)%(75*time.Second) == 0 || now == 9*time.Minute+15*time.Second {
			sent[now] = a.last(t)
			if other := b.last(t); other.EndsAt != sent[now].EndsAt {
				t.Errorf("%s: the other Alertmanager got %+v, this one %+v", now, other, sent[now])
			}
			for delivered(n).Sent < before+2 { // counted after the answer
				time.Sleep(time.Millisecond)
			}
		}
	}
	first := sent[2*time.Minute]
	for name, want := range map[string]string{
		"alertname": "Down", "instance": instance, "job": "rdma_exporter", "device": "mlx5_0",
		"severity": "critical", "cluster": "x",
	} {
		if first.Labels[name] != want || len(first.Labels) != 6 {
			t.Errorf("label %s: %v", name, first.Labels)
		}
	}
	if first.Annotations["summary"] == "" || first.GeneratorURL != "http://gpu-1:10879/" ||
		!first.StartsAt.Equal(timeAt(2*time.Minute)) {
		t.Errorf("first: %+v", first)
	}
	// The alert is sent at 4m30s at the latest. An exporter that ends right before 5m45s and restarts within four minutes
	// sends again at 10m at the latest.
	if ends := sent[270*time.Second].EndsAt; ends.Before(timeAt(10 * time.Minute)) {
		t.Errorf("valid until %s", ends)
	}
	if end := sent[9*time.Minute+15*time.Second]; !end.EndsAt.Equal(timeAt(9*time.Minute + 15*time.Second)) {
		t.Errorf("end: %+v", end)
	}
	if a.paths[0] != "/api/v2/alerts" || b.paths[0] != "/am/api/v2/alerts" {
		t.Errorf("paths %q, %q", a.paths[0], b.paths[0])
	}
}

type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestHTTPFile: a changed password is used after a reload; an invalid file changes nothing.
func TestHTTPFile(t *testing.T) {
	a := receive(t)
	file := filepath.Join(t.TempDir(), "am.yml")
	user := func(name string) { write(t, file, "basic_auth: {username: "+name+", password: x}\n") }
	user("one")
	e, n := notifying(t, notify.Options{URLs: []string{a.URL}, HTTPFile: file})
	defer n.Close()
	for i, want := range []string{"one", "one", "two", "two"} {
		switch i {
		case 1:
			write(t, file, "basic_auth: {usernam: x}\n")
			if _, err := n.Prepare(); err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("bad file: %v", err)
			}
		case 2:
			user("two")
			apply, err := n.Prepare()
			if err != nil {
				t.Fatal(err)
			}
			apply()
		}
		step(t, e, timeAt(time.Duration(i)*2*time.Minute), state("mlx5_0", 1))
		if i == 0 { // pending
			continue
		}
		a.last(t)
		a.mu.Lock()
		if got := a.users[len(a.users)-1]; got != want {
			t.Errorf("%d: user %s, want %s", i, got, want)
		}
		a.mu.Unlock()
	}
	for delivered(n).Sent < 3 { // by the sender before the reload, too, and counted after the answer
		time.Sleep(time.Millisecond)
	}
	write(t, file, "http_config:\n  basic_auth: {username: x, password: x}\n")
	if _, err := n.Prepare(); err == nil ||
		!strings.HasSuffix(err.Error(), "use the contents of http_config, without the key") {
		t.Errorf("the key pasted: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Prepare(); err == nil {
		t.Error("no file: no error")
	}
}

// TestCloseLosesNothing: an alert that has left the queue and is not answered yet arrives.
func TestCloseLosesNothing(t *testing.T) {
	a := receive(t)
	for i := range 50 {
		e, n := notifying(t, notify.Options{URLs: []string{a.URL}})
		fire(t, e, 0)
		n.Close()
		if len(a.came) != 1 {
			t.Fatalf("%d: %d requests came", i, len(a.came))
		}
		if d := delivered(n); d.Sent != 1 || d.Dropped != 0 {
			t.Fatalf("%d: %+v", i, d)
		}
		<-a.came
	}
}

// TestReloadDoesNotWait: while an Alertmanager hangs, rules are evaluated, a reload returns, and the next request uses
// the new configuration.
func TestReloadDoesNotWait(t *testing.T) {
	t.Parallel()
	came, timedOut := make(chan string, 10), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		_, _ = io.Copy(io.Discard, r.Body) // the server notices the client's disconnect only after reading the body
		came <- user
		if user == "one" {
			<-r.Context().Done()
			close(timedOut)
		}
	}))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "am.yml")
	write(t, file, "basic_auth: {username: one, password: x}\n")
	e, n := notifying(t, notify.Options{URLs: []string{s.URL}, HTTPFile: file})
	start := time.Now()
	fire(t, e, 0)
	if user := <-came; user != "one" {
		t.Fatal(user)
	}
	write(t, file, "basic_auth: {username: two, password: x}\n")
	apply, err := n.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	apply()
	fire(t, e, 1)
	fire(t, e, 2)
	select {
	case <-timedOut:
		t.Error("the rounds waited for the first request")
	default:
	}
	if user := <-came; user != "two" { // when the first request has timed out
		t.Error(user)
	}
	if took := time.Since(start); took < 14*time.Second {
		t.Errorf("the next request came after %s", took)
	}
	n.Close()
	if d := delivered(n); d.Sent != 1 || d.Errors != 1 || d.Dropped != 0 {
		t.Errorf("%+v", d)
	}
}

// TestAlertmanagersOfOneHost: a rejecting and an accepting Alertmanager on one host are distinguished by path.
func TestAlertmanagersOfOneHost(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/bad/") {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer s.Close()
	var log lockedLog
	e, n := notifying(t, notify.Options{
		URLs: []string{s.URL + "/good", s.URL + "/bad"}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	for hour := range 5 {
		fire(t, e, hour)
		for delivered(n).Sent < float64(hour+1) {
			time.Sleep(time.Millisecond)
		}
	}
	n.Close()
	if l := log.String(); strings.Count(l, "\n") != 2 || strings.Count(l, "/bad ") != 2 {
		t.Errorf("log:\n%s", l)
	}
}

// TestCloseIsBounded: an Alertmanager that accepts the connection and never answers delays the end by seconds only, and
// queued alerts are dropped.
func TestCloseIsBounded(t *testing.T) {
	hang := make(chan struct{})
	came := make(chan struct{}, 10)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	defer close(hang)
	e, n := notifying(t, notify.Options{URLs: []string{s.URL}})
	for i := range 3 {
		step(t, e, timeAt(time.Duration(i)*2*time.Minute), state("mlx5_0", 1))
		if i == 1 { // it fires, and hangs; what comes after waits
			<-came
		}
	}
	start := time.Now()
	n.Close()
	if took := time.Since(start); took < 4*time.Second || took > 20*time.Second {
		t.Errorf("took %s", took)
	}
}

func FuzzParseLabels(f *testing.F) {
	for _, pair := range []string{
		"cluster=a", "a=b=c", "=", "__name__=x", "0=1", "http://am:9093/x", "https://u:p@am/", "http://[::1]:1/?q",
	} {
		f.Add(pair)
	}
	f.Fuzz(func(t *testing.T, pair string) {
		labels, err := notify.ParseLabels([]string{pair})
		for name, value := range labels {
			if err != nil || name+"="+value != pair || strings.HasPrefix(name, "__") {
				t.Errorf("%q: %v, %v", pair, labels, err)
			}
		}
		if _, twice := notify.ParseLabels([]string{pair, pair}); twice == nil {
			t.Errorf("%q is taken twice", pair)
		}
		if err := notify.CheckURL(pair); err == nil && !strings.HasPrefix(strings.ToLower(pair), "http") {
			t.Errorf("%q is taken for a URL", pair)
		}
	})
}
