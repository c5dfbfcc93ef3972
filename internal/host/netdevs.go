package host

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"rdma_exporter/internal/host/access"
)

// netdevNames detects that the netdevs of RDMA devices were renamed, recreated or removed. It is kept across rounds.
type netdevNames struct {
	mu      sync.Mutex
	devices map[string]*deviceNetdevs
	names   []string // of the devices as of the last round, sorted
}

// deviceNetdevs is the netdevs of a device as of the last round.
type deviceNetdevs struct {
	uplinks map[string]netdevID // by dev_port
	whole   bool                // all of them could be read
	changes uint64
}

// netdevID identifies a netdev.
type netdevID struct{ name, index string }

// known returns the devices of the last round.
func (k *netdevNames) known() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.names
}

// keep discards all other devices.
func (k *netdevNames) keep(devices []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.names = devices
	maps.DeleteFunc(k.devices, func(name string, _ *deviceNetdevs) bool { return !slices.Contains(devices, name) })
}

// ofDevices returns how often the netdevs of each device have changed.
func (k *netdevNames) ofDevices(f Files, devices []string) map[string]uint64 {
	out := make(map[string]uint64, len(devices))
	var buf []byte
	for _, name := range devices {
		out[name] = k.changes(f, name, &buf)
	}
	return out
}

// changes compares the netdevs of a device with the previous round, and returns how often they have changed. Unreadable
// ones count as unchanged. buf is for reading.
func (k *netdevNames) changes(f Files, device string, buf *[]byte) uint64 {
	k.mu.Lock()
	d := k.devices[device]
	k.mu.Unlock()
	dir := ClassDir + "/" + device + "/device/net"
	if same := f.Same(dir); same && d != nil && d.whole {
		return d.changes
	}
	now, whole, err := uplinksOf(f, dir, buf)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case d == nil:
		d = &deviceNetdevs{uplinks: now}
		k.devices[device] = d
	case err == nil && !maps.Equal(now, d.uplinks):
		d.uplinks = now
		d.changes++
	}
	d.whole = whole
	return d.changes
}

// uplinksOf returns the netdevs of a function: for each port the one created first. Representors of virtual functions
// and child interfaces of IPoIB are created later, and are renamed with each pod that gets one. whole is false if
// something could not be read.
func uplinksOf(f Files, dir string, buf *[]byte) (uplinks map[string]netdevID, whole bool, err error) {
	names, err := f.List(dir)
	if err != nil && !access.IsAbsent(err) {
		return nil, false, err
	}
	uplinks, whole = map[string]netdevID{}, true
	read := func(dir, file string) string {
		b, err := f.ReadIn(dir, file, *buf)
		if err != nil {
			whole = false
			return ""
		}
		*buf = b
		return strings.TrimSpace(string(b))
	}
	for _, name := range names {
		if strings.Contains(name, ".") {
			continue
		}
		own := dir + "/" + name
		port, of := read(own, "dev_port"), netdevID{name, read(own, "ifindex")}
		if first, there := uplinks[port]; !there || len(of.index) < len(first.index) ||
			len(of.index) == len(first.index) && of.index < first.index {
			uplinks[port] = of
		}
	}
	return uplinks, whole, nil
}
