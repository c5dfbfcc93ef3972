package fabric

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/mad"
)

var update = flag.Bool("update", false, "write goldens again")

func (m *Monitor) text() string { return string(exposition.AppendText(nil, m.Families())) }

// startMonitor runs a monitor, a sweep a minute, until the test ends, and returns when the first one has ended.
func startMonitor(t *testing.T, m *Monitor) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Run(ctx, func(once func()) {
			for tick := time.Tick(time.Minute); ctx.Err() == nil; {
				once()
				select {
				case <-tick:
				case <-ctx.Done():
				}
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	synctest.Wait()
}

func (s *subnet) monitor() *Monitor {
	return &Monitor{
		Open: func() (mad.Transport, error) { return s.open(), nil }, Client: mad.Options{Timeout: time.Second},
		Interval: time.Minute, Full: 10 * time.Minute,
		Forget: time.Hour, Memory: NewMemory(Data{}), Logger: slog.New(slog.DiscardHandler),
	}
}

// TestMetrics holds all metrics of a fabric with a fault of each kind.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := leafSpine()
		s.nodes[3].wide = true
		s.nodes[2].vendor, s.nodes[3].vendor, s.nodes[4].vendor = true, true, true
		s.nodes[2].ports[4].fdr10, s.nodes[4].ports[2].fdr10 = 3, 3
		s.nodes[2].ports[3].fdr10, s.nodes[3].ports[2].fdr10 = 1, 1
		s.nodes[1].fec, s.nodes[2].fec, s.nodes[1].causes = true, true, true
		s.nodes[1].ports[3].fec, s.nodes[1].ports[4].fec, s.nodes[1].ports[4].ended = 4, 13, true
		s.nodes[2].ports[3].fec, s.nodes[2].ports[4].fec = 1, 5 // a mode that is reserved
		s.nodes[1].ports[3].errors, s.nodes[2].ports[3].errors = 4, 4
		for _, e := range []End{{1, 4}, {4, 2}, {2, 3}, {3, 1}} {
			s.nodes[e.GUID].tick, s.nodes[e.GUID].chip = 255, 0xd2f2
		}
		m := s.monitor()
		startMonitor(t, m)
		s.mu.Lock()
		for _, e := range []End{{1, 4}, {4, 2}, {2, 3}, {3, 1}} { // a credit loop
			s.nodes[e.GUID].ports[e.Port].wait = 1 << 31
		}
		s.unplug(End{1, 1})
		s.unplug(End{1, 2}) // moved
		s.connect(End{12, 1}, End{1, 5})
		s.unplug(End{2, 1}) // swapped
		s.unplug(End{2, 2})
		s.connect(End{21, 1}, End{2, 2})
		s.connect(End{22, 1}, End{2, 1})
		s.nodes[2].ports[1].downed, s.nodes[2].ports[2].downed = 1, 1
		s.nodes[2].ports[2].enabled, s.nodes[2].ports[2].active = 1, 1
		s.nodes[3].ports[1].active = 1
		s.nodes[4].ports[1].mute = true
		s.mu.Unlock()
		time.Sleep(time.Minute + 10*time.Second)
		synctest.Wait()
		got := m.text()
		const golden = "testdata/fabric.prom"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, []byte(got)) {
			t.Errorf("differs from %s (-update writes it):\n%s", golden, got)
		}
		for _, d := range Descs() {
			if !strings.Contains(got, "# TYPE "+d.Name+" ") {
				t.Errorf("%s is in no golden", d.Name)
			}
		}
	})
}

// TestMonitor: names are exposed before the first sweep. A port that cannot be opened or does not answer removes the
// results of the last sweep, and they return without a restart.
func TestMonitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := leafSpine()
		f := s.sweep(t, nil, Options{})
		known := NewMemory(Data{})
		known.Note(f, f.At.Add(-time.Hour))

		var log bytes.Buffer
		var kept Data
		var there atomic.Bool
		m := s.monitor()
		m.Memory, m.Logger = NewMemory(known.Data()), slog.New(slog.NewTextHandler(&log, nil))
		m.Open = func() (mad.Transport, error) {
			if !there.Load() {
				return nil, errors.New("no such device")
			}
			return s.open(), nil
		}
		saves := 0
		m.Save = func(d Data) error {
			if saves++; saves == 1 {
				return errors.New("disk full")
			}
			kept = d
			return nil
		}
		has := func(when string, want ...string) {
			t.Helper()
			text := m.text()
			for _, w := range want {
				without, not := strings.CutPrefix(w, "!")
				if strings.Contains(text, without) == not {
					t.Errorf("%s: %s", when, w)
				}
			}
		}
		startMonitor(t, m)
		const name, up = `rdma_fabric_link_info{end="1",neighbour="gpu-11"`, "rdma_fabric_node_reachable{"
		has("cannot be opened", name, "!"+up, "rdma_fabric_sweep_failed 1", "!rdma_fabric_sweep_timestamp_seconds")
		there.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		has("opened", name, up, "rdma_fabric_sweep_failed 0", "rdma_fabric_sweep_timestamp_seconds")
		s.mu.Lock()
		s.nodes[9].silent = true
		s.mu.Unlock()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		has("silent", name, "!"+up, "rdma_fabric_sweep_failed 1", "rdma_fabric_sweep_timestamp_seconds",
			"!rdma_fabric_request_timeouts_total 0")
		s.mu.Lock()
		s.nodes[9].silent = false
		s.mu.Unlock()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		has("again", name, up, "rdma_fabric_sweep_failed 0")
		if len(kept.Nodes) != 9 || len(kept.Links) != 9 {
			t.Errorf("kept %+v", kept)
		}
		var lines []string
		for line := range strings.Lines(log.String()) {
			_, line, _ = strings.Cut(line, "msg=")
			lines = append(lines, strings.TrimSpace(line))
		}
		want := []string{
			`"fabric sweep failed" err="no such device"`,
			`"could not store the fabric memory, a restart loses the missing links" err="disk full"`,
			`"fabric sweep works again"`,
			`"fabric sweep failed" err="the local port does not answer: query NodeInfo of direct 0: no answer"`,
			`"storing the fabric memory works again"`, `"fabric sweep works again"`,
		}
		if strings.Join(lines, "\n") != strings.Join(want, "\n") {
			t.Errorf("log:\n%s", strings.Join(lines, "\n"))
		}
	})
}

// TestSlowAgents: results are published in time, however long counters take.
func TestSlowAgents(t *testing.T) {
	for interval, took := range map[time.Duration]string{time.Second: "30", 2 * time.Minute: "120"} {
		t.Run(interval.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := leafSpine()
				s.lost = func(d *mad.Datagram, _ *device, _ End) bool { return d.Class() == mad.ClassPerformance }
				m := s.monitor()
				m.Interval, m.Client = interval, mad.Options{Timeout: time.Minute, Retries: 5}
				startMonitor(t, m)
				time.Sleep(2*time.Minute + time.Second)
				synctest.Wait()
				for _, want := range []string{
					"sweep_duration_seconds " + took, `unanswered{request="counters"} 13`,
					`subnet_managers{state="master"} 1`, "sweep_failed 0",
				} {
					if !strings.Contains(m.text(), "rdma_fabric_"+want+"\n") {
						t.Errorf("not %s", want)
					}
				}
			})
		})
	}
}

// faulty is a transport that panics, once enabled, in all but the first request of a sweep.
type faulty struct {
	mad.Transport
	on   *atomic.Bool
	sent atomic.Int64
}

func (f *faulty) Send(d *mad.Datagram, timeout time.Duration) error {
	if f.on.Load() && f.sent.Add(1) > 1 {
		panic("out of range")
	}
	return f.Transport.Send(d, timeout)
}

// TestFaultOfTheProgram: a panic in any goroutine fails the sweep, not the process.
func TestFaultOfTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := leafSpine()
		var on atomic.Bool
		var log bytes.Buffer
		m := s.monitor()
		m.Logger = slog.New(slog.NewTextHandler(&log, nil))
		m.Open = func() (mad.Transport, error) { return &faulty{Transport: s.open(), on: &on}, nil }
		startMonitor(t, m)
		for _, state := range []string{"0", "1", "0"} {
			on.Store(state == "1")
			time.Sleep(time.Minute)
			synctest.Wait()
			if !strings.Contains(m.text(), "rdma_fabric_sweep_failed "+state) {
				t.Errorf("not %s:\n%s", state, m.text())
			}
		}
		if l := log.String(); strings.Count(l, "\n") != 2 || !strings.Contains(l, "please report it: panic: out of range") ||
			!strings.Contains(l, "faulty).Send") {
			t.Errorf("log:\n%s", l)
		}
	})
}
