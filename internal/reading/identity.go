package reading

import (
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/snapshot"
)

// Device is the identity of a device, read once for all collectors. It is immutable.
type Device struct {
	// Device has name, kind and path of the function, driver, board, whether it manages NVLink switches, and the ports
	// with link layer and netdevs. It has no ports while the kernel is still creating them.
	snapshot.Device
	MaxRate float64      // of its ports, by vital product data; 0: none
	Netdevs []PortNetdev // of physical ports
}

// PortNetdev is a netdev of a physical port: that of an RDMA port, or a member of its bond.
type PortNetdev struct {
	Port         int
	Layer        string // link_layer of the port
	Name, Driver string
}

// Identities keeps the identities of the devices of rosters while the devices stay the same. The first collector that
// reads a device whose identity is due reads it, in its turn of the device, so that a device that hangs blocks no
// other.
type Identities struct {
	// Read reads the identity of a reader's device.
	Read func(*Reader) *Device
	// Interval is the time for which an identity is kept. Without ports it is kept for the round only.
	Interval time.Duration

	devices Devices[identified, struct{}]
}

// identified keeps the identity of one device.
type identified struct {
	of *Identities

	free       chan struct{} // holds one token while the following fields are not in use
	last       Last
	device     *Device
	round      *host.Host // of the last read
	quarantine Quarantine
	issues     []snapshot.Issue // of the last read
}

// Give assigns to a new roster the identities of its devices.
func (ids *Identities) Give(h *host.Host, roster *Roster) {
	ids.devices.New = func() *identified {
		k := &identified{of: ids, free: make(chan struct{}, 1)}
		k.free <- struct{}{}
		return k
	}
	roster.identified = map[string]*identified{}
	for _, k := range ids.devices.Keep(h, roster) {
		roster.identified[k.name] = k.state
	}
}

// Device returns the identity of a device of the roster. ReadAll calls it for each device that it reads.
func (ro *Roster) Device(r *Reader, name string) *Device {
	if k := ro.identified[name]; k != nil {
		return k.get(r, name)
	}
	return &Device{Device: snapshot.Device{Name: name}}
}

// get returns the identity of the device, and reads it if that is due. Each reader in the round of the read gets its
// failures.
func (k *identified) get(r *Reader, name string) *Device {
	select {
	case <-k.free:
	default:
		r.Apart(source.Identity, func() { <-k.free }) // the wait is not charged
	}
	defer func() { k.free <- struct{}{} }()
	same := r.Host == k.round && r.Host.InRound()
	if !same && k.last.Due(r.Now(), k.of.Interval) {
		if own := New(r.Ctx, r.Host, name); k.last.DueOf(own, k.of.Interval) {
			r.Apart(source.Identity, func() { k.read(own) })
			same = true
		}
	}
	if same {
		r.used, r.beside = true, true
		r.Issues = append(r.Issues, k.issues...)
	}
	r.Held += k.quarantine.Items(r.Now())
	return k.device
}

// read reads the identity with a separate reader, which is charged for it.
func (k *identified) read(r *Reader) {
	r.Quarantine = &k.quarantine
	defer r.End()
	k.device = k.of.Read(r)
	k.issues, k.round = r.Issues, r.Host
	k.last.ReadIf(len(k.device.Ports) > 0, r.Now())
}
