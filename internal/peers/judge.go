package peers

import (
	"slices"
	"time"

	"rdma_exporter/internal/snapshot/qp"
)

// fatal are the events after which a queue pair is in ERR for a reason other than its peer's silence.
var fatal = map[string]bool{"qp_fatal": true, "qp_request_error": true, "qp_access_error": true, "device_fatal": true}

const stateERR = 6 // IB_QPS_ERR

const (
	// endsAfter is how long after exceeded retries the end of a queue pair makes its peer a candidate.
	endsAfter = 10 * time.Second
	// risesWithin limits the time between two readings of a counter: the rise of a longer one says too little of when.
	risesWithin = time.Minute
	// lossPause separates two incidents of one peer.
	lossPause = time.Hour
)

// counter is a reading of the requests of a port that exceeded their retries.
type counter struct {
	value uint64
	at    time.Time
}

// rise is an increase of it that is not explained yet.
type rise struct {
	from, to time.Time
	listed   bool // or cannot be
}

// Count takes up the counter of exceeded retries of a port as read at a time.
func (t *Table) Count(device string, port int, value uint64, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := portID{device, port}
	before, known := t.ports[id]
	if known && !at.After(before.at) {
		return
	}
	t.ports[id] = counter{value, at}
	if !known || value <= before.value || at.Sub(before.at) > risesWithin {
		return
	}
	r := t.rises[id]
	if r == nil {
		r = &rise{from: before.at}
		t.rises[id] = r
	}
	r.to, r.listed = at, false
}

// blame finds the queue pairs in ERR that no process put there, on ports with a rise.
func (t *Table) blame(device string, found []qp.QueuePair, now time.Time) {
	explained := map[portID]bool{}
	for _, q := range found {
		p := t.pairs[pairID{device, q.QPN}]
		if p == nil || q.State != stateERR || p.excluded || !p.is(&q) {
			continue
		}
		p.excluded = true // once
		at := portID{device, p.port}
		if r := t.rises[at]; r != nil && !r.listed {
			explained[at] = true
			t.lose(p.lost(device, qp.LostProbably), now)
		}
	}
	for id, r := range t.rises {
		if id.device == device {
			r.listed = true
		}
		if explained[id] {
			delete(t.rises, id)
		}
	}
}

// Judge makes candidates of the peers of queue pairs that ended within seconds of a rise that no list explained.
func (t *Table) Judge(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, r := range t.rises {
		if !r.listed && now.Sub(r.to) <= listAgain {
			continue // a list is due
		}
		t.ends = slices.DeleteFunc(t.ends, func(e ending) bool {
			of := e.of.device == id.device && e.port == id.port && !e.at.Before(r.from) && !e.at.After(r.to.Add(endsAfter))
			if of {
				t.lose(e.lost(id.device, qp.LostCandidate), e.at)
			}
			return of
		})
		if now.Sub(r.to) > endsAfter+risesWithin/2 {
			delete(t.rises, id)
		}
	}
	kept := slices.IndexFunc(t.ends, func(e ending) bool { return now.Sub(e.at) <= risesWithin+listAgain+endsAfter })
	if kept < 0 {
		kept = len(t.ends)
	}
	t.ends = slices.Delete(t.ends, 0, kept)
}

func (p *pair) lost(device, certainty string) qp.LostPeer {
	return qp.LostPeer{
		Device: device, Port: p.port, Peer: p.peer, Certainty: certainty, PID: p.pid, Command: p.command,
	}
}

// lose counts a loss. Beyond the limit the peer that was lost longest ago is left out.
func (t *Table) lose(one qp.LostPeer, at time.Time) {
	i := slices.IndexFunc(t.lost, func(l qp.LostPeer) bool {
		return l.Device == one.Device && l.Port == one.Port && l.Peer == one.Peer && l.Certainty == one.Certainty
	})
	if i >= 0 {
		l := &t.lost[i]
		if at.Sub(l.Last) > lossPause {
			l.First = at
		}
		if at.Before(l.First) {
			l.First = at
		}
		if at.After(l.Last) {
			l.Last, l.Errno, l.PID, l.Command = at, one.Errno, one.PID, one.Command
		}
		l.Pairs++
		return
	}
	one.Pairs, one.First, one.Last = 1, at, at
	if len(t.lost) < maxLost {
		t.lost = append(t.lost, one)
		return
	}
	oldest := 0
	for i := range t.lost {
		if t.lost[i].Last.Before(t.lost[oldest].Last) {
			oldest = i
		}
	}
	t.lost[oldest] = one
}
