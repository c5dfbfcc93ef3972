//go:build e2e

package kernel

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// clockRules have an alert that waits for longer than the step takes, one that has waited, and one that depends on
// history.
const clockRules = `groups:
  - name: clock
    rules:
      - {alert: Pending, expr: 'count(rdma_port_state_id) > 0', for: 2h}
      - {alert: Firing, expr: 'count(rdma_port_state_id) > 0', for: 5s}
      - {alert: History, expr: 'count_over_time(up[5m]) > 5'}
`

// clockSteps are by how much the clock is set, one after the other.
var clockSteps = []time.Duration{
	3 * time.Second, -3 * time.Second, 5 * time.Minute, -time.Minute, 3 * time.Hour, -time.Hour,
	72 * time.Hour, -48 * time.Hour,
}

// testClock sets the clock while an exporter evaluates rules, and between two starts of it. The other exporter is
// scraped meanwhile. Alerts keep their states, and the time since they became active.
func testClock(t *testing.T, g *guest) {
	if err := os.WriteFile(filepath.Join(g.share, "clock.yml"), []byte(clockRules), 0o644); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			t.Log(content(filepath.Join(g.share, "clock.log")))
		}
	}()
	program := "/tmp/rdma_exporter"
	if race := os.Getenv("RDMA_EXPORTER_RACE"); race != "" {
		data, err := os.ReadFile(race)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(g.share, "rdma_exporter-race"), data, 0o755); err != nil {
			t.Fatal(err)
		}
		program = "/tmp/rdma_exporter-race"
		g.must(t, "cp "+shareMount+"/rdma_exporter-race /tmp/")
		defer g.must(t, "rm "+program)
	}
	start := func() {
		g.must(t, program+" --alerting.interval=2s --alerting.rule-files="+shareMount+
			"/clock.yml --state.dir=/tmp/clock --collect.no-budget --web.listen-address=:"+modulesPort+
			" >>"+shareMount+"/clock.log 2>&1 & echo $! >/tmp/clock.pid")
	}
	stop := func() {
		g.must(t, "kill $(cat /tmp/clock.pid); while test -d /proc/$(cat /tmp/clock.pid); do usleep 100000; done")
	}
	right, _ := g.clocks(t)
	defer func() { g.setClock(t, right) }()
	start()
	defer stop()
	states := map[string]string{"Pending": "pending", "Firing": "firing", "History": "firing"}
	var active map[string]float64
	within(t, 3*patienceOfGuest, func() (err error) {
		active, err = g.activeSince(t, states)
		return err
	})
	set := func(by time.Duration) {
		offset, _ := g.clocks(t)
		g.setClock(t, offset+by.Seconds())
	}
	// The clocks are read to the second. slack is for that, paused is the time without an exporter.
	check := func(name string, slack, paused float64) {
		t.Helper()
		g.moreRounds(t, 3)
		now, err := g.activeSince(t, states)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for alert, since := range now {
			if moved := since - active[alert]; moved < -slack || moved > slack+paused {
				t.Errorf("%s: %s became active %.1fs later than before", name, alert, moved)
			}
		}
	}
	for _, by := range clockSteps {
		set(by)
		check(by.String(), 2, 0)
	}
	for _, by := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, before := g.clocks(t)
		stop()
		set(by)
		start()
		within(t, patienceOfGuest, func() error {
			return okWith(g.run("wget -q -O /dev/null http://127.0.0.1:" + modulesPort + "/metrics"))
		})
		g.moreRounds(t, 2)
		_, after := g.clocks(t)
		check(by.String()+" between two starts", 10, after-before)
		active, _ = g.activeSince(t, states)
	}
	log, err := os.ReadFile(filepath.Join(g.share, "clock.log"))
	if err != nil {
		t.Fatal(err)
	}
	noMatch(t, "exporter's log", string(log), panics+"|DATA RACE")
	t.Logf("%d times: %s", strings.Count(string(log), "clock was set"), program)
}

// clocks returns the time of the guest at its boot by its wall clock, and its uptime, in seconds.
func (g *guest) clocks(t *testing.T) (boot, uptime float64) {
	t.Helper()
	seconds, text, _ := strings.Cut(g.must(t, "date +%s; cut -d ' ' -f 1 /proc/uptime"), "\n")
	now, err := strconv.ParseFloat(strings.TrimSpace(seconds), 64)
	if err == nil {
		uptime, err = strconv.ParseFloat(strings.TrimSpace(text), 64)
	}
	if err != nil {
		t.Fatal(err)
	}
	return now - uptime, uptime
}

// setClock sets the wall clock by its time at boot.
func (g *guest) setClock(t *testing.T, boot float64) {
	t.Helper()
	g.must(t, fmt.Sprintf("read up _ </proc/uptime; date -s @$((%d + ${up%%.*}))", int64(boot)))
}

// activeSince returns the uptimes at which alerts became active; an error if one has another state.
func (g *guest) activeSince(t *testing.T, states map[string]string) (map[string]float64, error) {
	t.Helper()
	boot, _ := g.clocks(t)
	text, err := get(t.Context(), g.modules+"/api/v1/alerts")
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			Alerts []struct {
				Labels   map[string]string
				State    string
				ActiveAt time.Time
			}
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, a := range answer.Data.Alerts {
		if want, ours := states[a.Labels["alertname"]]; ours {
			if a.State != want {
				return out, fmt.Errorf("%s is %s", a.Labels["alertname"], a.State)
			}
			out[a.Labels["alertname"]] = float64(a.ActiveAt.UnixMilli())/1000 - boot
		}
	}
	if len(out) != len(states) {
		return out, fmt.Errorf("alerts: %s", text)
	}
	return out, nil
}

// moreRounds waits for rounds of the exporter that evaluates rules.
func (g *guest) moreRounds(t *testing.T, n float64) {
	t.Helper()
	const rounds = "rdma_alerting_rounds_total{}"
	before := -1.0
	within(t, patienceOfGuest, func() error {
		s, err := scrape(t.Context(), g.modules)
		if err != nil {
			return err
		}
		if before < 0 {
			before = s[rounds]
		}
		if s[rounds] < before+n {
			return fmt.Errorf("%v rounds since %v", s[rounds]-before, before)
		}
		return nil
	})
}
