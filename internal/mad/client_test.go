package mad

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/mad/perf"
)

// fakeTransport is a transport whose far end is a function. Its result is the answer; nil is lost.
type fakeTransport struct {
	agent func(*Datagram) *Datagram
	delay time.Duration

	back chan *Datagram
	once sync.Once
	gone chan struct{}

	mu              sync.Mutex
	sent, now, most int
}

func newFakeTransport(agent func(*Datagram) *Datagram) *fakeTransport {
	return &fakeTransport{agent: agent, back: make(chan *Datagram, 100), gone: make(chan struct{})}
}

func (w *fakeTransport) Send(d *Datagram, timeout time.Duration) error {
	w.mu.Lock()
	w.sent++
	w.now++
	w.most = max(w.most, w.now)
	w.mu.Unlock()
	a, delay := w.agent(d), w.delay
	go func() {
		time.Sleep(delay)
		w.mu.Lock()
		w.now--
		w.mu.Unlock()
		if a != nil {
			w.back <- a
		}
	}()
	return nil
}

func (w *fakeTransport) Receive(d *Datagram) error {
	select {
	case a := <-w.back:
		*d = *a
		return nil
	case <-w.gone:
		return io.ErrClosedPipe
	}
}

func (w *fakeTransport) Close() error {
	w.once.Do(func() { close(w.gone) })
	return nil
}

func TestClientRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := 2
		w := newFakeTransport(nil)
		w.agent = func(d *Datagram) *Datagram {
			if lost--; lost >= 0 {
				return nil
			}
			return answerTo(d, 0, []byte("leaf-1"))
		}
		c := NewClient(w, Options{Timeout: time.Second, Retries: 2})
		defer c.Close()
		start := time.Now()
		if name, err := c.NodeDescription(t.Context(), Local()); name != "leaf-1" || err != nil {
			t.Errorf("%q %v", name, err)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("took %s", took)
		}
		lost = 100
		_, err := c.NodeInfo(t.Context(), ToLID(4))
		if !errors.Is(err, ErrTimeout) || err.Error() != "query NodeInfo of lid 4: no answer" {
			t.Error(err)
		}
		if got, want := c.Stats(), (Stats{Sent: 6, Timeouts: 5}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

// TestClientLate: a late answer to an earlier attempt is not the answer to another request.
func TestClientLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		w := newFakeTransport(nil)
		w.delay = 1500 * time.Millisecond
		w.agent = func(d *Datagram) *Datagram {
			n++
			return answerTo(d, 0, []byte(strings.Repeat("x", n)))
		}
		c := NewClient(w, Options{Timeout: time.Second, Retries: 1})
		defer c.Close()
		if _, err := c.NodeDescription(t.Context(), Local()); !errors.Is(err, ErrTimeout) {
			t.Error(err)
		}
		w.delay = 0
		if name, err := c.NodeDescription(t.Context(), Local()); name != "xxx" || err != nil {
			t.Errorf("%q %v", name, err)
		}
		time.Sleep(time.Minute) // for late answers
	})
}

// TestClientForged: the ID of a request does not tell the ID of the next one, and an answer with another ID is ignored.
func TestClientForged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last uint32
		w := newFakeTransport(nil)
		w.agent = func(d *Datagram) *Datagram {
			for n := range uint32(10) { // below the answers that the transport holds
				forged := answerTo(d, 0, []byte("forged"))
				binary.BigEndian.PutUint32(forged.MAD[atTID+4:], last+1+n)
				w.back <- forged
			}
			last = d.tid()
			return answerTo(d, 0, []byte("leaf-1"))
		}
		c := NewClient(w, Options{Timeout: time.Second})
		defer c.Close()
		for range 20 {
			if name, err := c.NodeDescription(t.Context(), Local()); name != "leaf-1" || err != nil {
				t.Fatalf("%q %v", name, err)
			}
		}
		w.agent = func(d *Datagram) *Datagram {
			a := answerTo(d, 0, []byte("forged"))
			a.MAD[atTID+7] ^= 1
			return a
		}
		if _, err := c.NodeDescription(t.Context(), Local()); !errors.Is(err, ErrTimeout) {
			t.Error(err)
		}
	})
}

// TestClientIDs: clients of one subnet do not share IDs. The kernel (ib_umad_write) writes the upper half, which
// selects the agent.
func TestClientIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests = 100
		seen := map[uint32]bool{}
		for range 2 {
			c := NewClient(newFakeTransport(func(d *Datagram) *Datagram {
				seen[d.tid()] = true
				if upper := binary.BigEndian.Uint32(d.MAD[atTID:]); upper != 0 {
					t.Errorf("upper half %#x", upper)
				}
				return answerTo(d, 0, nil)
			}), Options{})
			for range requests {
				if _, err := c.NodeInfo(t.Context(), Local()); err != nil {
					t.Error(err)
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		if len(seen) != 2*requests {
			t.Errorf("%d IDs of %d requests", len(seen), 2*requests)
		}
	})
}

// TestClientBusy: a busy agent is retried after a pause, until ctx ends.
func TestClientBusy(t *testing.T) {
	for _, tt := range []struct {
		name   string
		busy   int // answers
		within time.Duration
		asked  int
		took   time.Duration
		want   string
	}{
		{"once", 1, time.Hour, 2, 250 * time.Millisecond, "attribute not supported"},
		{"always", 100, time.Hour, 6, 5 * 250 * time.Millisecond, "agent is busy"},
		{"longer than the deadline", 100, 600 * time.Millisecond, 3, 600 * time.Millisecond, "context deadline exceeded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				c := NewClient(newFakeTransport(func(d *Datagram) *Datagram {
					if n++; n <= tt.busy {
						return answerTo(d, statusBusy, nil)
					}
					return answerTo(d, 3<<2, nil)
				}), Options{Timeout: time.Second, Retries: 5})
				defer c.Close()
				ctx, cancel := context.WithTimeout(t.Context(), tt.within)
				defer cancel()
				start := time.Now()
				_, err := c.SwitchInfo(ctx, Local())
				if took := time.Since(start); fmt.Sprint(err) != "query SwitchInfo of direct 0: "+tt.want ||
					n != tt.asked || took != tt.took {
					t.Errorf("%v after %d in %s", err, n, took)
				}
			})
		})
	}
}

func TestClientBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeTransport(func(d *Datagram) *Datagram { return answerTo(d, 0, nil) })
		w.delay = 100 * time.Millisecond
		c := NewClient(w, Options{InFlight: 3})
		var all sync.WaitGroup
		ask := func(n int) time.Duration {
			start := time.Now()
			for range n {
				all.Go(func() {
					if _, err := c.NodeInfo(t.Context(), Local()); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			return time.Since(start)
		}
		if took := ask(30); took != time.Second || w.most != 3 {
			t.Errorf("30 requests took %s, %d at a time", took, w.most)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}

		w = newFakeTransport(w.agent)
		c = NewClient(w, Options{Rate: 100})
		defer c.Close()
		if took := ask(burst + 200); took < 1990*time.Millisecond || took > 2*time.Second {
			t.Errorf("took %s at 100 a second", took)
		}
		time.Sleep(time.Hour)
		if took := ask(burst + 100); took < 990*time.Millisecond || took > time.Second {
			t.Errorf("took %s after a pause", took)
		}
	})
}

func TestClientEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClient(newFakeTransport(func(*Datagram) *Datagram { return nil }), Options{Timeout: time.Hour, InFlight: 2})
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan error, 3)
		for range 3 {
			go func() {
				_, err := c.NodeInfo(ctx, Local())
				results <- err
			}()
		}
		synctest.Wait()
		cancel()
		for range 3 {
			if err := <-results; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		go func() {
			_, err := c.NodeInfo(t.Context(), Local())
			results <- err
		}()
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-results; !errors.Is(err, io.ErrClosedPipe) {
			t.Error(err)
		}
		if _, err := c.NodeInfo(t.Context(), Local()); !errors.Is(err, io.ErrClosedPipe) {
			t.Error(err)
		}
	})
}

func TestClientCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []uint8
		c := NewClient(newFakeTransport(func(d *Datagram) *Datagram {
			asked = append(asked, d.MAD[17])
			return answerTo(d, 0, []byte{64 + 7: 5})
		}), Options{})
		defer c.Close()
		for _, tt := range []struct {
			info perf.Info
			want string
		}{
			{perf.Info{}, "\x12"},
			{perf.Info{Extended: true}, "\x1d\x12"},
			{perf.Info{Extended: true, ExtendedErrors: true}, "\x1d"},
		} {
			asked = nil
			if _, err := c.Counters(t.Context(), ToLID(1), 3, tt.info); err != nil || string(asked) != tt.want {
				t.Errorf("%+v: asked %x, %v", tt.info, asked, err)
			}
		}
	})
}
