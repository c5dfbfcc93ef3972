package shared

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
)

// nvlink identifies the RDMA devices that manage NVLink switches (HGX B200, B300). They look like InfiniBand HCAs, have
// no link of their own, and answer most queries with an error and a kernel log line: only their identity is read. They
// are identified by vital product data (VPD), unless the configuration pins a role. Reading VPD takes 100 ms and more:
// once for each registration of a device. VPD also limits the rate of other cards.
type nvlink struct {
	siteSettings func(site.Subject) site.Settings

	mu      sync.Mutex
	devices map[string]*vpdRead
}

// vpdRead is the read of one device's vital product data.
type vpdRead struct {
	inode uint64 // of the device's directory
	began time.Time
	done  chan struct{} // closed when the following is there
	found bool          // it manages NVLink switches
	limit float64       // of its ports' rates; 0: none
	pin   bool          // pinned in the configuration
	err   error
}

// vpdTimeout is how long a device waits for its vital product data before it is read as a NIC.
const vpdTimeout = 2 * time.Second

// Vendor and class of functions that may manage NVLink switches.
const (
	vendorMellanox  = "0x15b3"
	classInfiniBand = "0x020700"
)

func newNVLink(settings func(site.Subject) site.Settings) *nvlink {
	return &nvlink{siteSettings: settings, devices: map[string]*vpdRead{}}
}

// manages reports whether a device manages NVLink switches; false where unknown. Its names are known.
func (v *nvlink) manages(r *reading.Reader, of *snapshot.Device) bool {
	id, name, function := r.From(source.Identity), of.Name, of.Path
	if function == "" || of.FunctionType != snapshot.Physical || id.Optional(function+"/vendor") != vendorMellanox ||
		!strings.HasPrefix(id.Optional(function+"/class"), classInfiniBand) {
		return false
	}
	inode, err := r.Host.Files.Identity(sysfs.ClassDir + "/" + name)
	if err != nil {
		return false
	}
	pinned := v.siteSettings(site.Subject{
		Device: name, BoardID: of.BoardID, PCIAddress: of.PCIAddress,
	}).Role
	if pinned != "" {
		return v.pin(name, inode, pinned == string(pci.NVLinkManagement))
	}
	v.mu.Lock()
	d := v.devices[name]
	start := d == nil || d.inode != inode || d.pin || d.retry()
	if start {
		d = &vpdRead{inode: inode, began: time.Now(), done: make(chan struct{})}
		v.devices[name] = d
	}
	v.mu.Unlock()
	if start {
		go d.read(r.Host, name, function)
	}
	r.Apart(source.VPD, func() { // the wait is not charged to this reader
		timer := time.NewTimer(vpdTimeout - time.Since(d.began))
		defer timer.Stop()
		select {
		case <-d.done:
		case <-timer.C:
		case <-r.Ctx.Done():
		}
	})
	return d.result(r, start)
}

// pin stores the configured role of a device, and reports whether the device manages NVLink switches.
func (v *nvlink) pin(name string, inode uint64, manages bool) bool {
	d := &vpdRead{inode: inode, done: make(chan struct{}), found: manages, pin: true}
	close(d.done)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.devices[name] = d
	return manages
}

func (d *vpdRead) read(h *host.Host, name, function string) {
	defer close(d.done)
	d.err = access.Guard(func() error { return d.ask(h, name, function) })
}

// ask uses a lane of its own: a hung read is not started twice.
func (d *vpdRead) ask(h *host.Host, name, function string) error {
	leave, err := h.Turns.Enter("vpd/" + name)
	if err != nil {
		return err
	}
	defer leave()
	h.Meter.Begin(source.VPD, source.LockDevice, 1)
	start := time.Now()
	b, err := h.Files.Read(function+"/vpd", nil)
	took := time.Since(start)
	h.Meter.Spend(source.VPD, source.LockDevice, took)
	h.Budget.Spend(name, took)
	if err != nil {
		return err
	}
	data, _ := pci.ParseVPD(b) // some vendors terminate it incorrectly; the available part is sufficient
	d.found, d.limit = data.ManagesNVLink(), data.InfiniBandLimit()
	return nil
}

// retry reports whether a read has failed for want of the helper, which may be running now.
func (d *vpdRead) retry() bool {
	return d.ended() && errors.Is(d.err, access.ErrNoHelper)
}

// ended reports whether the read has returned.
func (d *vpdRead) ended() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

// result reports whether the device manages NVLink switches, if the read has ended. A failure is reported once, by the
// reader that started the read; a denied permission as long as it lasts.
func (d *vpdRead) result(r *reading.Reader, first bool) bool {
	if !d.ended() {
		return false
	}
	if d.err != nil && !access.IsAbsent(d.err) && (first || access.NotPermitted(d.err)) {
		r.From(source.VPD).Issue(d.err)
	}
	return d.found
}

// limit returns the maximum rate of a device's ports in bits per second, as read by manages; 0 if there is none.
func (v *nvlink) limit(name string) float64 {
	if d := v.finished(name); d != nil {
		return d.limit
	}
	return 0
}

// finished returns the read of a device; nil until it has ended.
func (v *nvlink) finished(name string) *vpdRead {
	v.mu.Lock()
	d := v.devices[name]
	v.mu.Unlock()
	if d == nil || !d.ended() {
		return nil
	}
	return d
}

// drop removes devices that are gone.
func (v *nvlink) drop(names []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.devices, func(name string, _ *vpdRead) bool { return !slices.Contains(names, name) })
}
