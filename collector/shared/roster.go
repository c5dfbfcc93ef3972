package shared

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

// Roster decides which devices of a host are read, and what of them, once for all collectors of a round. A host has
// thousands of functions if virtual functions and subfunctions are made for guests and containers.
type Roster struct {
	include, exclude *regexp.Regexp
	limit            int                    // of devices; 0: none
	metrics          func() map[string]bool // that are read of parts; nil: all

	mu         sync.Mutex
	round      *host.Host // of the last call, if it was for a round
	listed     []string   // all devices then
	identities []reading.Identity
	devices    *reading.Roster // the result; nil: none yet
	known      reading.Identities
	nvlink     *nvlink
	parts      map[string]bool // virtual functions and subfunctions beside their physical function
}

// NewRoster returns a roster for the devices that the options select.
func NewRoster(o Options) *Roster {
	conf := SiteConfig{Store: o.Site, Hostname: o.Hostname}
	v := newNVLink(conf.Settings)
	return &Roster{
		include: o.Include, exclude: o.Exclude, limit: o.MaxDevices, metrics: o.PartMetrics, nvlink: v,
		known: reading.Identities{Read: v.identify, Interval: SlowInterval},
	}
}

// noDevices is the roster of a host without RDMA.
var noDevices = &reading.Roster{Reduced: &snapshot.Reduced{}}

// Of returns the devices to be read, and notes in n what is left out. A host without the class has none. The result is
// the same while the devices are.
func (ro *Roster) Of(h *host.Host, n *snapshot.Node) (*reading.Roster, error) {
	n.Reduced = noDevices.Reduced
	names, err := h.Devices()
	if access.IsAbsent(err) {
		return noDevices, nil
	}
	if err != nil {
		return nil, err
	}
	ro.mu.Lock()
	defer ro.mu.Unlock()
	if ro.devices == nil || !h.InRound() || ro.round != h {
		ro.update(h, names)
	}
	n.Reduced = ro.devices.Reduced
	return ro.devices, nil
}

// Read returns the Read of a collector that needs the devices of the round.
func (ro *Roster) Read(
	read func(ctx context.Context, h *host.Host, n *snapshot.Node, roster *reading.Roster, done func(error)),
) readFunc {
	return func(ctx context.Context, h *host.Host, n *snapshot.Node, done func(error)) {
		roster, err := ro.Of(h, n)
		if err != nil {
			done(err)
			return
		}
		read(ctx, h, n, roster, done)
	}
}

func (ro *Roster) Wanted(device string) bool {
	return (ro.include == nil || ro.include.MatchString(device)) && (ro.exclude == nil || !ro.exclude.MatchString(device))
}

// update compares the devices with those of the last call.
func (ro *Roster) update(h *host.Host, names []string) {
	ro.round = h
	if ro.devices != nil && ro.same(h, names) {
		return
	}
	before := map[string]reading.Identity{}
	for i, name := range ro.listed {
		before[name] = ro.identities[i]
	}
	changed := ro.devices == nil || !slices.Equal(names, ro.listed)
	ro.listed, ro.identities = slices.Clone(names), make([]reading.Identity, len(names))
	now, parts, wanted := map[string]reading.Identity{}, map[string]bool{}, []string(nil)
	for i, name := range names {
		id := reading.IdentityOf(h, name)
		ro.identities[i], now[name] = id, id
		last, known := before[name]
		known = known && last.Registration == id.Registration
		changed = changed || !known
		if !ro.Wanted(name) {
			continue
		}
		wanted = append(wanted, name)
		if known && ro.parts[name] || !known && PhysicalFunction(h.Files, name) != "" {
			parts[name] = true
		}
	}
	if !changed { // the names of netdevs are
		ro.give(h, ro.devices.Names, ro.devices.Reduced, now)
		return
	}
	ro.parts = parts
	chosen, reduced := ro.choose(wanted)
	ro.nvlink.drop(chosen)
	ro.give(h, chosen, reduced, now)
}

// give makes the result.
func (ro *Roster) give(h *host.Host, names []string, reduced *snapshot.Reduced, now map[string]reading.Identity) {
	ro.devices = reading.NewRoster(names, reduced, func(name string) reading.Identity { return now[name] })
	ro.known.Give(h, ro.devices)
}

// same reports whether the devices are those of the last call.
func (ro *Roster) same(h *host.Host, names []string) bool {
	if !slices.Equal(names, ro.listed) {
		return false
	}
	for i, name := range names {
		if reading.IdentityOf(h, name) != ro.identities[i] {
			return false
		}
	}
	return true
}

// PhysicalFunction returns the PCI address of the physical function of a virtual function or a subfunction; empty if
// the device is neither, or its physical function is not on this host. In a guest a virtual function has no link
// physfn.
func PhysicalFunction(files host.Files, device string) string {
	dir, err := files.Resolve(sysfs.ClassDir + "/" + device + "/device")
	if err != nil {
		return ""
	}
	if strings.Contains(path.Base(dir), ".sf.") {
		return path.Base(path.Dir(dir))
	}
	target, err := files.Link(dir + "/physfn")
	if err != nil {
		return ""
	}
	return path.Base(target)
}

// choose applies the limit: parts are left out first.
func (ro *Roster) choose(names []string) ([]string, *snapshot.Reduced) {
	reduced := &snapshot.Reduced{Parts: ro.parts}
	if ro.limit > 0 && len(names) > ro.limit {
		all := slices.SortedFunc(slices.Values(names), reduced.Compare)
		names, reduced.LeftOut = all[:ro.limit], all[ro.limit:]
	}
	if len(ro.parts) > 0 && ro.metrics != nil {
		reduced.Metrics = ro.metrics()
	}
	return names, reduced
}
