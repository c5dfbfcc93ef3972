package notify_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"rdma_exporter/internal/alerting/notify"
)

// TestAlertmanagerClock: alerts have the times of the clock of the Alertmanager. The first ones are sent again if it
// differs, once even if the clocks of several Alertmanagers behind one address differ.
func TestAlertmanagerClock(t *testing.T) {
	const hour = time.Hour
	for name, c := range map[string]struct {
		ahead  []time.Duration // in the responses, in turn
		starts []time.Duration // of the alert in the requests, after its start by the clock of this host
		log    string
	}{
		"agrees":            {[]time.Duration{0}, []time.Duration{0, 0}, ""},
		"30s":               {[]time.Duration{30 * time.Second}, []time.Duration{0, 0}, ""},
		"ahead":             {[]time.Duration{hour}, []time.Duration{0, hour, hour}, "is behind that of Alertmanager"},
		"behind":            {[]time.Duration{-hour}, []time.Duration{0, -hour, -hour}, "is ahead of that of Alertmanager"},
		"set right":         {[]time.Duration{hour, hour, 0}, []time.Duration{0, hour, hour, 0}, "agrees with that of Alertmanager again"},
		"two at an address": {[]time.Duration{hour, 0, hour, 0}, []time.Duration{0, hour, 0, hour}, "is behind that of Alertmanager"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var starts []time.Duration
			am := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				var alerts []posted
				if err := json.NewDecoder(r.Body).Decode(&alerts); err != nil || len(alerts) != 1 {
					t.Errorf("%d alerts, %v", len(alerts), err)
					return
				}
				if lasts := alerts[0].EndsAt.Sub(alerts[0].StartsAt); lasts < 6*time.Minute || lasts > 10*time.Minute {
					t.Errorf("lasts %s", lasts)
				}
				w.Header().Set("Date", time.Now().Add(c.ahead[min(len(starts), len(c.ahead)-1)]).UTC().Format(http.TimeFormat))
				starts = append(starts, alerts[0].StartsAt.Sub(timeAt(2*time.Minute)))
			}))
			defer am.Close()
			var log lockedLog
			e, n := notifying(t,
				notify.Options{URLs: []string{am.URL}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			empty := func() bool { return n.Deliveries()[0].Queued == 0 }
			fire(t, e, 0)
			await(t, 20*time.Second, empty)
			step(t, e, timeAt(4*time.Minute), state("mlx5_0", 1))
			await(t, 20*time.Second, empty)
			n.Close()
			mu.Lock()
			defer mu.Unlock()
			if len(starts) != len(c.starts) {
				t.Fatalf("requests: %v, want %v", starts, c.starts)
			}
			for i, s := range starts {
				if (s - c.starts[i]).Abs() > 5*time.Second {
					t.Errorf("request %d: %s, want %s", i, s, c.starts[i])
				}
			}
			if d := n.Deliveries()[0]; d.Sent != 2 || d.Errors+d.Dropped != 0 {
				t.Errorf("%+v", d)
			}
			if c.log == "" != (log.String() == "") || !strings.Contains(log.String(), c.log) {
				t.Errorf("log:\n%s", log.String())
			}
		})
	}
}
