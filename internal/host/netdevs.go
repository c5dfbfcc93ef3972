package host

import (
	"maps"
	"strings"
	"sync"
)

// netdevNames notices that the netdevs of RDMA devices were renamed, made again or taken away. It outlives the rounds.
type netdevNames struct {
	mu      sync.Mutex
	devices map[string]*deviceNetdevs
}

// deviceNetdevs is the netdevs of a device as the last round found them.
type deviceNetdevs struct {
	uplinks map[string]netdevID // by dev_port
	changes uint64
}

// netdevID tells a netdev from another one.
type netdevID struct{ name, index string }

// changes looks at the netdevs of a device, and says how often they were others than before. What cannot be read has not changed.
func (k *netdevNames) changes(f Files, device string) uint64 {
	now, err := uplinksOf(f, classDir+"/"+device+"/device/net")
	k.mu.Lock()
	defer k.mu.Unlock()
	d := k.devices[device]
	switch {
	case d == nil:
		d = &deviceNetdevs{uplinks: now}
		k.devices[device] = d
	case err == nil && !maps.Equal(now, d.uplinks):
		d.uplinks = now
		d.changes++
	}
	return d.changes
}

// keep forgets other devices.
func (k *netdevNames) keep(devices map[string]uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.devices, func(name string, _ *deviceNetdevs) bool { _, there := devices[name]; return !there })
}

// uplinksOf reads the netdevs of a function: of each port the one that was made first. Representors of virtual functions come later, as
// do child interfaces of IPoIB, and are renamed with each pod that gets one.
func uplinksOf(f Files, dir string) (map[string]netdevID, error) {
	names, err := f.List(dir)
	if err != nil && !IsAbsent(err) {
		return nil, err
	}
	uplinks := map[string]netdevID{}
	var buf []byte
	read := func(name, file string) string {
		b, err := f.ReadIn(dir+"/"+name, file, buf)
		if err != nil {
			return ""
		}
		buf = b
		return strings.TrimSpace(string(b))
	}
	for _, name := range names {
		if strings.Contains(name, ".") {
			continue
		}
		port, of := read(name, "dev_port"), netdevID{name, read(name, "ifindex")}
		if first, there := uplinks[port]; !there || len(of.index) < len(first.index) || len(of.index) == len(first.index) && of.index < first.index {
			uplinks[port] = of
		}
	}
	return uplinks, nil
}
