package fabric

import (
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/mad/perf"
)

// TestPicture: missing links and counter increases are shown, and stay while sweeps fail. Increases are counted over
// half an hour to one hour.
func TestPicture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := leafSpine()
		m := s.monitor()
		if p := m.Picture(); p.Fabric != nil || p.Missing != nil {
			t.Errorf("before it runs: %+v", p)
		}
		startMonitor(t, m)
		first := m.Picture()
		if first.Fabric == nil || len(first.Missing) != 0 || len(first.Risen) != 0 || len(first.Known.Links) != 9 ||
			first.Stats.Sent == 0 {
			t.Errorf("at first: %+v", first)
		}
		change := func(f func()) {
			s.mu.Lock()
			f()
			s.mu.Unlock()
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		e := End{1, 1}
		downed := func() uint64 {
			c := m.Picture().Risen[e]
			n, _ := c.Get(perf.LinkDowned)
			return n
		}
		change(func() { s.nodes[1].ports[1].downed = 3 })
		if downed() != 3 || m.Picture().Since != first.Fabric.At {
			t.Errorf("%d losses since %s, want 3 since %s", downed(), m.Picture().Since, first.Fabric.At)
		}
		time.Sleep(50 * time.Minute)
		change(func() { s.nodes[1].ports[1].downed = 5 })
		if age := m.Picture().Fabric.At.Sub(m.Picture().Since); downed() != 5 || age < 50*time.Minute {
			t.Errorf("%d losses in %s", downed(), age)
		}
		time.Sleep(40 * time.Minute)
		synctest.Wait()
		if age := m.Picture().Fabric.At.Sub(m.Picture().Since); downed() > 2 || age < window || age > 2*window {
			t.Errorf("%d losses in %s: those of before count", downed(), age)
		}
		change(func() { s.unplug(e) })
		if got := m.Picture().Missing; len(got) != 1 || got[0].A != e {
			t.Errorf("missing %v", got)
		}
		change(func() { s.nodes[9].silent = true })
		time.Sleep(time.Minute)
		synctest.Wait()
		if p := m.Picture(); p.Failed == nil || p.Fabric == nil || len(p.Missing) != 1 {
			t.Errorf("after a failure: %+v", p)
		}
	})
}

// TestDegraded: fewer lanes than both ends have enabled. Lanes that only one end has enabled do not count.
func TestDegraded(t *testing.T) {
	s := leafSpine()
	s.nodes[1].ports[1].active = 1
	s.nodes[1].ports[2].enabled, s.nodes[1].ports[2].active, s.nodes[12].ports[1].active = 1, 1, 1
	f := s.sweep(t, nil, Options{})
	for e, want := range map[End]bool{{1, 1}: true, {1, 2}: false, {1, 3}: false, {1, 8}: false} {
		if got := f.Degraded(e); got != want {
			t.Errorf("%v: %v", e, got)
		}
	}
}
