package nvml

import (
	"context"
	"errors"
	"runtime"
	"time"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot/accel"
)

// nvmlWatchPause is the polling interval for a session to listen to.
const nvmlWatchPause = time.Second

// xidCount counts the XID errors of a GPU since listening began.
type xidCount struct {
	events uint64
	last   *uint64
}

// WatchGPUs listens to the events of each session until ctx ends. Waiting blocks, so it has its own thread.
func (n *nvmlGPUs) WatchGPUs(ctx context.Context) error {
	tick := time.NewTicker(nvmlWatchPause)
	defer tick.Stop()
	var heard *nvmlSession
	for {
		n.mu.Lock()
		s := n.session
		n.mu.Unlock()
		if s != nil && s != heard {
			heard = s
			if n.listen(ctx, s) != nil { // a GPU was lost: build another set without it
				heard = nil
				select {
				case <-time.After(nvmlFirstPause):
				case <-ctx.Done():
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// listen counts the events of a session until the session ends or a wait fails. GPUs without events are skipped.
func (n *nvmlGPUs) listen(ctx context.Context, s *nvmlSession) (err error) {
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
		runtime.LockOSThread() // the thread ends with it and is not reused
		defer close(heard)
		err = access.Guard(func() error { return n.receiveEvents(ctx, s) })
	}()
	<-heard
	return err
}

// receiveEvents creates an event set, waits for events, and frees it.
func (n *nvmlGPUs) receiveEvents(ctx context.Context, s *nvmlSession) error {
	var events nvmlEvents
	if n.Do(ctx, nvmlGPUTime, "nvmlDeviceRegisterEvents", func() { events = n.register(s) }) != nil || events == nil {
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

// register creates the set on the NVML thread, and starts counting for GPUs that support the events.
func (n *nvmlGPUs) register(s *nvmlSession) nvmlEvents {
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

func (n *nvmlGPUs) noteXID(uuid string, xid uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.xids[uuid] == nil {
		n.xids[uuid] = &xidCount{}
	}
	n.xids[uuid].events++
	n.xids[uuid].last = &xid
}

// countXIDs adds the counts to a reading.
func (n *nvmlGPUs) countXIDs(g *accel.GPU) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c := n.xids[g.UUID]; c != nil {
		g.XIDs, g.LastXID = new(c.events), c.last
	}
}
