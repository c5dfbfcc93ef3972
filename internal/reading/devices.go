package reading

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/workers"
)

// Roster is the list of RDMA devices to read in a round. It is immutable and shared by all collectors, and is reused in
// the next round if the devices are the same.
type Roster struct {
	Names   []string
	Reduced *snapshot.Reduced // what is left out
	// of the devices, in the order of Names
	identities []Identity
	identified map[string]*identified // by name; none: only the names of the devices are known
}

// Identity distinguishes a device, and the names of its netdevs, from a later device of the same name.
type Identity struct {
	Registration  uint64 // host.Host.Registration; 0: unknown
	NetdevChanges uint64 // host.Host.NetdevChanges
}

// IdentityOf returns the identity of a device as of the start of the round.
func IdentityOf(h *host.Host, device string) Identity {
	return Identity{h.Registration(device), h.NetdevChanges(device)}
}

// NewRoster returns a roster. identity returns the identity of a device.
func NewRoster(names []string, reduced *snapshot.Reduced, identity func(string) Identity) *Roster {
	r := &Roster{Names: names, Reduced: reduced}
	for _, name := range names {
		r.identities = append(r.identities, identity(name))
	}
	return r
}

// Devices holds the state S that a collector keeps for each device between rounds. The state is discarded with the
// device, and when the names of its netdevs change, since names are reused. T is the result of reading a device.
type Devices[S, T any] struct {
	// Collector is the name of the collector. Together with the name of a device it is the key of a turn
	// (access.Turns).
	Collector string
	// Quarantines enables a Quarantine for each device.
	Quarantines bool
	// New returns the state for a new or replaced device; nil: the zero value.
	New func() *S
	// Changed, if set, is called for each device that is gone or has a new state.
	Changed func(h *host.Host, device string, gone bool)

	roster *Roster
	kept   []keptDevice[S] // in the order of the roster
}

// keptDevice is the state of a device.
type keptDevice[S any] struct {
	Identity
	name, turn string
	state      *S
	quarantine *Quarantine // nil: none
	reader     *Reader     // of the read in progress
}

// Keep discards the states of devices that are gone, have registered again or have other netdevs, and creates the
// states of new devices. ReadAll calls it first.
func (d *Devices[S, T]) Keep(h *host.Host, roster *Roster) []keptDevice[S] {
	if roster == d.roster {
		return d.kept
	}
	before := make(map[string]*keptDevice[S], len(d.kept))
	for i := range d.kept {
		before[d.kept[i].name] = &d.kept[i]
	}
	// Not in place: a round that outlasts this one may use the previous list.
	kept := make([]keptDevice[S], len(roster.Names))
	for i, name := range roster.Names {
		k := keptDevice[S]{Identity: roster.identities[i], name: name, turn: d.Collector + "/" + name, reader: &Reader{}}
		if last := before[name]; last != nil {
			k.reader = last.reader
			if (k.Registration == last.Registration || k.Registration == 0) && k.NetdevChanges == last.NetdevChanges {
				k.state, k.quarantine = last.state, last.quarantine
			}
			k.Registration = cmp.Or(k.Registration, last.Registration)
			delete(before, name)
		}
		if k.state == nil {
			k.state = new(S)
			if d.New != nil {
				k.state = d.New()
			}
			if d.Quarantines {
				k.quarantine = &Quarantine{}
			}
			d.notifyChanged(h, name, false)
		}
		kept[i] = k
	}
	for name := range before {
		d.notifyChanged(h, name, true)
	}
	d.roster, d.kept = roster, kept
	return kept
}

func (d *Devices[S, T]) notifyChanged(h *host.Host, device string, gone bool) {
	if d.Changed != nil {
		d.Changed(h, device, gone)
	}
}

// result is the result of reading one device.
type result[T any] struct {
	ended  bool
	issues []snapshot.Issue
	held   uint64 // items in quarantine
	mixed  bool   // may be of two devices
	value  T
	ok     bool
	err    error
}

// Ended returns how the read of a device ended; with an empty device, that of all devices together.
func Ended(device string, err error) snapshot.DeviceRead {
	return snapshot.DeviceRead{
		Device: device, Stuck: errors.Is(err, access.ErrStuck), Late: errors.Is(err, access.ErrLate),
	}
}

// ReadAll calls read for each device of a roster, with its identity, in its turn. It passes the results for which ok
// was true to use, and calls done when all reads have returned or ctx ends. A read that has not returned by then is
// reported, costs only the data of its device, and is not repeated until it returns. ReadAll may run in a goroutine
// without a recover of its own.
func (d *Devices[S, T]) ReadAll(
	ctx context.Context, h *host.Host, n *snapshot.Node, roster *Roster,
	read func(*Reader, *Device, *S) (result T, ok bool), use func([]T), done func(error),
) {
	var mu sync.Mutex
	var buf []byte // of the last reader, reused by the next one
	devices := d.Keep(h, roster)
	results := make([]result[T], len(devices))
	begun := h.CPU.Moment()
	one := func(k *keptDevice[S]) (res result[T]) {
		leave, err := h.Turns.Enter(k.turn)
		if err != nil {
			return result[T]{err: err}
		}
		defer leave()
		r := k.reader
		*r = Reader{
			Ctx: ctx, Host: h, Device: k.name, Quarantine: k.quarantine, reduced: roster.Reduced, since: time.Now(),
		}
		mu.Lock()
		r.buf, buf = buf, nil
		mu.Unlock()
		func() {
			defer r.End()
			res.value, res.ok = read(r, roster.Device(r, k.name), k.state)
		}()
		if res.mixed = r.isMixed(); res.mixed { // failures are then no fault of the device
			res.ok, r.Issues = false, nil
		}
		res.issues, res.held = r.Issues, r.Quarantine.Items(r.Now())+r.Held
		mu.Lock()
		defer mu.Unlock()
		buf = r.buf
		return res
	}
	workers.Do(ctx, len(devices), func(i int) {
		var res result[T]
		if err := access.Guard(func() error { res = one(&devices[i]); return nil }); err != nil {
			res.issues = []snapshot.Issue{{Device: devices[i].name, Reason: string(access.ReasonOf(err)), Err: err}}
		}
		res.ended = true
		mu.Lock()
		defer mu.Unlock()
		results[i] = res
	}, func() {
		done(access.Guard(func() error {
			mu.Lock()
			defer mu.Unlock()
			out := make([]T, 0, len(devices))
			n.Devices = slices.Grow(n.Devices, len(devices))
			for i := range results {
				res, name := &results[i], devices[i].name
				if !res.ended {
					res = &result[T]{err: h.Turns.Missed(devices[i].turn, begun)}
				}
				read := Ended(name, res.err)
				read.Quarantined, read.Discarded = res.held, res.mixed
				n.Devices = append(n.Devices, read)
				if res.err != nil {
					n.Issues = append(n.Issues, snapshot.Issue{Device: name, Reason: string(access.ReasonOf(res.err)), Err: res.err})
					continue
				}
				n.Issues = append(n.Issues, res.issues...)
				if res.ok {
					out = append(out, res.value)
				}
			}
			use(out)
			return nil
		}))
	})
}
