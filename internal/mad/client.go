package mad

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Options bound what a client does to the fabric. A zero value is the default.
type Options struct {
	InFlight  int           // requests on their way at a time; 8
	Rate      int           // requests a second; 0: as fast as they are answered
	Timeout   time.Duration // for an answer; 500 ms
	Retries   int           // further attempts; 0: none
	PKeyIndex uint16        // of performance management
}

const (
	defaultInFlight = 8
	defaultTimeout  = 500 * time.Millisecond
)

// Stats count what a client has done.
type Stats struct {
	Sent     uint64 // datagrams, repeated ones too
	Timeouts uint64 // of them without an answer
}

// Client asks, through one local port.
type Client struct {
	o     Options
	t     Transport
	slots chan struct{}
	pace  pace

	sent, timeouts atomic.Uint64

	mu      sync.Mutex
	tid     uint32
	waiting map[uint32]chan *Datagram
	err     error // of the transport; nothing comes any more

	done chan struct{} // closed when receive has ended
}

// NewClient makes a client, to which the transport then belongs.
func NewClient(t Transport, o Options) *Client {
	if o.InFlight <= 0 {
		o.InFlight = defaultInFlight
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	c := &Client{o: o, t: t, slots: make(chan struct{}, o.InFlight), waiting: map[uint32]chan *Datagram{}, done: make(chan struct{})}
	if o.Rate > 0 {
		c.pace.every = time.Second / time.Duration(o.Rate)
	}
	go c.receive()
	return c
}

// Close ends all requests and the transport.
func (c *Client) Close() error {
	err := c.t.Close()
	<-c.done
	return err
}

// Stats says what was done so far.
func (c *Client) Stats() Stats { return Stats{c.sent.Load(), c.timeouts.Load()} }

// receive hands answers to whoever waits. An answer that comes too late is for nobody.
func (c *Client) receive() {
	defer close(c.done)
	for {
		d := &Datagram{}
		err := c.t.Receive(d)
		c.mu.Lock()
		if err != nil {
			c.err = err
			for tid, w := range c.waiting {
				close(w)
				delete(c.waiting, tid)
			}
			c.mu.Unlock()
			return
		}
		if w := c.waiting[d.tid()]; w != nil {
			delete(c.waiting, d.tid())
			w <- d
		}
		c.mu.Unlock()
	}
}

// expect makes a transaction.
func (c *Client) expect() (uint32, chan *Datagram, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, nil, c.err
	}
	c.tid++
	w := make(chan *Datagram, 1)
	c.waiting[c.tid] = w
	return c.tid, w, nil
}

func (c *Client) forget(tid uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, tid)
}

// ask makes a request, and again where there was no answer, or after a pause where the agent was busy.
func (c *Client) ask(ctx context.Context, q *request) ([]byte, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for attempt := 0; ; attempt++ {
		data, err := c.try(ctx, q)
		var status StatusError
		busy := errors.As(err, &status) && status&statusBusy != 0
		if !busy && !errors.Is(err, ErrTimeout) || attempt >= c.o.Retries {
			return data, err
		}
		if busy {
			if err := sleep(ctx, c.o.Timeout/4); err != nil {
				return nil, err
			}
		}
	}
}

func (c *Client) try(ctx context.Context, q *request) ([]byte, error) {
	if err := c.pace.wait(ctx); err != nil {
		return nil, err
	}
	tid, answer, err := c.expect()
	if err != nil {
		return nil, err
	}
	defer c.forget(tid)
	var d Datagram
	q.encode(&d, tid, c.o.PKeyIndex)
	if err := c.t.Send(&d, c.o.Timeout); err != nil {
		return nil, err
	}
	c.sent.Add(1)
	timer := time.NewTimer(c.o.Timeout)
	defer timer.Stop()
	select {
	case d, ok := <-answer:
		if !ok {
			return nil, c.broken()
		}
		return q.decode(d)
	case <-timer.C:
		c.timeouts.Add(1)
		return nil, ErrTimeout
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *Client) broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// pace keeps requests apart, a short burst excepted. Its zero value does not wait.
type pace struct {
	every time.Duration

	mu   sync.Mutex
	next time.Time
}

// burst is how many requests may follow a pause at once: a timer is no more precise than that.
const burst = 8

func (p *pace) wait(ctx context.Context) error {
	if p.every == 0 {
		return ctx.Err()
	}
	p.mu.Lock()
	now := time.Now()
	if earliest := now.Add(-burst * p.every); p.next.Before(earliest) {
		p.next = earliest
	}
	p.next = p.next.Add(p.every)
	wait := p.next.Sub(now)
	p.mu.Unlock()
	return sleep(ctx, wait)
}

// sleep waits, for no longer than somebody waits for it.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// named says which request failed.
func named(err error, attribute string, r Route) error {
	return fmt.Errorf("ask %s for %s: %w", r, attribute, err)
}

// subnet asks the end of a route for an attribute of subnet management.
func subnet[T any](ctx context.Context, c *Client, r Route, attribute uint16, modifier int, name string, decode func([]byte) T) (v T, err error) {
	b, err := c.ask(ctx, &request{class: r.subnetClass(), attribute: attribute, modifier: uint32(modifier), route: r})
	if err != nil {
		return v, named(err, name, r)
	}
	return decode(b), nil
}

// NodeInfo asks what node a port belongs to.
func (c *Client) NodeInfo(ctx context.Context, r Route) (NodeInfo, error) {
	return subnet(ctx, c, r, attrNodeInfo, 0, "NodeInfo", decodeNodeInfo)
}

// NodeDescription asks for the name of a node.
func (c *Client) NodeDescription(ctx context.Context, r Route) (string, error) {
	return subnet(ctx, c, r, attrNodeDescription, 0, "NodeDescription", decodeNodeDescription)
}

// SwitchInfo asks a switch; other nodes do not have it.
func (c *Client) SwitchInfo(ctx context.Context, r Route) (SwitchInfo, error) {
	return subnet(ctx, c, r, attrSwitchInfo, 0, "SwitchInfo", decodeSwitchInfo)
}

// PortInfo asks a node for one of its ports. Port 0 is that of the switch itself, and of another node the one that the request comes in by.
func (c *Client) PortInfo(ctx context.Context, r Route, port int) (PortInfo, error) {
	return subnet(ctx, c, r, attrPortInfo, port, "PortInfo", decodePortInfo)
}

// MellanoxPort asks a node of Mellanox for one of its ports.
func (c *Client) MellanoxPort(ctx context.Context, r Route, port int) (MellanoxPort, error) {
	return subnet(ctx, c, r, attrMellanoxPort, port, "ExtendedPortInfo of Mellanox", decodeMellanoxPort)
}

// SMInfo asks the subnet manager at a port. Without one there is no answer.
func (c *Client) SMInfo(ctx context.Context, r Route) (SMInfo, error) {
	return subnet(ctx, c, r, attrSMInfo, 0, "SMInfo", decodeSMInfo)
}

// performance asks an agent of performance management, which has to be reached by its LID.
func (c *Client) performance(ctx context.Context, r Route, attribute uint16, port int, name string) ([]byte, error) {
	b, err := c.ask(ctx, &request{class: ClassPerformance, attribute: attribute, port: uint8(port), route: r})
	if err != nil {
		return nil, named(err, name, r)
	}
	return b, nil
}

// PerformanceInfo asks what a node tells of its counters.
func (c *Client) PerformanceInfo(ctx context.Context, r Route) (PerformanceInfo, error) {
	b, err := c.performance(ctx, r, attrClassPortInfo, 0, "ClassPortInfo")
	if err != nil {
		return PerformanceInfo{}, err
	}
	return decodePerformanceInfo(b), nil
}

// Counters asks for the counters of a port, with one datagram where all have 64 bits, else with up to two.
func (c *Client) Counters(ctx context.Context, r Route, port int, info PerformanceInfo) (Counters, error) {
	var out Counters
	if info.Extended {
		b, err := c.performance(ctx, r, attrPortCountersExtended, port, "PortCountersExtended")
		if err != nil {
			return out, err
		}
		out.readExtended(b, info)
	}
	if info.ExtendedErrors {
		return out, nil
	}
	b, err := c.performance(ctx, r, attrPortCounters, port, "PortCounters")
	if err != nil {
		return out, err
	}
	out.readShort(b, info)
	return out, nil
}
