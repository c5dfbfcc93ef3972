package mad

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"rdma_exporter/internal/mad/perf"
)

// Options limit the load of a client on the subnet. The zero value is the default.
type Options struct {
	InFlight  int           // concurrent requests; 8
	Rate      int           // requests per second; 0: unlimited
	Timeout   time.Duration // per attempt; 500ms
	Retries   int           // further attempts; 0: none
	PKeyIndex uint16        // for performance management
}

const (
	defaultInFlight = 8
	defaultTimeout  = 500 * time.Millisecond
)

// Stats count the requests of a client.
type Stats struct {
	Sent     uint64 // datagrams, including retries
	Timeouts uint64 // datagrams without an answer
}

// Client queries nodes through one local port.
type Client struct {
	o     Options
	t     Transport
	slots chan struct{}
	pace  pace

	sent, timeouts atomic.Uint64

	mu      sync.Mutex
	waiting map[uint32]chan *Datagram
	err     error // of the transport; no further answers

	done chan struct{} // closed when receive has returned
}

// NewClient returns a client, which owns the transport.
func NewClient(t Transport, o Options) *Client {
	if o.InFlight <= 0 {
		o.InFlight = defaultInFlight
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	c := &Client{
		o: o, t: t, slots: make(chan struct{}, o.InFlight), waiting: map[uint32]chan *Datagram{}, done: make(chan struct{}),
	}
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

// Stats returns the counts so far.
func (c *Client) Stats() Stats { return Stats{c.sent.Load(), c.timeouts.Load()} }

// receive passes answers to the waiting requests. Late answers are discarded.
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

// randomTID returns an ID that a node of the subnet cannot derive from earlier ones, to forge the answer of another
// node.
func randomTID() uint32 {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint32(b[:])
}

// expect registers a transaction.
func (c *Client) expect() (uint32, chan *Datagram, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, nil, c.err
	}
	tid := randomTID()
	for c.waiting[tid] != nil {
		tid = randomTID()
	}
	w := make(chan *Datagram, 1)
	c.waiting[tid] = w
	return tid, w, nil
}

func (c *Client) forget(tid uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, tid)
}

// ask sends a request. It retries after a timeout, and after a pause if the agent is busy.
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
	select {
	case d, ok := <-answer:
		if !ok {
			return nil, c.broken()
		}
		return q.decode(d)
	case <-time.After(c.o.Timeout):
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

// pace limits the rate of requests and allows short bursts. Its zero value does not limit.
type pace struct {
	every time.Duration

	mu   sync.Mutex
	next time.Time
}

// burst is how many requests may follow a pause without a wait: timers are not more precise.
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

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// query makes a request for the attribute of that name.
func query[T any](ctx context.Context, c *Client, q *request, name string, decode func([]byte) T) (v T, err error) {
	b, err := c.ask(ctx, q)
	if err != nil {
		return v, fmt.Errorf("query %s of %s: %w", name, q.route, err)
	}
	return decode(b), nil
}

// subnet queries an attribute of subnet management at the end of a route.
func subnet[T any](
	ctx context.Context, c *Client, r Route, attribute uint16, modifier int, name string, decode func([]byte) T,
) (T, error) {
	q := &request{class: r.subnetClass(), attribute: attribute, modifier: uint32(modifier), route: r}
	return query(ctx, c, q, name, decode)
}

// NodeInfo returns the node that a port belongs to.
func (c *Client) NodeInfo(ctx context.Context, r Route) (NodeInfo, error) {
	return subnet(ctx, c, r, attrNodeInfo, 0, "NodeInfo", decodeNodeInfo)
}

// NodeDescription returns the name of a node.
func (c *Client) NodeDescription(ctx context.Context, r Route) (string, error) {
	return subnet(ctx, c, r, attrNodeDescription, 0, "NodeDescription", decodeNodeDescription)
}

// SwitchInfo queries a switch. Other nodes do not have the attribute.
func (c *Client) SwitchInfo(ctx context.Context, r Route) (SwitchInfo, error) {
	return subnet(ctx, c, r, attrSwitchInfo, 0, "SwitchInfo", decodeSwitchInfo)
}

// PortInfo queries a port of a node. Port 0 is the management port of a switch; of another node, the port that receives
// the request.
func (c *Client) PortInfo(ctx context.Context, r Route, port int) (PortInfo, error) {
	return subnet(ctx, c, r, attrPortInfo, port, "PortInfo", decodePortInfo)
}

// SLToVL queries a port of a channel adapter for the virtual lane of each service level. A port with one virtual lane
// may not have the attribute.
func (c *Client) SLToVL(ctx context.Context, r Route, port int) ([ServiceLevels]uint8, error) {
	return subnet(ctx, c, r, attrSLToVL, port, "SLtoVLMappingTable", decodeSLToVL)
}

// MellanoxPort queries the vendor's attribute of a port.
func (c *Client) MellanoxPort(ctx context.Context, r Route, port int) (MellanoxPort, error) {
	return subnet(ctx, c, r, attrMellanoxPort, port, "Mellanox ExtendedPortInfo", decodeMellanoxPort)
}

// PortInfoExtended queries the FEC of a port. PortInfo has a bit for whether the node has the attribute.
func (c *Client) PortInfoExtended(ctx context.Context, r Route, port int) (PortInfoExtended, error) {
	return subnet(ctx, c, r, attrPortInfoExtended, port, "PortInfoExtended", decodePortInfoExtended)
}

// SMInfo queries the subnet manager at a port. A port without one does not answer.
func (c *Client) SMInfo(ctx context.Context, r Route) (SMInfo, error) {
	return subnet(ctx, c, r, attrSMInfo, 0, "SMInfo", decodeSMInfo)
}

// performance queries an agent of performance management. It has to be addressed by its LID.
func performance[T any](
	ctx context.Context, c *Client, r Route, attribute uint16, port int, name string, decode func([]byte) T,
) (T, error) {
	q := &request{class: ClassPerformance, attribute: attribute, port: uint8(port), route: r}
	return query(ctx, c, q, name, decode)
}

// undecoded returns an attribute as it was received.
func undecoded(b []byte) []byte { return b }

// PerformanceInfo returns which counters a node has.
func (c *Client) PerformanceInfo(ctx context.Context, r Route) (perf.Info, error) {
	return performance(ctx, c, r, perf.AttrClassPortInfo, 0, "ClassPortInfo", perf.DecodeInfo)
}

// Counters reads the counters of a port: one datagram if all are 64-bit, otherwise up to two.
func (c *Client) Counters(ctx context.Context, r Route, port int, info perf.Info) (perf.Counters, error) {
	var out perf.Counters
	if info.Extended {
		b, err := performance(ctx, c, r, perf.AttrPortCountersExtended, port, "PortCountersExtended", undecoded)
		if err != nil {
			return out, err
		}
		out.ReadExtended(b, info)
	}
	if info.ExtendedErrors {
		return out, nil
	}
	b, err := performance(ctx, c, r, perf.AttrPortCounters, port, "PortCounters", undecoded)
	if err != nil {
		return out, err
	}
	out.ReadShort(b, info)
	return out, nil
}

// FECCounts reads the errors before and after FEC of a port whose FEC in use is mode: one datagram.
func (c *Client) FECCounts(ctx context.Context, r Route, port int, mode FECMode) ([]FECCount, error) {
	b, err := performance(ctx, c, r, attrPortExtendedSpeedsCounters, port, "PortExtendedSpeedsCounters", undecoded)
	if err != nil {
		return nil, err
	}
	return decodeFECCounts(b, mode)
}

// ReceiveErrorDetails reads the receive errors of a port by cause: one datagram. The attribute is optional.
func (c *Client) ReceiveErrorDetails(ctx context.Context, r Route, port int) (perf.ReceiveErrorDetails, error) {
	return performance(
		ctx,
		c,
		r,
		perf.AttrReceiveErrorDetails,
		port,
		"PortRcvErrorDetails",
		perf.DecodeReceiveErrorDetails,
	)
}

// Tick reads the length of a tick of a node's TransmitWait: one datagram.
func (c *Client) Tick(ctx context.Context, r Route, port int) (perf.Tick, error) {
	return performance(ctx, c, r, perf.AttrPortSamplesControl, port, "PortSamplesControl", perf.DecodeTick)
}
