package host

import (
	"context"
	"errors"
	"runtime"
	"time"

	"rdma_exporter/internal/snapshot"
)

// nvmlWatchPause is how often it is looked whether there is a session to listen to.
const nvmlWatchPause = time.Second

// xidCount counts the XID errors of a GPU since somebody listens.
type xidCount struct {
	events uint64
	last   *uint64
}

// WatchGPUs listens to the events of each session until ctx ends. A wait is on a thread of its own: it blocks.
func (n *nvmlDoor) WatchGPUs(ctx context.Context) error {
	tick := time.NewTicker(nvmlWatchPause)
	defer tick.Stop()
	var heard *nvmlSession
	for {
		n.mu.Lock()
		s := n.session
		n.mu.Unlock()
		if s != nil && s != heard {
			heard = s
			if n.listen(ctx, s) != nil { // a GPU was lost: another set, without it
				heard = nil
				pause(ctx, nvmlFirstPause)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// listen counts the events of a session until it ends, or a wait fails. A session whose GPUs have no events is left alone.
func (n *nvmlDoor) listen(ctx context.Context, s *nvmlSession) (err error) {
	heard := make(chan struct{})
	n.mu.Lock()
	select {
	case <-s.quit:
		n.mu.Unlock()
		return nil
	default:
		s.heard = heard
	}
	n.mu.Unlock()
	go func() {
		runtime.LockOSThread() // and end with it: the thread is used for nothing else
		defer close(heard)
		err = Guard(func() error { return n.hear(ctx, s) })
	}()
	<-heard
	return err
}

// hear makes a set of events, waits for them, and frees it.
func (n *nvmlDoor) hear(ctx context.Context, s *nvmlSession) error {
	var events nvmlEvents
	if n.do(ctx, nvmlGPUTime, "nvmlDeviceRegisterEvents", func() { events = n.register(s) }) != nil || events == nil {
		return nil
	}
	for ctx.Err() == nil {
		select {
		case <-s.quit:
			_ = events.Free()
			return nil
		default:
		}
		uuid, xid, err := events.Wait(nvmlEventTime)
		switch {
		case err == nil:
			n.noteXID(uuid, xid)
		case !errors.Is(err, nvmlTimeout):
			_ = events.Free()
			return err
		}
	}
	_ = events.Free()
	return nil
}

// register makes the set, on the thread of NVML, and begins to count for the GPUs that have such events.
func (n *nvmlDoor) register(s *nvmlSession) nvmlEvents {
	if !n.current(s) {
		return nil
	}
	var devices []nvmlDevice
	var uuids []string
	for _, seat := range s.seats {
		if seat != nil && seat.identity.UUID != "" {
			devices, uuids = append(devices, seat.device), append(uuids, seat.identity.UUID)
		}
	}
	events, registered, err := n.lib.Events(devices)
	if err != nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, uuid := range uuids {
		if registered[i] && n.xids[uuid] == nil {
			n.xids[uuid] = &xidCount{}
		}
	}
	return events
}

func (n *nvmlDoor) noteXID(uuid string, xid uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.xids[uuid] == nil {
		n.xids[uuid] = &xidCount{}
	}
	n.xids[uuid].events++
	n.xids[uuid].last = &xid
}

// countXIDs puts what was counted into a reading.
func (n *nvmlDoor) countXIDs(g *snapshot.GPU) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c := n.xids[g.UUID]; c != nil {
		events := c.events
		g.XIDs, g.LastXID = &events, c.last
	}
}
