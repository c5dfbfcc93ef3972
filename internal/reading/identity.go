package reading

import (
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/snapshot"
)

// Device is what a device is, read once for all collectors. It is immutable.
type Device struct {
	// Device has name, kind and path of the function, driver, board, whether NVLink switches are managed, and the ports
	// with link layer and netdevs. It has no ports while the kernel is still making them.
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

// Identities keeps what the devices of rosters are, as long as a device is the same. The first collector that reads a
// device of which this is due reads it, in its turn of the device; a device that hangs there blocks no other one.
type Identities struct {
	// Read reads what the device of a reader is.
	Read func(*Reader) *Device
	// Interval is how long it is kept; only for the round if there are no ports yet.
	Interval time.Duration

	devices Devices[identified, struct{}]
}

// identified is what one device is.
type identified struct {
	of *Identities

	free       chan struct{} // holds one token while nobody uses the following
	last       Last
	device     *Device
	round      *host.Host // of the last read
	quarantine Quarantine
	issues     []snapshot.Issue // of the last read
}

// Give gives a new roster what its devices are.
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

// Device returns what a device of the roster is. ReadAll does so for the device that it reads.
func (ro *Roster) Device(r *Reader, name string) *Device {
	if k := ro.identified[name]; k != nil {
		return k.get(r, name)
	}
	return &Device{Device: snapshot.Device{Name: name}}
}

// get reads the device if that is due. A failure is one of each reader in the round of the read.
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

// read reads the device by a reader of its own, which is charged for it.
func (k *identified) read(r *Reader) {
	r.Quarantine = &k.quarantine
	defer r.End()
	k.device = k.of.Read(r)
	k.issues, k.round = r.Issues, r.Host
	k.last.ReadIf(len(k.device.Ports) > 0, r.Now())
}
